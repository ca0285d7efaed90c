"""Whether the turns within one connection take longer at one of two captures throughout (`starts.turns`).

A connection with many turns tells by itself. After data of one direction the first of the other passes the client's
side later, by the whole way between the captures and back, than it passes the server's: the delay of data up, by the
two clocks, exceeds the delay of data down beside them. Clocks that were set in between change one turn each, however
often, so that only two transfers contradict one another at many. Times err by less than successive delays vary in the
direction that is the steadier one.

Halves of two transfers contradict one another as strangers do. Of equal transfers that may be paired crosswise only
those are strangers' that contradict each other in all pairings that might be true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from detector.clocks.capture_ticks import ticks_s
from detector.clocks.clouds import FlowClouds, clouds_of
from detector.pair import Pair
from detector.pairing.match import Match
from detector.pairing.starts.clock_bounds import TIME_ERROR_NS
from detector.pairing.starts.quantiles import quantiles
from detector.pairing.starts.turns import one_side_nats
from detector.streams.known import are_known
from pepscope.captures.connections import Connection
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: Fewer data packets in either direction show next to nothing.
_FEWEST = 4


class TurnsWithin:
    """What turns within connections show, of each pair once; `load` gives the pair of a match, as `turns_within_nats`
    takes it."""

    def __init__(self, load: Callable[[Match], Pair]) -> None:
        self._load = load
        self._known: dict[tuple[int | None, int | None], float] = {}

    def nats(self, match: Match, pair: Pair) -> float:
        """The ratio for a match, whose pair is loaded: the greatest of those of its alternatives."""
        greatest = turns_within_nats(pair)
        for each in match.alternatives:
            if greatest == 0.0:
                break
            greatest = max(greatest, self._nats_of(each))
        return greatest

    def _nats_of(self, match: Match) -> float:
        key = match.first, match.second
        if key not in self._known:
            self._known[key] = turns_within_nats(self._load(match))
        return self._known[key]


def has_turns(connection: Connection) -> bool:
    """Whether a connection has as many data packets in either direction as show something."""
    return min(connection.up.data_packets, connection.down.data_packets) >= _FEWEST


def turns_within_nats(pair: Pair) -> float:
    """Log-likelihood ratio (nats) for one transfer against two, by the turns of this connection; never positive.

    `pair` has both sides, whose streams lie over each other as its alignment says.
    """
    if not all(has_turns(vantage.connection) for vantage in pair.vantages):
        return 0.0
    clouds = clouds_of([pair])[0]
    if len(clouds) < len(DIRECTIONS):
        return 0.0
    data = [_data_of(flow) for flow in clouds.values()]
    longer_ns, apart_ns = _turns(data)
    error_ns = min(2 * TIME_ERROR_NS, *(_spread_ns(delays_ns) for _, delays_ns, _ in data))
    tolerated_ns = error_ns + 1e9 * ticks_s([pair])[0] + pair.options.drift_limit_ppm * 1e-6 * apart_ns
    return one_side_nats(longer_ns[np.abs(longer_ns) > tolerated_ns])


#: When data of a flow pass the client's side, by how much later the server's clock shows them, and whether they go up.
_Data = tuple[Int64Array, Int64Array, BoolArray]


def _spread_ns(delays_ns: Int64Array) -> float:
    """By how much delays of successive data differ at most, but for one in twenty: times err less."""
    return float(quantiles(np.abs(np.diff(delays_ns)), [0.95])[0]) if len(delays_ns) > _FEWEST else math.inf


def _turns(data: Sequence[_Data]) -> tuple[FloatArray, FloatArray]:
    """By how much each turn takes longer at the client's side, and how far its two data are apart there (ns)."""
    times, delays, is_up = (np.concatenate(each) for each in zip(*data, strict=True))
    order = np.argsort(times, kind="stable")
    times, delays, is_up = times[order], delays[order], is_up[order]
    turn = np.flatnonzero(is_up[1:] != is_up[:-1])
    ups, downs = np.where(is_up[turn], [turn, turn + 1], [turn + 1, turn])
    return (delays[ups] - delays[downs]).astype(np.float64), (times[turn + 1] - times[turn]).astype(np.float64)


def _data_of(flow: FlowClouds) -> _Data:
    sent_ns, arrived_ns = flow.times.data_sent_ns, flow.times.data_arrived_ns
    both = are_known(sent_ns) & are_known(arrived_ns)
    is_up = flow.direction is Direction.UP
    client_ns, server_ns = (sent_ns[both], arrived_ns[both])[:: 1 if is_up else -1]
    return client_ns, server_ns - client_ns, np.full(len(client_ns), is_up)
