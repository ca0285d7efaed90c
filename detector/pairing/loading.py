"""Connections of a capture, loaded one at a time or together: packets and payload by one call, summaries as columns."""

from __future__ import annotations

from collections.abc import Sequence

from detector.pair import Vantage
from detector.streams.curves import DOUBTED_STEP_NS
from detector.streams.loaded import LoadedVantages
from detector.streams.set_back import continued
from detector.vantage.not_captured import without_blanked
from pepscope.captures.capture import Capture
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction
from pepscope.captures.tables.texts import SlicedTexts

_UP, _DOWN = Direction.UP, Direction.DOWN


class SummaryRows:
    """The summaries of some connections of a capture (`detector.pair.SummaryTable`)."""

    def __init__(self, capture: Capture, numbers: Sequence[int]) -> None:
        self._capture = capture
        self.numbers = numbers
        self.columns, (clients, servers), self.syn_options = capture.summaries(numbers)
        self.end_points = SlicedTexts.behind_each_other(*clients), SlicedTexts.behind_each_other(*servers)

    def connection(self, row: int) -> Connection:
        """The summary of one of them."""
        return self._capture.connections[self.numbers[row]]


def load_vantage(capture: ConnectionSource, number: int) -> Vantage:
    """This connection as the capture shows it."""
    seen = continued(capture.packets(number))
    payload = capture.payload(number)
    for direction in DIRECTIONS:
        payload[direction] = without_blanked(payload[direction])
    return Vantage(capture.path, capture.connections[number], seen.packets, payload, seen.clock_set_back)


def load_vantages(capture: Capture, numbers: Sequence[int]) -> LoadedVantages:
    """These connections as the capture shows them."""
    table = SummaryRows(capture, numbers)
    packets, up, down, fallen, blanked = capture.load(numbers, DOUBTED_STEP_NS)
    set_back: set[int] = set()
    for row in fallen:
        seen = continued(packets[row])
        packets[row] = seen.packets
        if seen.clock_set_back:
            set_back.add(row)
    for row in blanked:
        up[row], down[row] = without_blanked(up[row]), without_blanked(down[row])
    return LoadedVantages(capture.path, table, packets, {_UP: up, _DOWN: down}, set_back)
