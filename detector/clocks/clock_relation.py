"""What is known of how the clocks of a pair's two captures are related; `detector.clocks.relating` finds it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from detector.clocks.clouds import FlowClouds
from detector.clocks.steps import ClockPiece, usual_steps
from detector.options import ClockMode
from pepscope.captures.packets import Direction

#: Timestamps of ordinary hosts (interrupt coalescing, several receive queues) may be this wrong; smaller overlaps of
#: the clouds are no finding.
TIMESTAMP_ERROR_S = 1e-3

#: Start and reference (client clock), offset (server minus client) and drift of each piece of theta; times in ns.
Lines = list[tuple[int, int, float, float]]


class ClockBasis(StrEnum):
    """What the offset was read from."""

    TWO_WAY_DATA = "two-way data"
    DATA_AND_ACKS = "data and acknowledgements"  # only bounds; a line between the clouds
    ASSUMED = "assumed"  # synchronised clocks, or the first datum
    NONE = "none"


class ClockRelation(Struct, frozen=True, dict=True):
    """How the server side's clock relates to the client side's, and how well an end-to-end connection fits.

    `slack_s` is the room between the clouds after sparing what capture loss may have spoilt, `exact_slack_s` before;
    both are infinite where nothing bounds one side. `pieces` is empty where a vantage is missing.
    """

    mode: ClockMode
    basis: ClockBasis
    pieces: tuple[ClockPiece, ...]
    slack_s: float
    exact_slack_s: float
    lower_points: int
    upper_points: int
    lower_spared: int
    upper_spared: int
    round_trip_min_s: float  # at the sender of the larger flow; infinite where unknown
    clouds: Mapping[Direction, FlowClouds]
    data_low_s: float  # theta as bounded by data alone at the first piece's reference, |drift| within the limit
    data_high_s: float
    was_set: bool = False  # captures show that a clock was set, in ways that no admitted steps explain

    @property
    def separable(self) -> bool:
        """Whether an admissible clock fits data and acknowledgements."""
        return self.slack_s >= -TIMESTAMP_ERROR_S

    @cached_property
    def unusual_steps(self) -> int:
        """How many steps are taken for granted beyond those that clocks make while daemons keep them."""
        return max(0, len(self.pieces) - 1 - usual_steps(self.pieces)) if self.pieces else 0

    @property
    def steps_s(self) -> tuple[float, ...]:
        """Sizes of the clock steps (server minus client)."""
        return tuple(
            (after.at_ns(after.start_ns) - before.at_ns(after.start_ns)) / 1e9
            for before, after in itertools.pairwise(self.pieces)
        )

    @cached_property
    def lines(self) -> Lines:
        """The pieces as lines."""
        return [(piece.start_ns, piece.reference_ns, piece.offset_ns, piece.drift) for piece in self.pieces]
