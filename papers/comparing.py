"""Comparison of simulated confidence intervals with published values and bounds, the same for every paper."""

from __future__ import annotations

from collections.abc import Sequence

from papers.results import StatementOutcome
from reference_sim.intervals import Interval, mean_interval


def compare_value(
    published: float, found: Interval, *, rounding: float = 0.0, direction: bool | None = None
) -> StatementOutcome:
    """Reproduced where the published number lies inside the interval, widened by what the paper's rounding hides.

    `rounding` is half a unit of the published number's last digit. `direction` is whether the effect goes in
    the published direction; by default, whether both numbers have the same sign.
    """
    if abs(published - found.mean) <= (found.half_width or 0.0) + rounding:
        return StatementOutcome.REPRODUCED
    same = published * found.mean > 0 if direction is None else direction
    return StatementOutcome.DIRECTION if same else StatementOutcome.NOT


def compare_positive(difference: Interval) -> StatementOutcome:
    """An order or a one-sided bound as a difference that should be above 0: reproduced where its interval is."""
    if difference.mean > (difference.half_width or 0.0):
        return StatementOutcome.REPRODUCED
    return StatementOutcome.DIRECTION if difference.mean > 0 else StatementOutcome.NOT


def worst(outcomes: Sequence[StatementOutcome]) -> StatementOutcome:
    """Outcome of a statement with several parts: reproduced only where all are, not where none is."""
    if all(outcome is StatementOutcome.REPRODUCED for outcome in outcomes):
        return StatementOutcome.REPRODUCED
    return (
        StatementOutcome.NOT
        if all(outcome is StatementOutcome.NOT for outcome in outcomes)
        else StatementOutcome.DIRECTION
    )


def differences(larger: Sequence[float], smaller: Sequence[float]) -> Interval:
    """Interval of the mean difference of runs with the same seeds, pair by pair."""
    return mean_interval([one - other for one, other in zip(larger, smaller, strict=True)])


def gains_percent(treated: Sequence[float], base: Sequence[float]) -> Interval:
    """Interval of the mean gain in percent of runs with the same seeds, pair by pair."""
    return mean_interval([100.0 * (one / other - 1.0) for one, other in zip(treated, base, strict=True)])


def written(interval: Interval, unit: str = "", digits: int = 3) -> str:
    """The mean with its half width, `12.3 ± 0.4 kbit/s`."""
    suffix = f" {unit}" if unit else ""
    if not interval.half_width or interval.half_width < 1e-9 * abs(interval.mean):  # rounding of equal values
        return f"{_rounded(interval.mean, digits)}{suffix}"
    return f"{_rounded(interval.mean, digits)} ± {_rounded(interval.half_width, 2)}{suffix}"


def _rounded(value: float, digits: int) -> str:
    """So many digits, but no power of ten for what is larger."""
    return f"{value:,.0f}" if abs(value) >= 10.0**digits else f"{value:.{digits}g}"
