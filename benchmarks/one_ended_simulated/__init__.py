"""One-ended networks by the thousand: small connections with turns, simulated packet by packet, captured, with truth.

A network is a random draw from a seed: clients behind an access link, a middle (nothing, NAT, relay, cache, TLS
interception, SYN proxy, tunnel), servers at several distances, some behind a balancer. It shares no code with the
detector and none with the simulator of bulk transfers (`reference_sim`), whose endpoints have no turns.
"""
