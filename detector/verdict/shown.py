"""What is shown of connections beside their verdicts, as columns: where they were seen, sizes and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from detector.pair import Pair
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array
from pepscope.results.pairs.columns import VantageRows


def vantage_rows(pairs: Sequence[Pair]) -> tuple[VantageRows, VantageRows]:
    """Where connections were seen, client side first."""
    names = [pair.names for pair in pairs]
    return VantageRows.of([each[0] for each in names]), VantageRows.of(
        [each[1] if each[1:] else None for each in names]
    )


def packets(pairs: Sequence[Pair]) -> Int64Array:
    """Packets at all vantage points."""
    return _over_vantages(pairs, lambda connection: connection.packets, np.add) + np.array(
        [sum(pair.datagram_leg.flow.datagrams) if pair.datagram_leg else 0 for pair in pairs], np.int64
    )


def payload_bytes(pairs: Sequence[Pair]) -> tuple[Int64Array, Int64Array]:
    """What connections carried up and down, where more of it was seen."""
    return (
        _over_vantages(pairs, lambda connection: connection.up.stream_bytes, np.maximum),
        _over_vantages(pairs, lambda connection: connection.down.stream_bytes, np.maximum),
    )


def lasted_ns(pairs: Sequence[Pair]) -> Int64Array:
    """From the first packet to the last, where that took longer."""
    return _over_vantages(pairs, lambda connection: connection.last_time_ns - connection.first_time_ns, np.maximum)


def _over_vantages(pairs: Sequence[Pair], number: Callable[[Connection], int], together: np.ufunc) -> Int64Array:
    """A number of each vantage point's connection, and of two what both give together."""
    vantages = [pair.vantages for pair in pairs]
    first, last = (np.array([number(each[place].connection) for each in vantages], np.int64) for place in (0, -1))
    is_alone = np.array([len(each) == 1 for each in vantages], np.bool_)
    return np.where(is_alone, first, together(first, last))
