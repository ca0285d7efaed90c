"""Hypotheses for groups, and how probable what their members show is under each.

`side_evidence` has what one side shows weighed. `member_nats` says what a member's exchanges show by themselves, by
ways of being end to end and behind a leg; `splits` and `group_exchanges` what those of a group do together;
`transport_nats` what near legs and handshakes show beside them; `posteriors` puts all of it together.
`other_connections` and `alike_ports` let connections of a group, and ports of a network, speak for each other.
"""
