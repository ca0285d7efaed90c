"""What a page draws of connections, added to their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from detector.clocks.relating import relate
from detector.pair import Pair
from detector.presentation.series import flow_series
from pepscope.captures.packets import Direction
from pepscope.results.attention import ATTENTION, EndPoints, places_between
from pepscope.results.pair_table import PairTable

#: Connections that get series for figures; those that are not regular come first.
SERIES_LIMIT = 50


def add_series(pair_of: Callable[[int], Pair], results: PairTable, connections: Sequence[EndPoints]) -> None:
    """Give the requested connections, or those that deserve most attention, the series that a page draws."""
    chosen = {place for ends in connections for place in places_between(results, ends)} or _most_telling(results)
    for number in sorted(chosen):
        pair = pair_of(number)
        if pair.encrypted:
            continue  # what is drawn lays one side's bytes over the other's
        clock = relate(pair)
        drawn = tuple(
            flow_series(pair, clock, direction)
            for direction in Direction
            if any(vantage.flow(direction).data_packets for vantage in pair.vantages)
        )
        results.add_series(number, drawn)


def _most_telling(results: PairTable) -> set[int]:
    ranks = [ATTENTION[verdict] for verdict in results.verdicts()]
    order = sorted(range(len(results)), key=lambda i: (ranks[i], -results.packets(i)))
    return set(order[:SERIES_LIMIT])
