"""Congestion avoidance under light loss: the square root of Mathis, Semke, Mahdavi and Ott.

"The macroscopic behavior of the TCP congestion avoidance algorithm", Computer Communication Review 27(3), 1997. The
window grows by one segment in `segments_an_acknowledgement` round trips and halves at each loss. There are no timeouts,
no slow start, and neither the receiver's window nor the link limits anything.
"""

from __future__ import annotations

import math
from enum import Enum

from reference_sim.models.domain import computable, require_positive, require_probability

#: Above this rate of losses windows are so small that timeouts decide: a mean window of 12 segments, half of which,
#: with a second loss among them, leaves hardly three duplicate acknowledgements.
MOST_LOSS = 0.01


class LossPattern(Enum):
    """How losses are spread; the value is the mean window times sqrt(p) with an acknowledgement for each segment."""

    #: Every 1/p-th segment: the mean of a sawtooth between W/2 and W that holds 3/8 W^2 segments, sqrt(3/2).
    PERIODIC = math.sqrt(1.5)
    #: Each segment with probability p: Ott, Kemperman and Mathis, "The stationary behavior of ideal TCP congestion
    #: avoidance", 1996; table 1 of the paper has 1.31.
    INDEPENDENT = 1.3098


@computable
def mean_window_segments(
    loss_probability: float,
    *,
    pattern: LossPattern = LossPattern.PERIODIC,
    segments_an_acknowledgement: float = 1.0,
) -> float:
    """The mean congestion window in segments (equation 3: C / sqrt(p), C falling with sqrt of the delayed ACKs).

    Raises OutsideDomainError unless 0 < `loss_probability` <= 0.01 and `segments_an_acknowledgement` > 0.
    """
    reason = "the model has no timeouts (padhye has)"
    require_probability("loss_probability", loss_probability, most=MOST_LOSS, reason=reason)
    require_positive("segments_an_acknowledgement", segments_an_acknowledgement)
    return pattern.value / math.sqrt(segments_an_acknowledgement * loss_probability)


@computable
def rate_segments_s(
    loss_probability: float,
    round_trip_s: float,
    *,
    pattern: LossPattern = LossPattern.PERIODIC,
    segments_an_acknowledgement: float = 1.0,
) -> float:
    """Segments a second (the same equation over the round-trip time in seconds).

    Raises OutsideDomainError as `mean_window_segments`, and unless `round_trip_s` > 0.
    """
    require_positive("round_trip_s", round_trip_s)
    window = mean_window_segments(
        loss_probability, pattern=pattern, segments_an_acknowledgement=segments_an_acknowledgement
    )
    return window / round_trip_s
