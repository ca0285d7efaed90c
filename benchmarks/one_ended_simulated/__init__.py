"""One-ended networks by the thousand: small connections with turns, simulated packet by packet, captured, with truth.

A network is a random draw from a seed and a number: clients behind an access link (fibre, cable, WLAN, NR, LTE, UMTS,
satellites), a middle (nothing, NAT, relay, cache, TLS interception, SYN proxy, tunnel), servers at several distances,
some behind a balancer or a web front end. Connections are TLS 1.2 and 1.3, HTTP/1.1, requests asked together, mail,
SSH, with pings beside them. About ten networks a second on one free core. It shares no code with the detector and none
with the simulator of bulk transfers (`reference_sim`), whose endpoints have no turns.

`DIR/n00000/` holds a capture for each place (`client`, `between`, `s1`, `s1b` behind the balancer of `s1`) and
`truth.json`, which says of each group and host what is split, where, and both round trips (medians of small packets on
the awake, empty path). One network in twenty is a server's capture of 200 clients of 20 prefixes, 6 of them split. What
makes a network hard (a client that always thinks, a slow device, a slow server, a late capture) is in its `hard`. With
`--crowds` networks are of another kind, with seeds of their own: 4 to 32 clients at one public address, most of them
with an access link each, at a NAT that keeps their ports or changes them, or at a relay.

- `events.py`, `channels.py`, `access.py`: virtual time; one direction of a link; access links by technology.
- `devices.py`: clients on which all answers of one moment wait together.
- `packets.py`, `endpoints.py`, `habits.py`, `stacks.py`: TCP, and what operating systems do of their own.
- `tls.py`, `talks.py`, `shell.py`, `applications.py`: what both sides say, after what, and how long they take.
- `boxes.py`, `routes.py`, `assembly.py`, `echo.py`: relays and SYN proxies; a connection laid over links and taps;
  pings.
- `machines.py`: what connections of one client share: a timestamp clock, a counter of IP identifications.
- `scenario.py`, `draws.py`, `crowds.py`, `sessions.py`: a network as data; its draw.
- `run.py`, `captures.py`, `truth.py`: the run; its captures; what is true of each.

Limits: slow start and timeouts, but no recovery by SACK; retries in cells are independent of each other; a person never
aborts; no proxy shares a connection to a server between clients; what is encrypted is the same bytes over again.
"""
