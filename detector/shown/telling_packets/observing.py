"""Connections of a detection's results once more as methods examined them, so that their packets can be pointed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from detector.method import Observation
from detector.one_capture.further_methods import ConnectionsAlone
from detector.options import DetectOptions
from detector.pairing.captures import PairedCaptures
from detector.verdict.together import loaded_together
from pepscope.captures.capture import Capture


@dataclass(frozen=True, slots=True)
class Observed:
    """A connection as methods examined it, and with all vantage points at which it was seen: of two captures that were
    taken at one place only one was examined."""

    examined: Observation
    seen: Observation


class Connections(Protocol):
    """The connections of a detection by their places in its results."""

    def observed(self, place: int) -> Observed:
        """Load a connection."""

    def number(self, place: int, capture: str) -> int:
        """The number of a connection in this capture, which holds it."""

    def partition(self, place: int) -> int:
        """Which partition of a capture holds it; connections are asked for partition by partition."""


class OfTwoCaptures:
    """The connections of two captures."""

    def __init__(self, captures: Sequence[Capture], paired: PairedCaptures) -> None:
        self._captures = captures
        self._paired = paired

    def observed(self, place: int) -> Observed:
        """Load a connection from both captures."""
        (loaded,) = next(loaded_together(self._captures[0].path, self._paired, None, [place]))
        return Observed(loaded.observation, Observation(loaded.pair, place=loaded.observation.place))

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

    def observed(self, place: int) -> Observed:
        """Load a connection from the one capture that holds it."""
        observation = Observation(self._alone.pair(place))
        return Observed(observation, observation)

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
