"""How evidence becomes a verdict.

`judging` has all methods examine connections, and weighs what they find by the rule of `weighing`, which `posterior`
applies to many connections at once. `found` holds the evidence, `shown` what results say of connections beside it;
`mispairing` allows for pairs that may be two transfers. `together` and `loading_order` say which connections are loaded
and judged at a time.
"""
