"""Clock relations in pieces: what is left of theta as a line where one of the two clocks was set in between."""

from __future__ import annotations

import itertools
import math

from msgspec import Struct

from detector.clocks.separation import Separation
from pepscope import _core

#: A time daemon that keeps a clock steps it no more often than this: it waits so long (ntpd's stepout threshold was
#: 900 s) before it steps. Every step that is allowed costs power against real splits, so one is allowed, and one more
#: for each span.
STEP_INTERVAL_S = 900.0

#: Where a daemon starts, it may step its clock three times in succession (chrony's `makestep 1 3`, as distributions
#: configure it), and there are two clocks. What so many steps would explain is no proof, and no fit either.
STEPS_IN_SUCCESSION = 2 * 3

#: Time bins for the search for steps.
STEP_BINS = 512

#: Drifts that the search tries for each piece.
STEP_DRIFTS = 41


class ClockPiece(Struct, frozen=True):
    """theta between two steps, as a line: offset at `reference_ns` (client clock), and drift."""

    start_ns: int  # client clock
    end_ns: int
    reference_ns: int
    offset_ns: float  # server minus client
    drift: float
    low_ns: float  # offsets at the reference that the constraints allow with this drift; may be infinite
    high_ns: float
    slack_ns: float  # negative where no line fits

    def at_ns(self, time_ns: int) -> float:
        """theta at a client time."""
        return self.offset_ns + self.drift * (time_ns - self.reference_ns)

    def bounds_at_ns(self, time_ns: int) -> tuple[float, float]:
        """The least and the greatest theta that the constraints allow at a client time, with this drift."""
        moved = self.drift * (time_ns - self.reference_ns)
        return self.low_ns + moved, self.high_ns + moved


def usual_steps(pieces: tuple[ClockPiece, ...]) -> int:
    """How many steps two clocks that daemons keep make in the time of these pieces."""
    return 1 + int((pieces[-1].end_ns - pieces[0].start_ns) / 1e9 / STEP_INTERVAL_S)


def stepped(constraints: _core.Constraints, limit: float, needed_ns: float) -> tuple[ClockPiece, ...] | None:
    """Cut into the fewest pieces that each leave `needed_ns` of slack; None where too many are needed.

    Each piece is as long as it can be: its last point is found by bisection, each test a `separate_most` of the points
    up to there. (Bisection, since sparing makes the slack no monotone function of the last point: clouds that are
    separable as they are spare nothing, however small the slack.)
    """
    thinned = constraints.thinned(STEP_BINS)
    if thinned.span_ns is None:
        return None
    first_ns, last_ns = thinned.span_ns
    most_steps = STEPS_IN_SUCCESSION + int((last_ns - first_ns) / 1e9 / STEP_INTERVAL_S)
    found = thinned.separable_stretches(limit, STEP_DRIFTS, needed_ns, most_steps)
    if found is None:
        return None
    pieces = tuple(as_piece(Separation(*line), constraints, (start_ns, end_ns)) for line, start_ns, end_ns in found)
    for before, after in itertools.pairwise(pieces):
        # A smaller step would have left room for one line end to end. Pieces of few packets, as at the ends of a
        # connection, cannot be judged.
        judged = math.isfinite(before.slack_ns) and math.isfinite(after.slack_ns)
        if judged and abs(after.at_ns(after.start_ns) - before.at_ns(after.start_ns)) < needed_ns:
            return None
    return pieces


def as_piece(
    found: Separation, constraints: _core.Constraints, span_ns: tuple[float, float] | None = None
) -> ClockPiece:
    """A separating line as a piece, over a span relative to the reference, or over all points."""
    start, end = span_ns or constraints.span_ns or (0.0, 0.0)
    return ClockPiece(
        constraints.reference_ns + int(start),
        constraints.reference_ns + int(end),
        constraints.reference_ns,
        constraints.base_ns + found.offset_ns,
        found.drift,
        constraints.base_ns + found.low_ns,
        constraints.base_ns + found.high_ns,
        found.slack_ns,
    )


def on_client_clock(pieces: tuple[ClockPiece, ...]) -> tuple[ClockPiece, ...]:
    """Pieces found on the server's time axis, written for client times."""
    return tuple(
        ClockPiece(
            piece.start_ns - round(piece.at_ns(piece.start_ns)),
            piece.end_ns - round(piece.at_ns(piece.end_ns)),
            piece.reference_ns - round(piece.offset_ns),
            piece.offset_ns,
            piece.drift / (1.0 - piece.drift),
            piece.low_ns,
            piece.high_ns,
            piece.slack_ns,
        )
        for piece in pieces
    )
