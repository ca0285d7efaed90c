"""Comparison of simulated confidence intervals with published values and bounds, the same for every paper.

Reproduced means equivalent: what counts as the published value is fixed in the table of statements before a run, and
the whole confidence interval of ours must lie inside it. For a number with a tolerance that is two one-sided tests
(Schuirmann 1987), for an order or a bound it is one. Intervals are Student's 95 % intervals over independent seeds, so
each test has a level of 2.5 %, which is stricter than the usual 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from papers.results import StatementOutcome
from reference_sim.intervals import Interval, mean_interval

#: What counts as a published number where the paper gives neither an interval nor an exact value, as a share of it.
RELATIVE_TOLERANCE = 0.1
#: Of the rounding of equal floating-point values.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Accepted:
    """The values that count as the published one."""

    lowest: float = -math.inf
    highest: float = math.inf
    #: An order: the bounds themselves do not count.
    is_open: bool = False

    @classmethod
    def around(cls, published: float, tolerance: float) -> Accepted:
        """All values within `tolerance` of a published one."""
        return cls(published - tolerance, published + tolerance)


def tolerance_of(published: float, rounding: float = 0.0) -> float:
    """A tenth of a published number, and no less than half a unit of its last digit (`rounding`)."""
    return max(RELATIVE_TOLERANCE * abs(published), rounding)


def judge(found: Interval, accepted: Accepted, *, direction: bool = False) -> StatementOutcome:
    """Reproduced where the whole interval is accepted, undecided where only a part of it is, otherwise not reproduced.

    A mean without an interval (`half_width` is None: one value) is undecided unless all values are accepted.
    `direction` is whether the effect has the published direction; it only matters where the interval is outside.
    """
    half_width = math.inf if found.half_width is None else found.half_width
    low, high = found.mean - half_width, found.mean + half_width
    slack = 0.0 if accepted.is_open else _ROUNDING * max(1.0, abs(found.mean))
    if accepted.is_open:
        is_inside = low > accepted.lowest and high < accepted.highest
        is_outside = high <= accepted.lowest or low >= accepted.highest
    else:
        is_inside = low >= accepted.lowest - slack and high <= accepted.highest + slack
        is_outside = high < accepted.lowest - slack or low > accepted.highest + slack
    if is_inside:
        return StatementOutcome.REPRODUCED
    if not is_outside:
        return StatementOutcome.UNDECIDED
    return StatementOutcome.DIRECTION if direction else StatementOutcome.NOT


def compare_value(
    published: float, found: Interval, *, rounding: float = 0.0, direction: bool | None = None
) -> StatementOutcome:
    """A published number with the tolerance of `tolerance_of`.

    `direction` is whether the effect goes in the published direction; by default, whether both numbers have the same
    sign.
    """
    same = published * found.mean > 0 if direction is None else direction
    return judge(found, Accepted.around(published, tolerance_of(published, rounding)), direction=same)


def compare_positive(difference: Interval) -> StatementOutcome:
    """An order as a difference that should be above 0: undecided where its interval crosses 0."""
    return judge(difference, Accepted(lowest=0.0, is_open=True))


def combined(outcomes: Sequence[StatementOutcome]) -> StatementOutcome:
    """Outcome of a statement with several parts: one that fails is enough for it not to be reproduced.

    Its direction is the published one where some part is reproduced or has the published direction.
    """
    failed = (StatementOutcome.NOT, StatementOutcome.DIRECTION)
    if any(outcome in failed for outcome in outcomes):
        held = (StatementOutcome.REPRODUCED, StatementOutcome.DIRECTION)
        return StatementOutcome.DIRECTION if any(outcome in held for outcome in outcomes) else StatementOutcome.NOT
    if any(outcome is StatementOutcome.UNDECIDED for outcome in outcomes):
        return StatementOutcome.UNDECIDED
    return StatementOutcome.REPRODUCED


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
