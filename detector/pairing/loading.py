"""Connections of a capture loaded together: packets and payload by one call, summaries as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from detector.pair import LoadedVantage, Vantage
from detector.streams.curves import DOUBTED_STEP_NS, is_clock_set_back, without_backward_steps
from detector.vantage.not_captured import without_blanked
from pepscope.captures.capture import Capture
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Direction

_UP, _DOWN = Direction.UP, Direction.DOWN


class _Rows:
    """The summaries of some connections of a capture (`detector.pair.SummaryTable`)."""

    def __init__(self, capture: Capture, numbers: Sequence[int]) -> None:
        self._capture = capture
        self.numbers = numbers
        self.columns, self.end_points, self.syn_options = capture.summaries(numbers)

    def connection(self, row: int) -> Connection:
        """The summary of one of them."""
        return self._capture.connections[self.numbers[row]]


def load_vantages(capture: Capture, numbers: Sequence[int]) -> list[Vantage]:
    """These connections as the capture shows them."""
    table = _Rows(capture, numbers)
    path, nothing = capture.path, cast("Any", None)
    made: list[Vantage] = []
    for row, (recorded, up, down, falls, is_blanked) in enumerate(capture.load(numbers, DOUBTED_STEP_NS)):
        packets = without_backward_steps(recorded) if falls else recorded
        was_set_back = falls and (packets is not recorded or is_clock_set_back(recorded))
        payload = {_UP: up, _DOWN: down}
        if is_blanked:
            payload = {way: without_blanked(sample) for way, sample in payload.items()}
        made.append(LoadedVantage(path, nothing, packets, payload, was_set_back, table, row))
    return made
