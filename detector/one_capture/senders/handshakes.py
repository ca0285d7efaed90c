"""Handshakes that something answers for a host: SYN proxies and SYN cookies of firewalls, which split no connection.

A SYN proxy (netfilter's SYNPROXY, FreeBSD pf's `synproxy state`, scrubbing centres) completes the handshake with the
client, then makes one with the host, and from then on only moves sequence numbers: data and their acknowledgements
cross the whole path. So what is compared with a handshake is falsified, and the handshake itself tells:

- its round trip is far below that of any data of the same host, where a split's data are as near as its handshake;
- its SYN-ACK comes from another place (hop limit) than what follows, and has another stack's options;
- its window is 0 (netfilter and pf: no data before the host agreed), which a host's listening socket never advertises.

Cookies in its timestamp move that by up to 64 ticks (Linux), which is within what a path varies: no sign.

At the server's side the proxy's own SYN arrives in the client's name: again with another hop limit than the data.

What this cannot see: a proxy in the same place as the host's stack (Linux' own cookies keep hop limit and window), or
one that copies window and hop limit. Another path for the SYN than for data (policy routing, a tunnel for one of both)
changes hop limits too, but neither window nor round trip.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.members import Floats, Ints, quantiles, seconds, shares
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import RoundTripColumns
from pepscope.captures.senders import Senders


class HandshakeSigns(Struct, frozen=True):
    """One element a connection; NaN stands for what was not seen."""

    hop_limit_step: Floats  # later packets' hop limit less the SYN's (SYN-ACK's)
    is_shut: npt.NDArray[np.bool_]  # the SYN's (SYN-ACK's) window is 0
    is_seen: npt.NDArray[np.bool_]  # the SYN (SYN-ACK) was captured, and packets after it
    early_s: Floats  # by how much the handshake was shorter than the least round trip of data


def handshake_signs(senders: Senders, round_trips: RoundTripColumns, far: Direction) -> HandshakeSigns:
    """Signs of each connection that a box in the path made the far end's part of the handshake.

    `far` is the direction that the far host sends in: down in captures at the client's side.
    """
    rows = slice(int(far), None, 2)
    syn, later = senders.syn_hop_limit[rows].astype(np.float64), senders.hop_limit[rows].astype(np.float64)
    is_seen = (syn >= 0) & (later >= 0)
    asked = slice(1 - int(far), None, 2)  # the round trips of what the near end sent
    handshake_s, data_s = seconds(round_trips.handshake_ns[asked]), seconds(round_trips.least_of_all_ns[asked])
    return HandshakeSigns(
        hop_limit_step=np.where(is_seen, later - syn, np.nan),
        is_shut=is_seen & (senders.syn_window[rows] == 0),
        is_seen=is_seen,
        early_s=data_s - handshake_s,
    )


class MemberHandshakes(Struct, frozen=True):
    """One element a member; NaN where nothing was seen. Shares are of its connections."""

    moved_share: Floats  # the hop limit changes behind the handshake
    shut_share: Floats  # the handshake's window is 0
    early_s: Floats  # least round trip of data less the middle handshake: the part of the path that handshakes lack

    @property
    def answered_share(self) -> Floats:
        """The share of handshakes that a box in the path answered, by the sign that shows most."""
        return np.fmax(self.moved_share, self.shut_share)


def member_handshakes(
    signs: HandshakeSigns, handshake_s: Floats, near_s: Floats, member: Ints, members: int
) -> MemberHandshakes:
    """Signs by member. `handshake_s` is by connection, `near_s` (least round trip of data) and results by member."""
    return MemberHandshakes(
        moved_share=shares(signs.hop_limit_step != 0, signs.is_seen, member, members),
        shut_share=shares(signs.is_shut, signs.is_seen, member, members),
        early_s=near_s - quantiles(handshake_s, member, members, 0.5),
    )


class Ranges(Struct, frozen=True):
    """How far members of one group differ, largest less least, by group; NaN below two members (s)."""

    members: Ints  # of which both are known
    handshake_s: Floats
    other_s: Floats


def ranges(handshake_s: Floats, other_s: Floats, group: Ints, groups: int) -> Ranges:
    """Ranges over members of their handshakes, and of another measure of their distance (exchange times, references).

    One box that answers for hosts at different distances has the first small and the second large. So has a SYN proxy
    (see above), and one site whose applications take different times: the other measure must not be thinking time.
    """
    known = ~np.isnan(handshake_s) & ~np.isnan(other_s)
    count = np.bincount(group[known], minlength=groups)
    return Ranges(count, _range(handshake_s, known, group, groups, count), _range(other_s, known, group, groups, count))


def _range(values: Floats, known: npt.NDArray[np.bool_], group: Ints, groups: int, count: Ints) -> Floats:
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, group[known], values[known])
    np.maximum.at(most, group[known], values[known])
    return np.where(count > 1, most - least, np.nan)
