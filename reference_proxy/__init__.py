"""A real proxy of every kind that splits TCP connections, with its truth; see docs/guide/reference-proxy.md.

`split` relays both ways at once, `store_and_forward` and `http_exchange` take objects whole first,
`window_adaptation` sends to the mobile what a control law allows, `udp_tunnel` carries the mobile leg in datagrams.
`interception` tells how the server that a client wishes for becomes known, `service` runs it all.
"""
