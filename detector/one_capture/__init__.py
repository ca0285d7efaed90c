"""One capture: which networks and ports have a middlebox that splits connections, judged from one end.

A split point acknowledges what an application further away answers. So its answers come later than the transport's
round trips by the *hidden leg*, from the split point to the application, which end to end is not there.

`detection` has the steps in order: captures as `columns`; the `sides` to judge; `members`, which are far hosts, in
groups by `networks` and port; `side_posteriors`, which weighs what each side shows; `classes` and `judging`, which make
explanations and results of it, in the figures of `pools`; and `connections`. What is weighed is in four packages:
`senders` (packets tell who made them), `likelihoods` (how probable what is seen is under each hypothesis of one
member), `hypotheses` (the same of whole groups, and posteriors) and `reasons` (findings and sentences).
"""
