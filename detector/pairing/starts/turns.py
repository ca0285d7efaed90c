"""Whether answers take longer at one of two captures throughout, as one transfer's do at its client's side.

What an answer takes there holds what it takes at the server's side, whatever the clocks' offset and the path are. Of
strangers either host may be the slower, from connection to connection. By how much the times of a capture err is not
known beforehand, but handshakes err by as much and vary by more: the SYN-ACKs that a capture shows after their SYNs, or
the ACKs after these, within a few tens of microseconds of each other where it is taken at a host. They do not show it
where they all fall into one tick of the clock. Two clocks drift apart while an answer is awaited.

Of n pairs whose answers differ by more than that, k are slower on the side where fewer are. One transfer each: a share
s that lost a first copy, k / n or one in twenty if that is less. Strangers: any share alike (Laplace's rule of
succession). The log-likelihood ratio

    k ln s + (n - k) ln (1 - s) + ln (n + 1) + ln C(n, k)

only speaks against one transfer, since a host of strangers may always be the slower one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from detector.clocks.capture_ticks import TICKING_SHARE
from detector.pairing.starts.clock_bounds import CONTRADICTION_NATS, TIME_ERROR_NS, Pair
from detector.pairing.starts.quantiles import quantiles
from detector.pairing.starts.times import CLOCK_DRIFT
from pepscope.captures.connections import Connection

#: Of fewer handshakes the rarest are not seen.
_FEWEST = 8


def turns_nats(pairs: Sequence[Pair]) -> float:
    """Log-likelihood ratio (nats) for one transfer each against strangers, by which capture shows longer answers; never
    positive. Answers that are awaited at one time in either capture count once."""
    error_ns = sum(_error_ns([pair[side] for pair in pairs]) for side in range(2))
    awaited = _awaited_ns(pairs)
    return one_side_nats([longer for longer, took in awaited if abs(longer) > error_ns + CLOCK_DRIFT * took])


def one_side_nats(longer_ns: Collection[float]) -> float:
    """The same, by how much longer (ns) one capture shows each answer, of those that differ by more than times err."""
    count, against = len(longer_ns), min(sum(ns > 0 for ns in longer_ns), sum(ns < 0 for ns in longer_ns))
    if not against:
        return 0.0
    share = min(against / count, math.exp(CONTRADICTION_NATS))
    one_transfer = against * math.log(share) + (count - against) * math.log1p(-share)
    ways = math.lgamma(count + 1) - math.lgamma(against + 1) - math.lgamma(count - against + 1)
    return min(0.0, one_transfer + math.log(count + 1) + ways)


def _awaited_ns(pairs: Iterable[Pair]) -> list[tuple[float, float]]:
    """By how much answers take longer in the first capture, and how long they take (ns); the means of those that are
    awaited at one time, as one cause may delay them, and equal transfers may be paired crosswise.

    Pairs of other lengths are left out: the first data of both captures may be different ones.
    """
    turns = (map(_turn, pair) for pair in pairs if _is_of_equal_lengths(*pair))
    seen = [(one, two) for one, two in turns if one and two]
    awaited: list[list[tuple[int, int]]] = []
    last_ns = [-math.inf, -math.inf]
    for one, two in sorted(seen, key=lambda turn: turn[0][0] + turn[1][0]):
        if min(one) > last_ns[0] and min(two) > last_ns[1]:
            awaited.append([])
        last_ns = [max(last_ns[0], *one), max(last_ns[1], *two)]
        took = one[1] - one[0], two[1] - two[0]
        awaited[-1].append((took[0] - took[1], max(map(abs, took))))
    return [
        (sum(longer for longer, _ in each) / len(each), sum(took for _, took in each) / len(each)) for each in awaited
    ]


def _turn(connection: Connection) -> tuple[int, int] | None:
    """When the first data pass up and down (ns); down is before up where the server speaks first."""
    up_ns, down_ns = connection.up.first_data_time_ns, connection.down.first_data_time_ns
    return None if up_ns is None or down_ns is None else (up_ns, down_ns)


def _is_of_equal_lengths(one: Connection, two: Connection) -> bool:
    return (one.up.stream_bytes, one.down.stream_bytes) == (two.up.stream_bytes, two.down.stream_bytes)


def _error_ns(connections: Sequence[Connection]) -> float:
    """By how much a time between two packets of a capture errs at most (ns): less than its handshakes vary by, and not
    less than its clock ticks."""
    to_syn_ack_ns = [took_ns for each in connections if (took_ns := each.handshake_syn_ack_ns) is not None]
    to_ack_ns = [took_ns for each in connections if (took_ns := each.handshake_ack_ns) is not None]
    answered_ns = [turn[1] - turn[0] for turn in map(_turn, connections) if turn]
    spreads_ns = [_spread_ns(half_ns) for half_ns in (to_syn_ack_ns, to_ack_ns) if len(half_ns) >= _FEWEST]
    return max(min([*spreads_ns, TIME_ERROR_NS]), _tick_ns([*to_syn_ack_ns, *to_ack_ns, *answered_ns]))


def _tick_ns(took_ns: Sequence[int]) -> float:
    """By how much a clock ticks (ns), by times between packets: no less than these differ by. Where many packets have
    the time of the one before, the least time that passes otherwise: ticks of a clock that is adjusted differ a little,
    and so do sums of them."""
    steps_ns = [more - less for less, more in pairwise(sorted(set(took_ns)))]
    passed_ns = [abs(each) for each in took_ns if each]
    if len(took_ns) - len(passed_ns) >= TICKING_SHARE * max(len(took_ns), 1):
        return min(passed_ns, default=math.inf)
    return min(steps_ns, default=0)


def _spread_ns(times_ns: Sequence[int]) -> float:
    """Between the extremes, but for the one in twenty at either end."""
    least_ns, most_ns = quantiles(times_ns, [0.05, 0.95])
    return float(most_ns - least_ns)
