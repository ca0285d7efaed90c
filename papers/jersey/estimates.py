"""How near senders' estimates of the bandwidth are to what the scheduler then serves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.jersey.gains import NAMES
from papers.statements.grouping import Row, chosen, grouped
from reference_sim.intervals import mean_interval
from reference_sim.run import Run

#: Of the series that are compared, in seconds.
INTERVAL_S = 0.1
#: Jersey, and those that it is compared with.
SENDERS = ("jersey", "new-reno", "sack")
#: After this the start is over, in seconds.
_STEADY_FROM_S = 10.0

FloatArray = npt.NDArray[np.float64]


def measure_estimates(run: Run) -> Mapping[str, float | None]:
    """`estimate_error`: the mean distance of a sender's estimate from what the terminal gets over the next round trip.

    In shares of the mean rate that it gets. Jersey's estimate is its own (ABE); other senders have none but window
    over round trip. None for a terminal that gets nothing.
    """
    times_s = run.series.time_s
    window, round_trip_s, delivered = (
        _series(run, place, name)
        for place, name in (
            ("server", "congestion_window_bytes"),
            ("server", "smoothed_round_trip_time_s"),
            ("mobile", "delivered_bytes"),
        )
    )
    if window is None or round_trip_s is None or delivered is None:
        return {"estimate_error": None}
    own_bit_s = _series(run, "server", "estimated_bandwidth_bit_s")
    estimate = window / round_trip_s if own_bit_s is None else own_bit_s / 8.0
    return {"estimate_error": estimate_error(estimate, round_trip_s, delivered, times_s)}


def estimate_error(
    estimate: FloatArray, round_trip_s: FloatArray, delivered: FloatArray, times_s: FloatArray
) -> float | None:
    """Mean distance of an estimate (bytes/s) from what a round trip delivers (bytes so far), over the mean rate.

    None where nothing is known or delivered.
    """
    until = times_s + round_trip_s
    is_known = np.isfinite(estimate) & np.isfinite(until) & (times_s >= _STEADY_FROM_S) & (until <= times_s[-1])
    if not is_known.any():
        return None
    so_far = np.nan_to_num(delivered)
    served = (np.interp(until[is_known], times_s, so_far) - so_far[is_known]) / round_trip_s[is_known]
    mean = float(served.mean())
    return float(np.abs(estimate[is_known] - served).mean()) / mean if mean > 0.0 else None


def _series(run: Run, place: str, name: str) -> FloatArray | None:
    """None for a quantity that the run does not have."""
    return next((one.values for one in run.series.quantities if (one.place, one.name) == (place, name)), None)


def estimate_quantities(rows: Sequence[Row]) -> dict[str, Any]:
    """Errors of Jersey's estimate and of the others' window over round trip, and how they compare drop by drop.

    Errors of a terminal that gets next to nothing are a hundred times those of others, so a drop gives the logarithm of
    a ratio.
    """
    drops = [
        [chosen(part, variant=sender)[0]["estimate_error"] for sender in SENDERS]
        for part in grouped(rows, "repeat").values()
    ]
    known = [[float(error) for error in drop] for drop in drops if all(error and error > 0.0 for error in drop)]
    medians = {sender: median(errors) for sender, errors in zip(SENDERS, zip(*known, strict=True), strict=True)}
    others = [mean_interval([math.log(drop[place] / drop[0]) for drop in known]) for place in (1, 2)]
    return {
        "estimate_errors": ", ".join(f"{NAMES[sender]} {100 * error:.0f} %" for sender, error in medians.items()),
        "error_ratios": " and ".join(f"{math.exp(one.mean):.2f}" for one in others),
        "log_errors_over_jersey": others,
    }
