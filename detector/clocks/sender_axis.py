"""The sender's clock as a time axis, and how the receiver's times are brought onto it."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import ClockRelation
from detector.clocks.steps import ClockPiece
from detector.pair import Vantage
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray


class SenderAxis(Struct, frozen=True):
    """The sender's clock in seconds from `origin_ns`, and how the receiver's times are brought onto it.

    `clock` is None where the two clocks could not be related: then both ends start with their first packet, `start_ns`
    being the receiver's. `raise_ns` is what is added to the clock relation (server minus client) to draw it.
    """

    direction: Direction
    origin_ns: int
    start_ns: int
    clock: ClockRelation | None
    raise_ns: float

    def sender_s(self, time_ns: Int64Array) -> FloatArray:
        """Times of the sender's capture."""
        return np.asarray((time_ns - self.origin_ns) / 1e9, np.float64)

    def receiver_s(self, time_ns: Int64Array) -> FloatArray:
        """Times of the receiver's capture, on the sender's clock."""
        lines = None if self.clock is None else self.clock.lines
        is_up = self.direction is Direction.UP
        return _core.receiver_times_s(time_ns, is_up, self.origin_ns, self.start_ns, lines, self.raise_ns)


def sender_axis(
    sender: Vantage | None, receiver: Vantage | None, clock: ClockRelation, direction: Direction
) -> SenderAxis:
    """The axis of the data in `direction`.

    Where no clock relation fits data and acknowledgements, it is the one that data in this direction still allow, moved
    as far towards the acknowledgements as they do.
    """
    firsts = [int(v.packets.time_ns[0]) for v in (sender, receiver) if v is not None and len(v.packets)]
    origin, start = (firsts[0], firsts[-1]) if firsts else (0, 0)
    if sender is None or receiver is None or not clock.pieces:
        return SenderAxis(direction, origin, start, None, 0.0)
    return SenderAxis(direction, origin, start, clock, raised_ns(clock, direction))


def raised_ns(clock: ClockRelation, direction: Direction) -> float:
    """What is added to a clock relation that does not fit, so that data in `direction` just allow it; 0 to others."""
    if clock.separable or not clock.pieces:
        return 0.0
    piece: ClockPiece = clock.pieces[0]
    allowed = piece.high_ns if direction is Direction.UP else piece.low_ns
    return allowed - piece.offset_ns if math.isfinite(allowed) else 0.0
