"""The figures of a pool that evidence states, as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from detector.one_capture.reasons.sentences import PoolFigures

#: The figures of a pool that evidence states; times are rounded to microseconds, probabilities to four digits.
COUNTS = ("exchanges", "connections", "hosts")
TIMES = {
    "near_round_trip_s": "near_s", "handshake_s": "handshake_s", "reference_round_trip_s": "reference_s",
    "fast_excess_s": "fast_excess_s", "leg_s": "leg_s", "leg_low_s": "leg_low_s", "leg_high_s": "leg_high_s",
}  # fmt: skip
SHARES = {"split_probability": "split", "late_probability": "late"}
TIME_DIGITS, SHARE_DIGITS = 6, 4


def numbers_of(figures: PoolFigures) -> Mapping[str, float | int | None]:
    """The figures behind a verdict, as evidence states them."""
    times = {name: getattr(figures, field) for name, field in TIMES.items()}
    return {
        **{name: getattr(figures, name) for name in COUNTS},
        **{name: None if math.isnan(value) else round(value, TIME_DIGITS) for name, value in times.items()},
        **{name: round(getattr(figures, field), SHARE_DIGITS) for name, field in SHARES.items()},
    }
