"""Connections of a detection's results once more as methods examined them, so that their packets can be pointed to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from detector.clocks.relation import ClockRelation
from detector.method import Context, Observation
from detector.one_capture.further_methods import ConnectionsAlone
from detector.options import DetectOptions
from detector.pairing.captures import PairedCaptures
from detector.verdict.together import loaded_together
from pepscope.captures.capture import Capture


@dataclass(frozen=True, slots=True)
class Observed:
    """A connection as methods examined it, and with all vantage points at which it was seen: of two captures that were
    taken at one place only one was examined. `clock` says how the clocks of those that were examined are related, and
    `kept` is what pointing to the packets of one finding computed that others may ask for too."""

    examined: Observation
    seen: Observation
    clock: Callable[[], ClockRelation]
    kept: dict[Hashable, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def at_every_vantage(self) -> Observed:
        """The same as if all vantage points had been examined."""
        return Observed(self.seen, self.seen, lambda: self.seen.clock)


class Connections(Protocol):
    """The connections of a detection by their places in its results."""

    def observed(self, places: Sequence[int]) -> Iterator[Observed]:
        """Load connections, some at a time."""

    def number(self, place: int, capture: str) -> int:
        """The number of a connection in this capture, which holds it."""

    def partition(self, place: int) -> int:
        """Which partition of a capture holds it; connections are asked for partition by partition."""


class OfTwoCaptures:
    """The connections of two captures."""

    def __init__(self, captures: Sequence[Capture], paired: PairedCaptures) -> None:
        self._captures = captures
        self._paired = paired

    def observed(self, places: Sequence[int]) -> Iterator[Observed]:
        """Load connections from both captures, and relate their clocks together when the first is asked for."""
        for loaded in loaded_together(self._captures[0].path, self._paired, None, places):
            context = Context([each.observation for each in loaded])
            for row, each in enumerate(loaded):
                seen = Observation(each.pair, place=each.observation.place)
                yield Observed(each.observation, seen, partial(_clock, context, row))

    def number(self, place: int, capture: str) -> int:
        """The number of a connection in this capture, which holds it."""
        match = self._paired.matches[place]
        number = match.first if capture == self._captures[0].path else match.second
        if number is None:
            raise IndexError(f"{capture} has no connection {place}")
        return number

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
        self._alone = ConnectionsAlone(captures, options)

    def observed(self, places: Sequence[int]) -> Iterator[Observed]:
        """Load connections from the one capture that holds each."""
        for place in places:
            context = Context([Observation(self._alone.pair(place))])
            (observation,) = context.observations
            yield Observed(observation, observation, partial(_clock, context, 0))

    def number(self, place: int, capture: str) -> int:  # noqa: ARG002  # one holds it
        """The number of a connection in its capture."""
        return self._in_its_capture(place)[1]

    def partition(self, place: int) -> int:
        """The partition of its capture, counted through all of them."""
        holder, number = self._in_its_capture(place)
        before = sum(capture.partition_count for capture in self._captures[:holder])
        return before + self._captures[holder].partition_of(number)

    def _in_its_capture(self, place: int) -> tuple[int, int]:
        """Which capture holds it, and its number there."""
        number = place
        for holder, capture in enumerate(self._captures):
            if number < len(capture.connections):
                return holder, number
            number -= len(capture.connections)
        raise IndexError(f"there is no connection {place}")


def _clock(context: Context, row: int) -> ClockRelation:
    return context.clocks[row]
