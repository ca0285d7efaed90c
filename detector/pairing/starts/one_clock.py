"""Whether connections to two servers that say the same are one transfer each, or those of strangers.

Programs say the same to different servers, in their clients' own time. Of pairs that have nothing but content in common
each alone cannot be told from two such connections that were near each other by chance. Together they can, since two
captures have one clock relation and data do not arrive before they are sent (`starts.clock_bounds`). One offset lies
within the bounds of all pairs that are one transfer; of strangers those agree on one that happen to.

With k of the n connections that may have a counterpart, under the offset that most agree on,

- one transfer each: the other capture may lack any number of them, so that k is anything from 1 to n alike; one that
  both have and that contradicts the others is one in twenty;
- strangers: k is what chance brings near each other. The mean at any one offset is the number of pairs of connections
  alike times the mean width of the bounds over the time in which they may be; the probability of k or more is at most
  Chernoff's bound of a Poisson variable, times the number of offsets that are as near to the expected one;
- strangers whose programs start by one timetable, in so far as the starts that agree repeat intervals
  (`starts.timetable`): the first of them by chance, of the others those alone that are new, and that those by the
  timetable are late by the same in both captures (`starts.lateness`);
- strangers that one cause starts, at any times: answers alone tell who is behind whom, so that of connections that
  begin together each agrees with an unknown probability, any alike (Laplace's rule of succession). Where all agree,
  this bounds what they show; some that contradict are as many as strangers have, and more than transfers do.

Connections that begin together count as one: a page that is loaded again brings all of its connections. Last, answers
of strangers do not vary alike (`starts.answers`), whatever made them begin together, and may take longer at either host
from one connection to the next (`starts.turns`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from detector.pairing.starts.agreement import TOGETHER_NS, first_data_ns, starts_apart
from detector.pairing.starts.answers import answers_nats
from detector.pairing.starts.clock_bounds import (
    CONTRADICTION_NATS,
    TIME_ERROR_NS,
    Clocks,
    Pair,
    distance_ns,
    held_bounds,
    which_allow,
)
from detector.pairing.starts.lateness import lateness_nats
from detector.pairing.starts.timetable import repetition
from detector.pairing.starts.turns import turns_nats
from pepscope.captures.connections import Connection

#: One of a hundred timetables is kept so loosely that intervals differ by twice the width of the bounds (assumed).
_LOOSE_NATS = math.log(0.01)

#: One cause starts all connections of one in a hundred strangers: a client asks two servers whenever it asks (assumed).
_ONE_CAUSE_NATS = math.log(0.01)


def one_transfer_nats(
    pairings: Sequence[Sequence[Pair]], unmatched: tuple[Iterable[Connection], Iterable[Connection]], clocks: Clocks
) -> list[float]:
    """Log-likelihood ratio (nats), by pairing, for one transfer against strangers' two.

    Each pairing is two connections that have content in common, and behind them the rivals, which might as well be
    true: equal transfers at one time may be paired crosswise. `unmatched` are the connections of both captures that
    nothing matched. Where nothing else relates the clocks, a pair alone shows nothing.
    """
    sides = [[*(pairing[0][side] for pairing in pairings), *rest] for side, rest in enumerate(unmatched)]
    services = [_services(connections) for connections in sides]
    of_services: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, ((one, two), *_) in enumerate(pairings):
        of_services[services[0][one.server], services[1][two.server]].append(place)
    ones, twos = (
        {
            service: _Offered(connections)
            for service, connections in _by_service(sides[side], services[side], clocks, side).items()
        }
        for side in range(2)
    )
    none = _Offered(())
    offset = _Agreed.by(pairings, clocks)
    nats = [0.0] * len(pairings)
    for (service, other), places in of_services.items():
        together = [(place, pairings[place][0]) for place in places]
        found = offset.nats(together, ones.get(service, none), twos.get(other, none))
        for place in places:
            is_contradiction = not (offset.held_by[place] or offset.allowed_by[place])
            nats[place] = min(found, CONTRADICTION_NATS) if is_contradiction else found
    return nats


class _Offered:
    """Connections of one capture to one service that may have a counterpart in the other; counted once for all of the
    other's services."""

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
    """The offset that most pairings hold: which do, which others would if a proxy had waited, which begin together with
    them, the mean width of all bounds, how far it is from the expected one, and how long both captures ran; times in
    nanoseconds."""

    held_by: Sequence[bool]
    allowed_by: Sequence[bool]
    begin_together: Sequence[bool]
    width_ns: float
    away_ns: float
    span_ns: float

    @classmethod
    def by(cls, pairings: Sequence[Sequence[Pair]], clocks: Clocks) -> _Agreed:
        """What all pairings agree on: both captures have one clock each."""
        bounds, (held, low_ns, high_ns) = held_bounds(pairings, clocks)
        held_by = [any(b.low_ns <= low_ns <= b.high_ns for b in each) for each in bounds]
        allowed_by = which_allow(bounds, low_ns, high_ns)
        begin_together = [any(b.is_near(low_ns, high_ns) for b in each) for each in bounds]
        widths_ns = [b.high_ns - b.low_ns for each in bounds for b in each if b.is_possible]
        width_ns = sum(widths_ns) / len(widths_ns) if widths_ns else 2 * TIME_ERROR_NS
        away_ns = distance_ns(clocks.offset_ns, low_ns, high_ns) if held else 0.0
        span_ns = max(clocks.ended_ns - clocks.began_ns, width_ns)
        return cls(held_by, allowed_by, begin_together, width_ns, away_ns, span_ns)

    def nats(self, pairs: Sequence[tuple[int, Pair]], ones: _Offered, twos: _Offered) -> float:
        """The ratio for pairs between two services (each with its place among the pairings), of all connections to them
        that might have been paired. A pair that a proxy may have kept waiting says nothing."""
        agreeing = [pair for place, pair in pairs if self.held_by[place]]
        others = [pair for place, pair in pairs if not self.held_by[place]]
        unheld = [(place, pair) for place, pair in pairs if not (self.held_by[place] or self.allowed_by[place])]
        near = [pair for place, pair in unheld if self.begin_together[place]]
        contradictions, apart, besides = (
            max(map(len, _events_of_sides(each))) for each in ([pair for _, pair in unheld], others, near)
        )
        telling = max(1, min(ones.begun, twos.begun) - apart + contradictions)
        nats = CONTRADICTION_NATS * contradictions - math.log(telling)
        if len(agreeing) > 1:
            mean = max(_alike(agreeing, ones, twos) * ones.begun * twos.begun, 1.0) * self.width_ns / self.span_ns
            late_nats = min(_late_nats(agreeing), _late_nats([(two, one) for one, two in agreeing]))
            nats += answers_nats(agreeing) + turns_nats(agreeing)
            sides = _events_of_sides(agreeing)
            by_cause = _one_cause_nats(min(map(len, sides)), besides) + CONTRADICTION_NATS * (contradictions - besides)
            nats -= max(by_cause, *(self._strangers_nats(held_ns, mean, late_nats) for held_ns in sides))
        return nats

    def _strangers_nats(self, held_ns: Sequence[int], mean: float, late_nats: float) -> float:
        """Logarithm of the probability that strangers agree at so many starts, where so many do in the mean, and are
        late together by what is worth `late_nats`.

        Programs hold one offset as long as each start keeps time by half of the width. Most keep it much better, and
        their intervals differ by no more; where they do not, two intervals differ by four such at most.
        """
        by_chance = self._by_chance_nats(len(held_ns), mean)
        if by_chance >= 0 or len(held_ns) == 2:
            return by_chance  # one interval repeats none
        shown, explained = [0.0], [by_chance]
        for tolerance_ns, prior_nats in ((self.width_ns / 2, 0.0), (2 * self.width_ns, _LOOSE_NATS)):
            found = repetition(held_ns, tolerance_ns)
            shown.append(prior_nats + found.nats)
            explained.append(self._by_chance_nats(found.new + 1, mean) - late_nats)
        # Each explains them, in the proportion that their repetition shows.
        return float(np.logaddexp.reduce(np.add(shown, explained)) - np.logaddexp.reduce(shown))

    def _by_chance_nats(self, count: int, mean: float) -> float:
        """The same for strangers that start at random: any one agrees under some offset."""
        if count < 2:
            return 0.0
        return min(0.0, math.log1p(2 * self.away_ns / self.width_ns) + _at_least_nats(count, mean))


def _events_of_sides(pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    """When the connections begin in either capture (`_events_ns`)."""
    return _events_ns(one for one, _ in pairs), _events_ns(two for _, two in pairs)


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


def _late_nats(pairs: Sequence[Pair]) -> float:
    """What pairs show by how late their connections are, by the timetable of the first capture (`starts.lateness`)."""
    by_start = {(first_data_ns(one), first_data_ns(two)): one for one, two in pairs}
    starts = starts_apart(np.array(list(by_start), np.int64))
    apart = [by_start[one, two] for one, two in starts.tolist()]
    lengths = [(one.up.stream_bytes, one.down.stream_bytes) for one in apart]
    numbers = {each: number for number, each in enumerate(dict.fromkeys(lengths))}
    return lateness_nats(starts, np.array([numbers[each] for each in lengths], np.int64))


def _events_ns(connections: Iterable[Connection]) -> list[int]:
    """When connections begin (ns), in order; those that begin together have one cause, and count once."""
    events = list[int]()
    for start_ns in sorted(map(first_data_ns, connections)):
        if not events or start_ns - events[-1] > TOGETHER_NS:
            events.append(start_ns)
    return events


def _one_cause_nats(held: int, besides: int) -> float:
    """Logarithm of the probability that so many of the connections that one cause starts agree, and so many not."""
    return _ONE_CAUSE_NATS + math.lgamma(held + 1) + math.lgamma(besides + 1) - math.lgamma(held + besides + 2)


def _at_least_nats(count: int, mean: float) -> float:
    """Chernoff's bound of the logarithm of the probability that a Poisson variable is `count` or more."""
    return 0.0 if count <= mean else count - mean - count * math.log(count / mean)


def _services(connections: Iterable[Connection]) -> dict[str, str]:
    """What each server's connections are counted with: those to its address and port, or where a port has one only, as
    FTP's for each file, to the ports of its address that have one."""
    counts = Counter((connection.server, connection.server_address) for connection in connections)
    return {server: server if count > 1 else address for (server, address), count in counts.items()}


def _by_service(
    connections: Iterable[Connection], services: Mapping[str, str], clocks: Clocks, side: int
) -> dict[str, list[Connection]]:
    """Connections of one capture, by service, that carried payload while both captures ran."""
    ahead_ns = clocks.offset_ns if side else 0
    began_ns, ended_ns = clocks.began_ns + ahead_ns, clocks.ended_ns + ahead_ns
    found: dict[str, list[Connection]] = defaultdict(list)
    for connection in connections:
        has_payload = connection.up.stream_bytes or connection.down.stream_bytes
        if has_payload and connection.first_time_ns <= ended_ns and connection.last_time_ns >= began_ns:
            found[services[connection.server]].append(connection)
    return found
