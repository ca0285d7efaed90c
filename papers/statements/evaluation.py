"""The evaluator of statements: measured quantities beside the published ones, the same for every paper."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.results import Assumption, Comparison, Statement, StatementOutcome
from papers.statements.comparing import RELATIVE_TOLERANCE, Accepted, combined, judge, tolerance_of, written
from papers.statements.table import Check, Row, StatementError, read_statements
from reference_sim.intervals import Interval

#: Measured quantities by name: an Interval, a number, a condition, words, or a list of these.
Quantities = Mapping[str, Any]

#: From the best outcome to the least.
_ORDER = (
    StatementOutcome.REPRODUCED,
    StatementOutcome.UNDECIDED,
    StatementOutcome.DIRECTION,
    StatementOutcome.NOT,
)
_FEWER_RUNS = "so few runs do not measure it; --quick and --full do"


def joined(*parts: Quantities) -> Quantities:
    """Quantities of several modules as one table. Raises ValueError where two of them give one name."""
    together: dict[str, Any] = {}
    for part in parts:
        if twice := together.keys() & part.keys():
            raise ValueError(f"quantities must have one source each, but two give {', '.join(sorted(twice))}")
        together |= part
    return together


def evaluate(path: Path, quantities: Quantities, assumptions: Sequence[Assumption] = ()) -> tuple[Statement, ...]:
    """The statements of a table with their outcomes.

    Raises StatementError for a table that does not follow its form, or names a quantity that was not measured or an
    assumption that is not among those given.
    """
    effects = {assumption.subject: assumption.effect for assumption in assumptions}
    return tuple(
        _statement(row, _Known({**quantities, **case}), effects) for row, case in read_statements(path, quantities)
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement and its outcome, without the words of a page."""

    where: str
    published: str
    outcome: StatementOutcome
    comparisons: tuple[Comparison, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What names it in its table."""
        return self.where, self.published


def judged(path: Path, quantities: Quantities) -> tuple[Judged, ...]:
    """Outcomes of those statements of a table that `quantities` measures and that could come out otherwise.

    Raises StatementError for a table that does not follow its form.
    """
    found = []
    for row, case in read_statements(path, quantities, is_partial=True):
        known = _Known({**quantities, **case})
        names = [name for check in row.checks for name in _names(check)]
        if row.not_measured or row.by_construction or any(name not in known for name in names):
            continue
        comparisons = _comparisons(row, known)
        where, published = (_WORDS.vformat(text, (), known) for text in (row.where, row.published))
        found.append(Judged(where, published, _outcome(row, comparisons), comparisons))
    return tuple(found)


def _names(check: Check) -> list[str]:
    """Quantities that a check needs."""
    needed = (check.quantity, check.holds, check.equals, check.direction)
    return [name for name in needed if isinstance(name, str) and name]


def _comparisons(row: Row, known: _Known) -> tuple[Comparison, ...]:
    return tuple(
        one for check in row.checks for one in (_compare(check, member, known) for member in _members(check, known))
    )


def _statement(row: Row, known: _Known, effects: Mapping[str, str]) -> Statement:
    where, published = (_WORDS.vformat(text, (), known) for text in (row.where, row.published))
    missing = row.is_optional and any(check.quantity not in known for check in row.checks)
    if row.not_measured or missing:
        reason = row.not_measured or _FEWER_RUNS
        return Statement(where, published, "", StatementOutcome.NOT_MEASURED, reason, _tolerances(row, known))
    comparisons = _comparisons(row, known)
    outcome = _outcome(row, comparisons)
    reason = _reason(row, outcome)
    return Statement(
        where,
        published,
        _WORDS.vformat(row.found, (), known),
        outcome,
        _WORDS.vformat(reason, (), known),
        _tolerances(row, known),
        comparisons,
        _sensitivity(row, effects),
    )


def _outcome(row: Row, comparisons: Sequence[Comparison]) -> StatementOutcome:
    """Outcome of all checks of a statement."""
    outcomes = [comparison.outcome for comparison in comparisons]
    outcome = combined(outcomes) if row.combine == "mixed" else max(outcomes, key=_ORDER.index)
    if row.by_construction and outcome is StatementOutcome.REPRODUCED:
        return StatementOutcome.BY_CONSTRUCTION
    return outcome


def _reason(row: Row, outcome: StatementOutcome) -> str:
    """Template of the words on a difference; what only explains a failure is not said of what is undecided."""
    if outcome is StatementOutcome.BY_CONSTRUCTION:
        return row.by_construction
    if outcome in (StatementOutcome.REPRODUCED, StatementOutcome.UNDECIDED):
        return row.remark
    return row.reason or row.remark


def _sensitivity(row: Row, effects: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for subject in row.depends_on:
        if subject not in effects:
            raise StatementError(f"depends_on must name an assumption of the paper, got {subject}")
    return tuple((subject, effects[subject]) for subject in row.depends_on if effects[subject])


def _members(check: Check, known: Quantities) -> Sequence[Interval]:
    """What is compared: a number without an interval is exact, since it is calculated or counted."""
    if check.holds is not None:
        is_true = known[check.holds]
        return [Interval(0.5, None, 1) if is_true is None else Interval(float(is_true), 0.0, 1)]
    quantity = known[check.quantity]
    members = quantity if isinstance(quantity, list) else [quantity]
    return [one if isinstance(one, Interval) else Interval(float(one), 0.0, 1) for one in members]


def _compare(check: Check, found: Interval, known: Quantities) -> Comparison:
    accepted, direction = _accepted(check, known), _direction(check, found, known)
    return Comparison(
        check.quantity or str(check.holds),
        found.mean,
        found.half_width,
        found.count,
        accepted.lowest if math.isfinite(accepted.lowest) else None,
        accepted.highest if math.isfinite(accepted.highest) else None,
        judge(found, accepted, direction=direction),
    )


def _accepted(check: Check, known: Quantities) -> Accepted:
    """The values that count as the published one."""
    if check.equals is not None:
        published = _published(check, known)
        return Accepted.around(published, _tolerance(check, published))
    if check.above is not None:
        return Accepted(lowest=check.above, is_open=True)
    if check.at_most is not None:
        return Accepted(highest=check.at_most + (check.tolerance or 0.0))
    if check.within is not None:
        return Accepted(-check.within, check.within)
    if check.between is not None:
        return Accepted(*check.between, is_open=True)
    return Accepted(lowest=1.0)


def _direction(check: Check, found: Interval, known: Quantities) -> bool:
    """Whether the effect has the published direction."""
    if check.direction is not None:
        return bool(known[check.direction] if isinstance(check.direction, str) else check.direction)
    if check.equals is not None:
        return _published(check, known) * found.mean > 0.0
    return check.direction_above is not None and found.mean > check.direction_above


def _published(check: Check, known: Quantities) -> float:
    published = known[check.equals] if isinstance(check.equals, str) else check.equals
    return float(published or 0.0)


def _tolerance(check: Check, published: float) -> float:
    return tolerance_of(published, check.rounding) if check.tolerance is None else check.tolerance


def _tolerances(row: Row, known: Quantities) -> str:
    """What each check accepts, and the source of that."""
    return "; ".join(dict.fromkeys(_accepted_in_words(check, known) for check in row.checks))


def _accepted_in_words(check: Check, known: Quantities) -> str:
    if check.equals is not None:
        published = _published(check, known)
        tolerance = _tolerance(check, published)
        is_rounding = check.tolerance is None and tolerance > RELATIVE_TOLERANCE * abs(published)
        by_default = "half a unit of the last digit" if is_rounding else "a tenth of the published number"
        return f"{published:.4g} ± {tolerance:.3g} ({check.source or by_default})"
    if check.holds is not None:
        return f"the condition: {check.source or check.holds.replace('_', ' ')}"
    source = check.source or "an order, by a one-sided test"
    if check.above is not None:
        return f"above {check.above:g} ({source})"
    if check.at_most is not None:
        return f"at most {check.at_most + (check.tolerance or 0.0):g} ({source})"
    if check.within is not None:
        return f"within {check.within:g} of 0 ({source})"
    low, high = check.between or (-math.inf, math.inf)
    return f"between {low:g} and {high:g} ({source})"


class _Known(dict[str, Any]):
    """Quantities by name; one that is not there is a sentence."""

    def __missing__(self, name: str) -> Any:
        raise StatementError(f"{name} must be a quantity that the paper's code measures, or a value of the case")


class _Words(string.Formatter):
    """Templates: `{gain:%|2}` is an interval in percent with two digits; other values as in Python."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, Interval):
            unit, _, digits = format_spec.partition("|")
            return written(value, unit, int(digits or 3))
        return super().format_field(value, format_spec)


_WORDS = _Words()
