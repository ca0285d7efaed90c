"""Under which offset of two captures' clocks what pairs of connections say left before it arrived.

What a client sends passes the client's capture first, what it is answered the server's: each pair bounds the offset
from both sides. One offset lies within the bounds of all pairs that are one transfer.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from detector.pairing.starts.agreement import TOGETHER_NS, first_data_ns
from detector.pairing.starts.times import START_SPREAD_NS
from pepscope.captures.connections import Connection, FlowSummary

Pair = tuple[Connection, Connection]

#: Share of pairs that are surely one transfer each whose data one offset explains, unless a clock was set.
_SURE_SHARE = 0.9

#: Times of a capture may be wrong by this much.
TIME_ERROR_NS = 1_000_000

#: One of twenty pairs that are one transfer contradicts the others: a capture lost the first copy of a datum.
CONTRADICTION_NATS = math.log(0.05)


class Clocks(Struct, frozen=True):
    """What is known of the second capture's clock minus the first's: the likeliest offset, how far the truth may be
    from it, and from when to when both captures ran by the first one's clock; all in nanoseconds."""

    offset_ns: int
    slack_ns: float
    drift_ns: float
    began_ns: int
    ended_ns: int


class Bounds(Struct, frozen=True):
    """The offsets (ns) under which what one pair says left before it arrived.

    `least_ns` and `most_ns`: the same of a proxy that says something of its own first, and waits as long as it likes.
    """

    low_ns: float
    high_ns: float
    least_ns: float
    most_ns: float

    @property
    def is_possible(self) -> bool:
        """Whether any offset lies within."""
        return self.low_ns <= self.high_ns

    def is_near(self, low_ns: float, high_ns: float) -> bool:
        """Whether the pair, possible or not, begins together with pairs between these offsets."""
        near, far = sorted((self.low_ns, self.high_ns))
        return near <= high_ns + TOGETHER_NS and far >= low_ns - TOGETHER_NS


def narrowed(clocks: Clocks, sure: Sequence[Pair]) -> Clocks:
    """The clocks as data of pairs that are surely one transfer each relate them; as they were if these do not agree,
    since a clock was set."""
    _, (held, low_ns, high_ns) = held_bounds([[pair] for pair in sure], clocks)
    if not held or held < _SURE_SHARE * len(sure):
        return clocks
    return replace(clocks, offset_ns=round((low_ns + high_ns) / 2), slack_ns=(high_ns - low_ns) / 2)


def held_bounds(
    pairings: Sequence[Sequence[Pair]], clocks: Clocks
) -> tuple[list[list[Bounds]], tuple[int, float, float]]:
    """The bounds of all pairs and what `_most_held` says of them, with the first capture on the clients' side or on the
    servers', whichever more pairings agree on, or allow, or by more, or whose bounds are wider, as answers are longer
    there; on the other side of those servers whose pairs agree more often so, since hosts that serve each other also
    ask each other."""
    sides = [_bounds(pairings, clocks, first_at_client) for first_at_client in (True, False)]

    def agreement(bounds: Sequence[Sequence[Bounds]]) -> tuple[int, int, float, float]:
        held, low_ns, high_ns = _most_held(bounds, clocks)
        allowed, together_ns = sum(which_allow(bounds, low_ns, high_ns)), high_ns - low_ns if held else 0.0
        return held, allowed, together_ns, sum(b.high_ns - b.low_ns for each in bounds for b in each)

    bounds, others = sorted(sides, key=agreement, reverse=True)
    of_servers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, ((one, two), *_) in enumerate(pairings):
        of_servers[one.server_address, two.server_address].append(place)
    for places in of_servers.values():
        if len(of_servers) > 1 and _held(bounds, places, clocks) < _held(others, places, clocks):
            for place in places:
                bounds[place] = others[place]
    return bounds, _most_held(bounds, clocks)


def _held(bounds: Sequence[Sequence[Bounds]], places: Sequence[int], clocks: Clocks) -> int:
    """How many of the pairings at these places hold one offset."""
    return _most_held([bounds[place] for place in places], clocks)[0]


def which_allow(bounds: Sequence[Sequence[Bounds]], low_ns: float, high_ns: float) -> list[bool]:
    """Which pairings allow some of these offsets, if a proxy may have waited."""
    return [any(b.least_ns <= high_ns and b.most_ns >= low_ns for b in each) for each in bounds]


def _bounds(pairings: Iterable[Sequence[Pair]], clocks: Clocks, first_at_client: bool) -> list[list[Bounds]]:
    """The bounds of all pairs if the first capture is that of the clients' side; some hold no offset."""
    return [[_bounds_of(*pair, clocks, first_at_client) for pair in pairing] for pairing in pairings]


def _bounds_of(one: Connection, two: Connection, clocks: Clocks, first_at_client: bool) -> Bounds:
    ways = [(one.up, two.up), (one.down, two.down)]
    later, earlier = ways if first_at_client else ways[::-1]
    after_ns, before_ns = _first_gap_ns(*later), _first_gap_ns(*earlier)
    if before_ns is not None:
        low = before_ns
    elif after_ns is not None:
        low = after_ns - 2 * START_SPREAD_NS
    else:
        low = first_data_ns(two) - first_data_ns(one) - START_SPREAD_NS
    high = after_ns if after_ns is not None else low + 2 * START_SPREAD_NS
    least = low if before_ns is not None else min(low, _last_gap_ns(*earlier, low))
    most = high if after_ns is not None else max(high, _last_gap_ns(*later, high))
    error_ns = TIME_ERROR_NS + clocks.drift_ns
    return Bounds(low - error_ns, high + error_ns, least - error_ns, most + error_ns)


def _first_gap_ns(one: FlowSummary, two: FlowSummary) -> int | None:
    """From the first datum at the first capture to that at the second one; None where they may be different data: a
    proxy has a dialogue of its own before it, and puts a header in front."""
    if one.first_data_time_ns is None or two.first_data_time_ns is None or one.stream_bytes != two.stream_bytes:
        return None
    return two.first_data_time_ns - one.first_data_time_ns


def _last_gap_ns(one: FlowSummary, two: FlowSummary, unknown_ns: float) -> float:
    """The same of the last datum, which is the same whatever a proxy puts in front."""
    if one.last_data_time_ns is None or two.last_data_time_ns is None:
        return unknown_ns
    return two.last_data_time_ns - one.last_data_time_ns


def _most_held(bounds: Sequence[Sequence[Bounds]], clocks: Clocks) -> tuple[int, float, float]:
    """By how many pairings the offset is held that most hold, and the least and the greatest of such offsets, next to
    each other and nearest to the expected one; no numbers where none holds any."""
    least, most = clocks.offset_ns - clocks.slack_ns, clocks.offset_ns + clocks.slack_ns
    steps = sorted(
        step
        for number, each in enumerate(bounds)
        for b in each
        if b.is_possible and b.low_ns <= most and b.high_ns >= least
        for step in ((max(b.low_ns, least), 0, number), (min(b.high_ns, most), 1, number))
    )
    holding = Counter[int]()
    held = highest = 0
    low = best_low = best_high = math.nan
    best_away = math.inf
    for offset, is_end, number in steps:
        before = held
        held -= holding[number] > 0
        holding[number] += -1 if is_end else 1
        held += holding[number] > 0
        if held > before and held >= highest:
            low, best_away = offset, math.inf if held > highest else best_away
            highest = held
        elif held < before == highest and (away := distance_ns(clocks.offset_ns, low, offset)) < best_away:
            best_low, best_high, best_away = low, offset, away
    return highest, best_low, best_high


def distance_ns(offset: float, low: float, high: float) -> float:
    """How far an offset is from an interval."""
    return max(0.0, low - offset, offset - high)
