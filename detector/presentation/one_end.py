"""Series of connections as one capture shows them, without a verdict."""

from __future__ import annotations

from collections.abc import Iterable

from detector.clocks.relating import relate
from detector.one_capture.further_methods import ConnectionsAlone
from detector.options import DetectOptions
from detector.presentation.series import flow_series
from pepscope.captures.capture import Capture
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import FlowSeries


def connection_series(capture: Capture, connection_ids: Iterable[int]) -> dict[int, tuple[FlowSeries, ...]]:
    """What a page draws of some connections of a capture: a series for each direction that carries data.

    The capture must keep packets and payload (`pepscope.inspect` keeps both).
    """
    alone = ConnectionsAlone([capture], DetectOptions())
    made = {}
    for number in connection_ids:
        pair = alone.pair(number)
        clock = relate(pair)
        made[number] = tuple(
            flow_series(pair, clock, direction)
            for direction in Direction
            if any(vantage.flow(direction).data_packets for vantage in pair.vantages)
        )
    return made
