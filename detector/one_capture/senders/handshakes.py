"""Handshakes that something answers for a host: SYN proxies and SYN cookies of firewalls, which split no connection.

A SYN proxy (netfilter's SYNPROXY, FreeBSD pf's `synproxy state`, scrubbing centres) completes the handshake with the
client, then makes one with the host, and from then on only moves sequence numbers: data and their acknowledgements
cross the whole path. So what is compared with a handshake is falsified. That data take longer than the handshake is
weighed by `likelihoods.answered_handshakes`; here are the signs of the handshake itself:

- its SYN-ACK comes from another place (hop limit) than what follows, and has another stack's options;
- its window is 0 (netfilter and pf: no data before the host agreed), which a host's listening socket never advertises.

At the server's side the proxy's own SYN arrives in the client's name: again with another hop limit than the data.

What this cannot see: a proxy in the same place as the host's stack (Linux' own cookies keep hop limit and window), or
one that copies window and hop limit. Another path for the SYN than for data (policy routing, a tunnel for one of both)
changes hop limits, too.
"""

from __future__ import annotations

import numpy as np

from detector.one_capture.members import Floats, Ints, shares
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders


def answered_share(senders: Senders, far: Direction, member: Ints, members: int) -> Floats:
    """By member: the share of its handshakes that a box in the path made, by the sign that shows most; NaN where none
    was captured with packets after it.

    `far` is the direction that the far host sends in (down in captures at the client's side), `member` that of each
    connection.
    """
    rows = slice(int(far), None, 2)
    syn, later = senders.syn_hop_limit[rows], senders.hop_limit[rows]
    is_seen = (syn >= 0) & (later >= 0)
    signs = later != syn, senders.syn_window[rows] == 0
    return np.fmax(*(shares(sign, is_seen, member, members) for sign in signs))
