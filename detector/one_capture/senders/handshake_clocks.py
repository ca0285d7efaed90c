"""The clock of the handshake beside that of what follows: timestamps tell that a SYN proxy made the SYN-ACK.

TSval counts a host's ticks (RFC 7323, section 5.4), so that packets of one host, captured d apart, differ by d in
TSval, but for what the path varies. A SYN proxy (netfilter's SYNPROXY) has no tick of the host when it answers the SYN.
It sends one of its own, asks the host once the client has acknowledged that, and from then on shifts the host's
timestamps so that its SYN-ACK would have had the proxy's (`tsoff` in `nf_synproxy_core.c`). The host's clock began one
round trip to the client and one to the host later than the proxy's, so that all that follows is *behind* by both:

    lag = (t_later - t_SYN-ACK) - (TSval_later - TSval_SYN-ACK) / rate

is 0 for one host, and for a proxy the handshake's round trip and the path behind it. A proxy that offers timestamps for
a host that has none shows, too: no later packet bears any. A split point's packets are its own, and have no lag.

What this cannot see: proxies that offer no timestamps (FreeBSD pf), or shift them by what their own clock shows when
the host answers. Cookies in a TSval (Linux) only ever take up to 64 ticks away, so that what follows seems early.
"""

from __future__ import annotations

import numpy as np

from detector.one_capture.members import Floats, Ints, shares
from detector.one_capture.senders.clocks import COUNTER, tick_rates_hz
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders

#: What follows is behind where it lags by more than this share of the handshake's round trip: halfway between a host's
#: own handshake and a proxy's that stands beside the host.
_LAGS = 0.5

#: Two timestamps differ by a tick more or less than what passed; a lag must be longer than that to show.
_TICKS = 2.0

#: So many packets without timestamps behind a SYN-ACK that offers them are none of its sender's.
_UNTICKED_PACKETS = 2


def lagging_share(senders: Senders, handshake_s: Floats, far: Direction, member: Ints, members: int) -> Floats:
    """By member: the share of its connections in which the far end's timestamps lag behind those of its SYN (SYN-ACK).

    `far` is the direction that the far end sends in, `handshake_s` the least handshake of each member, `member` that of
    each connection. NaN where no connection tells.
    """
    rows = slice(int(far), None, 2)
    rate_hz, least_s = tick_rates_hz(senders, far, member, members)[member], handshake_s[member] * _LAGS
    syn_ns, syn_tsval = senders.syn_ns[rows], senders.syn_tsval[rows]
    lag_s = np.fmin(*(
        (at_ns[rows] - syn_ns) / 1e9 - _ticks(tsval[rows] - syn_tsval) / rate_hz
        for at_ns, tsval in (
            (senders.first_tick_ns, senders.first_tsval), (senders.last_tick_ns, senders.last_tsval),
        )
    ))  # fmt: skip
    offered, ticked = syn_tsval >= 0, senders.ticked_packets[rows] > 0
    unticked = offered & ~ticked & (senders.later_packets[rows] >= _UNTICKED_PACKETS)
    timed = offered & ticked & (least_s > _TICKS / rate_hz)
    return shares(unticked | (timed & (lag_s > least_s)), unticked | timed, member, members)


def _ticks(difference: Ints) -> Ints:
    """What a counter of 32 bits went on by, or back."""
    half = COUNTER // 2
    return (difference + half) % COUNTER - half
