"""Archives that can be shared: hosts and payload are hidden, what verdicts rest on stays.

Everything is rewritten under one key, which is thrown away unless its owner keeps it, so that equal things stay equal
over both captures of a task and over all tasks of a run:

- addresses by Crypto-PAn (`crypto_pan`), which keeps common prefixes and nothing else;
- hardware addresses, tunnel identifiers (GTP-U, GRE, VXLAN, Geneve, L2TP) and what TCP and IP options hold by keyed
  hashes;
- payload byte by byte, each byte by a keyed hash of itself and the seven bytes that follow it in the stream
  (`stream_bytes`), so that the result depends on the content alone, not on how it was cut into segments, where in the
  stream it stands, or which capture holds it; the head of HTTP keeps its protocol's own words (`http_heads`);
- texts of observations, manifest and metadata (`texts`).

Kept, because verdicts are based on them: times, sizes, ports, sequence numbers, TCP timestamps, IP identifiers, TTLs,
flags and windows. What is no TCP or UDP over IP is left out. Fragments of IP datagrams are put together, rewritten as a
whole and cut again at the same places; of a datagram of which fragments are missing only headers are kept, and zeros
for its payload.
"""
