"""A one-ended laboratory: networks between real kernels, drawn from a seed, captured so that one end must suffice.

A network has clients behind a drawn access link (fibre, WLAN, NR, LTE, UMTS, satellite, sleeping LTE, losses), a middle
(nothing, NAT, VPN exit, SYN proxy, one of twenty kinds of relays, caches, TLS ends and local acknowledgement, some on
some ports or for some client networks only), and servers at up to five distances, some behind a load balancer or a web
front end, some slow. It takes seven seconds, three at once on half a core.

`DIR/ID/` gets a capture for each client, server, balancer's backend and sometimes the middle, and `truth.json`:

- `lateness_p99_s`, `waking_p99_s`, `late`: how late (99 of 100) the emulator gave packets out and processes woke up;
  `late` above 5 ms.
- `captures[].side`: `client`, `server`, or `between` (a face of the middle).
- `captures[].groups[]`: what is true by client network and port; with `host` null where all hosts agree, then by host
  (the server's address at a client, the seen client's address at a server). Of a group:
  - `stretch`: what is judged, the path towards the `server` or towards the `client`;
  - `class`, `where`, `mechanism`: `regular`, `split` or `syn-proxy`; in the `network` or at the `server`'s site;
    `relay`, `cache`, `balancer`, ...;
  - `hidden_round_trip_s`, `near_round_trip_s`: a small packet's on idle links, on average; by host where they differ;
    `hidden_round_trip_range_s` where several hosts share an address;
  - `cache`, `thinks`, `handshake_answered`: the middle may answer from a cache; the far application waits before each
    HTTP answer (client: each answer); a SYN proxy answers handshakes whatever the class.
- `plan`: everything that was drawn.

All hosts share one kernel; hosts' timestamp clocks (rate, offset, drift) are therefore written into the captures
afterwards. Initial sequence numbers and IP IDs still come from one machine. `python -m benchmarks.one_ended.check
DIR...` compares the handshakes at both ends of every client connection with the truth.

It needs `nginx`, `haproxy`, `tcpdump`, `ethtool`, and for all kinds of middles `squid`, `redsocks`, `microsocks`,
`tinyproxy`, `varnish`, `stunnel4`, `hitch`, `libnginx-mod-stream` and `chromium`.
"""
