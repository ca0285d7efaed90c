"""Whether connections to two servers that say the same are one transfer each, or those of strangers.

Programs say the same to different servers, in their clients' own time. Of pairs that have nothing but content in common
each alone cannot be told from two such connections that were near each other by chance. Together they can, since two
captures have one clock relation and data do not arrive before they are sent: what a client sends passes the client's
capture first, what it is answered the server's. Each pair so bounds the clock offset from both sides (`_Bounds`). One
offset lies within the bounds of all pairs that are one transfer; of strangers those agree on one that happen to.

With k of the n connections that may have a counterpart, under the offset that most agree on,

- one transfer each: the other capture may lack any number of them, so that k is anything from 1 to n alike; one that
  both have and that contradicts the others is one in twenty;
- strangers: k is what chance brings near each other. The mean at any one offset is the number of pairs of connections
  alike times the mean width of the bounds over the time in which they may be; the probability of k or more is at most
  Chernoff's bound of a Poisson variable, times the number of offsets that are as near to the expected one;
- strangers whose programs start by one timetable, in so far as the starts that agree repeat intervals
  (`starts.timetable`): the first of them by chance, and of the others those alone that are new.

Connections that begin together count as one: a page that is loaded again brings all of its connections.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.pairing.starts.agreement import TOGETHER_NS, first_data_ns
from detector.pairing.starts.times import START_SPREAD_NS
from detector.pairing.starts.timetable import repetition
from pepscope.captures.connections import Connection, FlowSummary

Pair = tuple[Connection, Connection]

#: One of twenty pairs that are one transfer contradicts the others' clock: a capture lost the first copy of a datum.
CONTRADICTION_NATS = math.log(0.05)

#: Share of pairs that are surely one transfer each whose data one offset explains, unless a clock was set.
_SURE_SHARE = 0.9

#: Times of a capture may be wrong by this much.
_TIME_ERROR_NS = 1_000_000


class Clocks(Struct, frozen=True):
    """What is known of the second capture's clock minus the first's: the likeliest offset, how far the truth may be
    from it, and from when to when both captures ran by the first one's clock; all in nanoseconds."""

    offset_ns: int
    slack_ns: float
    drift_ns: float
    began_ns: int
    ended_ns: int


class _Bounds(Struct, frozen=True):
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


def narrowed(clocks: Clocks, sure: Sequence[Pair]) -> Clocks:
    """The clocks as data of pairs that are surely one transfer each relate them; as they were if these do not agree,
    since a clock was set."""
    _, (held, low_ns, high_ns) = _best_side([[pair] for pair in sure], clocks)
    if not held or held < _SURE_SHARE * len(sure):
        return clocks
    return replace(clocks, offset_ns=round((low_ns + high_ns) / 2), slack_ns=(high_ns - low_ns) / 2)


def one_transfer_nats(
    pairings: Sequence[Sequence[Pair]], unmatched: tuple[Iterable[Connection], Iterable[Connection]], clocks: Clocks
) -> list[float]:
    """Log-likelihood ratio (nats), by pairing, for one transfer against strangers' two.

    Each pairing is two connections that have content in common, and behind them the rivals, which might as well be
    true: equal transfers at one time may be paired crosswise. `unmatched` are the connections of both captures that
    nothing matched. Where nothing else relates the clocks, a pair alone shows nothing.
    """
    of_servers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, ((one, two), *_) in enumerate(pairings):
        of_servers[one.server, two.server].append(place)
    ones, twos = (
        {
            server: _Offered(connections)
            for server, connections in _by_server(
                chain((pairing[0][side] for pairing in pairings), rest), clocks, side
            ).items()
        }
        for side, rest in enumerate(unmatched)
    )
    none = _Offered(())
    offset = _Agreed.by(pairings, clocks)
    nats = [0.0] * len(pairings)
    for (server, other), places in of_servers.items():
        together = [(place, pairings[place][0]) for place in places]
        found = offset.nats(together, ones.get(server, none), twos.get(other, none))
        for place in places:
            is_contradiction = not (offset.held_by[place] or offset.allowed_by[place])
            nats[place] = min(found, CONTRADICTION_NATS) if is_contradiction else found
    return nats


class _Offered:
    """Connections of one capture to one server that may have a counterpart in the other; counted once for all of the
    other's servers."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections
        self._alike: dict[int, Counter[Hashable]] = {}

    def __len__(self) -> int:
        return len(self._connections)

    @cached_property
    def begun(self) -> int:
        """How many times they begin, at least once."""
        return max(1, len(_events_ns(self._connections)))

    def alike(self, by: int) -> Counter[Hashable]:
        """How many there are of each kind, by one of `_KINDS`."""
        if by not in self._alike:
            self._alike[by] = Counter(map(_KINDS[by], self._connections))
        return self._alike[by]


class _Agreed(Struct, frozen=True):
    """The offset that most pairings hold: which do, which others would if a proxy had waited, the mean width of their
    bounds, how far it is from the expected one, and how long both captures ran; times in nanoseconds."""

    held_by: Sequence[bool]
    allowed_by: Sequence[bool]
    width_ns: float
    away_ns: float
    span_ns: float

    @classmethod
    def by(cls, pairings: Sequence[Sequence[Pair]], clocks: Clocks) -> _Agreed:
        """What all pairings agree on: both captures have one clock each."""
        bounds, (held, low_ns, high_ns) = _best_side(pairings, clocks)
        held_by = [any(b.low_ns <= low_ns <= b.high_ns for b in each) for each in bounds]
        allowed_by = _allowed_by(bounds, low_ns, high_ns)
        widths_ns = [b.high_ns - b.low_ns for each in bounds for b in each if b.is_possible]
        width_ns = sum(widths_ns) / len(widths_ns) if widths_ns else 2 * _TIME_ERROR_NS
        away_ns = _away(clocks.offset_ns, low_ns, high_ns) if held else 0.0
        return cls(held_by, allowed_by, width_ns, away_ns, max(clocks.ended_ns - clocks.began_ns, width_ns))

    def nats(self, pairs: Sequence[tuple[int, Pair]], ones: _Offered, twos: _Offered) -> float:
        """The ratio for pairs between two servers (each with its place among the pairings), of all connections to these
        that might have been paired. A pair that a proxy may have kept waiting says nothing."""
        agreeing = [pair for place, pair in pairs if self.held_by[place]]
        others = [pair for place, pair in pairs if not self.held_by[place]]
        unheld = [pair for place, pair in pairs if not (self.held_by[place] or self.allowed_by[place])]
        contradictions, apart = (max(len(_events_ns(side)) for side in _sides(each)) for each in (unheld, others))
        telling = max(1, min(ones.begun, twos.begun) - apart + contradictions)
        nats = CONTRADICTION_NATS * contradictions - math.log(telling)
        if len(agreeing) > 1:
            mean = max(_alike(agreeing, ones, twos) * ones.begun * twos.begun, 1.0) * self.width_ns / self.span_ns
            nats -= max(self._strangers_nats(_events_ns(side), mean) for side in _sides(agreeing))
        return nats

    def _strangers_nats(self, held_ns: Sequence[int], mean: float) -> float:
        """Logarithm of the probability that strangers agree at so many starts, where so many do in the mean.

        Programs hold one offset as long as they keep time by half of the width.
        """
        by_chance = self._by_chance_nats(len(held_ns), mean)
        if by_chance >= 0 or len(held_ns) == 2:
            return by_chance  # one interval repeats none
        found = repetition(held_ns, self.width_ns / 2)
        # Either explains them, in the proportion that their repetition shows.
        timetable_nats, chance_nats = (-float(np.logaddexp(0.0, -sign * found.nats)) for sign in (1, -1))
        by_timetable = self._by_chance_nats(found.new + 1, mean)
        return float(np.logaddexp(timetable_nats + by_timetable, chance_nats + by_chance))

    def _by_chance_nats(self, count: int, mean: float) -> float:
        """The same for strangers that start at random: any one agrees under some offset."""
        if count < 2:
            return 0.0
        return min(0.0, math.log1p(2 * self.away_ns / self.width_ns) + _at_least_nats(count, mean))


def _sides(pairs: Sequence[Pair]) -> tuple[list[Connection], list[Connection]]:
    """The connections of either capture."""
    return [one for one, _ in pairs], [two for _, two in pairs]


def _best_side(
    pairings: Sequence[Sequence[Pair]], clocks: Clocks
) -> tuple[list[list[_Bounds]], tuple[int, float, float]]:
    """The bounds of all pairs and what `_most_held` says of them, with the first capture on the clients' side or on the
    servers', whichever more pairings agree on, or allow, or by more."""
    return max(
        (
            (bounds, _most_held(bounds, clocks))
            for bounds in (_bounds(pairings, clocks, first_at_client) for first_at_client in (True, False))
        ),
        key=lambda each: (each[1][0], sum(_allowed_by(each[0], *each[1][1:])), each[1][2] - each[1][1]),
    )


def _allowed_by(bounds: Sequence[Sequence[_Bounds]], low_ns: float, high_ns: float) -> list[bool]:
    """Which pairings allow some of these offsets, if a proxy may have waited."""
    return [any(b.least_ns <= high_ns and b.most_ns >= low_ns for b in each) for each in bounds]


def _bounds(pairings: Iterable[Sequence[Pair]], clocks: Clocks, first_at_client: bool) -> list[list[_Bounds]]:
    """The bounds of all pairs if the first capture is that of the clients' side; some hold no offset."""
    return [[_bounds_of(*pair, clocks, first_at_client) for pair in pairing] for pairing in pairings]


def _bounds_of(one: Connection, two: Connection, clocks: Clocks, first_at_client: bool) -> _Bounds:
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
    error_ns = _TIME_ERROR_NS + clocks.drift_ns
    return _Bounds(low - error_ns, high + error_ns, least - error_ns, most + error_ns)


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


def _most_held(bounds: Sequence[Sequence[_Bounds]], clocks: Clocks) -> tuple[int, float, float]:
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
        elif held < before == highest and (away := _away(clocks.offset_ns, low, offset)) < best_away:
            best_low, best_high, best_away = low, offset, away
    return highest, best_low, best_high


def _away(offset: float, low: float, high: float) -> float:
    """How far an offset is from an interval."""
    return max(0.0, low - offset, offset - high)


#: What connections may be taken for one transfer by: the lengths of both directions, of either, or nothing.
_KINDS: tuple[Callable[[Connection], Hashable], ...] = (
    lambda c: (c.up.stream_bytes, c.down.stream_bytes),
    lambda c: c.down.stream_bytes,
    lambda c: c.up.stream_bytes,
    lambda _: 0,
)


def _alike(pairs: Sequence[Pair], ones: _Offered, twos: _Offered) -> float:
    """Share of two connections that might be taken for one transfer, by what all that were taken have in common."""
    by = next(by for by, kind in enumerate(_KINDS) if all(kind(one) == kind(two) for one, two in pairs))
    fewer, more = sorted((ones.alike(by), twos.alike(by)), key=len)
    return sum(count * more[kind] for kind, count in fewer.items()) / max(1, len(ones) * len(twos))


def _events_ns(connections: Iterable[Connection]) -> list[int]:
    """When connections begin (ns), in order; those that begin together have one cause, and count once."""
    events = list[int]()
    for start_ns in sorted(map(first_data_ns, connections)):
        if not events or start_ns - events[-1] > TOGETHER_NS:
            events.append(start_ns)
    return events


def _at_least_nats(count: int, mean: float) -> float:
    """Chernoff's bound of the logarithm of the probability that a Poisson variable is `count` or more."""
    return 0.0 if count <= mean else count - mean - count * math.log(count / mean)


def _by_server(connections: Iterable[Connection], clocks: Clocks, side: int) -> dict[str, list[Connection]]:
    """Connections of one capture, by server, that carried payload while both captures ran."""
    ahead_ns = clocks.offset_ns if side else 0
    began_ns, ended_ns = clocks.began_ns + ahead_ns, clocks.ended_ns + ahead_ns
    found: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        has_payload = connection.up.stream_bytes or connection.down.stream_bytes
        if has_payload and connection.first_time_ns <= ended_ns and connection.last_time_ns >= began_ns:
            found[connection.server].append(connection)
    return found
