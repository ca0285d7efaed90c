"""Connections of a detection's results once more as methods examined them, so that their packets can be pointed to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np
from msgspec import Struct, field

from detector.one_capture.further_methods import ConnectionsAlone
from detector.options import DetectOptions
from pepscope.captures.capture import Capture

if TYPE_CHECKING:
    from detector.clocks.clock_relation import ClockRelation
    from detector.method import Context, Observation
    from detector.pairing.captures import PairedCaptures


class Observed(Struct, frozen=True):
    """A connection as methods examined it, and with all vantage points at which it was seen: of two captures that were
    taken at one place only one was examined. `clock` says how the clocks of those that were examined are related, and
    `kept` is what pointing to the packets of one finding computed that others may ask for too."""

    examined: Observation
    seen: Observation
    clock: Callable[[], ClockRelation]
    kept: dict[Hashable, object] = field(default_factory=dict)

    @property
    def at_every_vantage(self) -> Observed:
        """The same as if all vantage points had been examined."""
        return Observed(self.seen, self.seen, lambda: self.seen.clock)


class Connections(Protocol):
    """The connections of a detection by their places in its results."""

    def observed(self, places: Sequence[int]) -> Iterator[Sequence[Observed]]:
        """Load connections, some at a time, in the order of their places."""

    def number(self, place: int, capture: str) -> int:
        """The number of a connection in this capture, which holds it."""

    def numbers(self, places: Sequence[int], capture: str) -> Sequence[int]:
        """The numbers of connections in this capture, which holds them."""

    def partition(self, place: int) -> int:
        """Which partition of a capture holds it; connections are asked for partition by partition."""


class OfTwoCaptures:
    """The connections of two captures."""

    def __init__(self, captures: Sequence[Capture], paired: PairedCaptures) -> None:
        self._captures = captures
        self._paired = paired

    def observed(self, places: Sequence[int]) -> Iterator[Sequence[Observed]]:
        """Load connections from both captures, and relate their clocks together when the first is asked for."""
        from detector.method import Context, Observation
        from detector.verdict.together import Loader

        loader = Loader(self._captures[0].path, self._paired)
        for batch in loader.batches(places):
            loaded = dict[int, Observed]()
            for together in loader.load(batch):
                context = Context(together.observations)
                examined = zip(together.numbers, together.observations, together.pairs, strict=True)
                for row, (number, seen, pair) in enumerate(examined):
                    clock = partial(_clock, context, row)
                    loaded[number] = Observed(seen, Observation(pair, place=seen.place), clock)
            yield [loaded[number] for number in batch]

    def number(self, place: int, capture: str) -> int:
        """The number of a connection in this capture, which holds it."""
        match = self._paired.matches[place]
        number = match.first if capture == self._captures[0].path else match.second
        if number is None:
            raise IndexError(f"{capture} has no connection {place}")
        return number

    def numbers(self, places: Sequence[int], capture: str) -> Sequence[int]:
        """The numbers of connections in this capture, which holds them."""
        return [self.number(place, capture) for place in places]

    def partition(self, place: int) -> int:
        """The partition of the capture that holds it, of the first one where both do."""
        match = self._paired.matches[place]
        if match.first is not None:
            return self._captures[0].partition_of(match.first)
        return 0 if match.second is None else self._captures[1].partition_of(match.second)


class OfOneVantage:
    """The connections of the captures of one vantage point, counted through all of them."""

    def __init__(self, captures: Sequence[Capture], options: DetectOptions) -> None:
        self._captures = captures
        self._options = options
        self._alone: ConnectionsAlone | None = None  # once packets are loaded
        #: The place of each capture's first connection, and behind all.
        self._first = [*accumulate((len(capture.connections) for capture in captures), initial=0)]

    def observed(self, places: Sequence[int]) -> Iterator[Sequence[Observed]]:
        """Load connections from the one capture that holds each."""
        from detector.method import Context, Observation

        alone = self._alone = self._alone or ConnectionsAlone(self._captures, self._options)
        for place in places:
            context = Context([Observation(alone.pair(place))])
            (observation,) = context.observations
            yield [Observed(observation, observation, partial(_clock, context, 0))]

    def number(self, place: int, capture: str) -> int:  # noqa: ARG002  # one holds it
        """The number of a connection in its capture."""
        return self._in_its_capture(place)[1]

    def numbers(self, places: Sequence[int], capture: str) -> Sequence[int]:
        """The numbers of connections in this capture, which holds them."""
        holder = [each.path for each in self._captures].index(capture)
        numbers: list[int] = (np.asarray(places, np.int64) - self._first[holder]).tolist()
        return numbers

    def partition(self, place: int) -> int:
        """The partition of its capture, counted through all of them."""
        holder, number = self._in_its_capture(place)
        before = sum(capture.partition_count for capture in self._captures[:holder])
        return before + self._captures[holder].partition_of(number)

    def _in_its_capture(self, place: int) -> tuple[int, int]:
        """Which capture holds it, and its number there."""
        holder = bisect_right(self._first, place) - 1
        if not 0 <= holder < len(self._captures):
            raise IndexError(f"there is no connection {place}")
        return holder, place - self._first[holder]


def _clock(context: Context, row: int) -> ClockRelation:
    return context.clocks[row]
