"""One clock for many hosts: TCP timestamps of hosts that cannot share a clock, and do.

TSval counts ticks of a clock that starts anywhere (RFC 7323, section 5.4; Kohno et al., IEEE S&P 2005, tell hosts by
it). Each connection gives the moment at which its counter would have been zero, z = t - TSval / rate. Where a host has
one counter, or one for each pair of addresses (Linux 4.10), the moments of its connections agree but for delays. Two
counters of 32 bits agree within d seconds by chance with probability 2 d rate / 2^32: 5e-8 for 100 ms
at 1 kHz. So hosts that share a zero are one machine.

What this cannot see: Linux draws an offset for each pair of addresses since 4.10, and 6.18 was seen to draw one for
each connection, so split points that run it show as many clocks as hosts, or none: different clocks say nothing. One
machine may also truly have many addresses (sites of one hoster), a SYN proxy shifts the timestamps of the hosts behind
it to its own clock, and hosts without timestamps have no clock. Clocks drift by up to 0.1 ms a second, so that hosts
met some 15 minutes apart may not seem to share one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.clocks.host_clock import RATE_TOLERANCE, STRETCH_TICKS, TICK_RATES_HZ
from detector.one_capture.members import Floats, Ints, quantiles
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders

#: Values of a TSval.
COUNTER = 1 << 32

#: Counters whose zero is as near to the epoch (s) count its time: hosts whose clocks NTP sets agree in it.
_WALL_CLOCK_S = 2.0


class MemberClocks(Struct, frozen=True):
    """One element a member; NaN where its timestamps do not tell."""

    rate_hz: Floats  # nominal: one of those that stacks use
    zero_s: Floats  # middle moment at which its connections' counters were zero, since the epoch, modulo a whole turn
    blur_s: Floats  # from there to 90 % of its connections: delays, or a counter for each connection
    connections: Ints  # that this is known of


def member_clocks(senders: Senders, far: Direction, member: Ints, members: int) -> MemberClocks:
    """The clocks of far hosts, from the first and the last timestamp of each of their connections."""
    rows = slice(int(far), None, 2)
    first_ns, rate_hz = senders.first_tick_ns[rows], tick_rates_hz(senders, far, member, members)
    of_connection = np.where(member >= 0, rate_hz[member], np.nan)
    seen = senders.ticked_packets[rows] > 0
    turn_s = COUNTER / of_connection
    zero_s = np.where(seen, (first_ns / 1e9 - senders.first_tsval[rows] / of_connection) % turn_s, np.nan)
    # Around the first one of each member, so that none is a whole turn away from the others.
    around = np.full(members, np.nan)
    known = np.flatnonzero(~np.isnan(zero_s) & (member >= 0))[::-1]
    around[member[known]] = zero_s[known]
    centre = np.where(member >= 0, around[member], np.nan)
    away_s = (zero_s - centre + turn_s / 2) % turn_s - turn_s / 2
    middle_s = quantiles(away_s, member, members, 0.5)
    blur_s = quantiles(np.abs(away_s - np.where(member >= 0, middle_s[member], np.nan)), member, members, 0.9)
    return MemberClocks(rate_hz, around + middle_s, blur_s, np.bincount(member[known], minlength=members))


def tick_rates_hz(senders: Senders, far: Direction, member: Ints, members: int) -> Floats:
    """By member: ticks a second of its timestamps, one of those that stacks use; NaN where they do not tell."""
    rows = slice(int(far), None, 2)
    first_ns, last_ns = senders.first_tick_ns[rows], senders.last_tick_ns[rows]
    ticks = (senders.last_tsval[rows] - senders.first_tsval[rows]) % COUNTER
    told = (senders.ticked_packets[rows] > 1) & (ticks >= STRETCH_TICKS) & (ticks < COUNTER / 2) & (last_ns > first_ns)
    measured = np.full(len(ticks), np.nan)
    np.divide(ticks * 1e9, last_ns - first_ns, out=measured, where=told)
    return _nominal(quantiles(measured, member, members, 0.5))


def _nominal(measured: Floats) -> Floats:
    rates = np.asarray(TICK_RATES_HZ)
    distance = np.abs(measured[:, None] / rates[None] - 1.0)
    nearest = rates[np.argmin(np.nan_to_num(distance, nan=np.inf), axis=1)]
    return np.where(np.nanmin(np.nan_to_num(distance, nan=np.inf), axis=1) <= RATE_TOLERANCE, nearest, np.nan)


class SharedClocks(Struct, frozen=True):
    """Clocks that members of one group have in common."""

    known: Ints  # by group: members whose clock is known
    sharing: Ints  # by group: how many of them share one at most, 1 where each has its own
    shares: npt.NDArray[np.bool_]  # by member: whether it is one of these


def shared_clocks(clocks: MemberClocks, member_group: Ints, groups: int, tolerance_s: float) -> SharedClocks:
    """The members of each group whose clocks agree within `tolerance_s`, the most that do; those that blur more, and
    those that count from the epoch, are left out.

    A tolerance of what round trips vary is enough; the larger, the likelier is chance.
    """
    turn_s = COUNTER / clocks.rate_hz
    from_epoch_s = np.abs((clocks.zero_s + turn_s / 2) % turn_s - turn_s / 2)
    usable = np.flatnonzero((from_epoch_s > _WALL_CLOCK_S) & (clocks.blur_s <= tolerance_s))
    known = np.bincount(member_group[usable], minlength=groups)
    sharing, shares = np.minimum(known, 1), np.zeros(len(member_group), np.bool_)
    order = usable[np.lexsort((clocks.zero_s[usable], clocks.rate_hz[usable], member_group[usable]))]
    kinds = np.stack([member_group[order].astype(np.float64), clocks.rate_hz[order]])
    starts = np.flatnonzero(np.any(np.diff(kinds, axis=1, prepend=np.nan) != 0, axis=0))
    widest: dict[int, Ints] = {}
    for one in np.split(order, starts[1:]):
        if len(one) > 1:
            zero_s = clocks.zero_s[one]
            within = np.searchsorted(zero_s, zero_s + tolerance_s, side="right") - np.arange(len(one))
            first, group = int(within.argmax()), int(member_group[one[0]])
            if within[first] > sharing[group]:
                sharing[group], widest[group] = within[first], one[first : first + within[first]]
    for members in widest.values():
        shares[members] = True
    return SharedClocks(known, sharing, shares)


def chance(hosts: int, sharing: int, rate_hz: float, tolerance_s: float) -> float:
    """At most how probable it is that so many of these hosts have zeros within the tolerance, if counters are
    independent: the expected number of such sets, C(n, k) k (d rate / 2^32)^(k - 1)."""
    ways = math.lgamma(hosts + 1) - math.lgamma(sharing + 1) - math.lgamma(hosts - sharing + 1) + math.log(sharing)
    return math.exp(min(0.0, ways + (sharing - 1) * math.log(tolerance_s * rate_hz / COUNTER)))
