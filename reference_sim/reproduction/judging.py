"""From intervals to verdicts, the same way for every paper."""

from __future__ import annotations

from collections.abc import Sequence

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.results import Verdict


def judge_value(published: float, found: Interval, *, rounding: float = 0.0, direction: bool | None = None) -> Verdict:
    """Reproduced where the published number lies inside the interval, widened by what the paper's rounding hides.

    `rounding` is half a unit of the published number's last digit. `direction` says whether the effect goes the
    published way; without it, whether both have the same sign.
    """
    if abs(published - found.mean) <= (found.half_width or 0.0) + rounding:
        return Verdict.REPRODUCED
    same = published * found.mean > 0 if direction is None else direction
    return Verdict.DIRECTION if same else Verdict.NOT


def judge_positive(difference: Interval) -> Verdict:
    """An order or a one-sided bound as a difference that should be above 0: reproduced where its interval is."""
    if difference.mean > (difference.half_width or 0.0):
        return Verdict.REPRODUCED
    return Verdict.DIRECTION if difference.mean > 0 else Verdict.NOT


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a statement with several parts: reproduced only where all are, not where none is."""
    if all(verdict is Verdict.REPRODUCED for verdict in verdicts):
        return Verdict.REPRODUCED
    return Verdict.NOT if all(verdict is Verdict.NOT for verdict in verdicts) else Verdict.DIRECTION


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
