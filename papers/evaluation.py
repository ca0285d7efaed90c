"""The evaluator of statements: measured quantities beside the published ones, the same for every paper."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.comparing import compare_value, worst, written
from papers.results import Statement, StatementOutcome
from papers.statement_table import Check, Row, StatementError, read_statements
from reference_sim.intervals import Interval

#: Measured quantities by name: an Interval, a number, a condition, words, or a list of these.
Quantities = Mapping[str, Any]

#: From the best outcome to the least.
_ORDER = (StatementOutcome.REPRODUCED, StatementOutcome.DIRECTION, StatementOutcome.NOT)


def joined(*parts: Quantities) -> Quantities:
    """Quantities of several modules as one table. Raises ValueError where two of them give one name."""
    together: dict[str, Any] = {}
    for part in parts:
        if twice := together.keys() & part.keys():
            raise ValueError(f"quantities must have one source each, but two give {', '.join(sorted(twice))}")
        together |= part
    return together


def evaluate(path: Path, quantities: Quantities) -> tuple[Statement, ...]:
    """The statements of a table with their outcomes.

    Raises StatementError for a table that does not follow its form, or names a quantity that was not measured.
    """
    statements = []
    for row, case in read_statements(path, quantities):
        known = _Known({**quantities, **case})
        if row.is_optional and any(check.quantity not in known for check in row.checks):
            continue
        outcome = _outcome(row, known)
        is_reproduced = outcome is StatementOutcome.REPRODUCED
        reason = row.remark if is_reproduced else row.reason or row.remark
        where, published, found, reason = (
            _WORDS.vformat(text, (), known) for text in (row.where, row.published, row.found, reason)
        )
        statements.append(Statement(where, published, found, outcome, reason))
    return tuple(statements)


def _outcome(row: Row, known: Quantities) -> StatementOutcome:
    """Outcome of all checks of a statement."""
    if row.needs and not known[row.needs]:
        return StatementOutcome.NOT
    outcomes = [_compare(check, one, known) for check in row.checks for one in _members(check, known)]
    outcome = worst(outcomes) if row.combine == "mixed" else max(outcomes, key=_ORDER.index)
    if row.fully_only_if and not known[row.fully_only_if] and outcome is StatementOutcome.REPRODUCED:
        return StatementOutcome.DIRECTION
    return outcome


def _members(check: Check, known: Quantities) -> Sequence[Interval]:
    if check.holds is not None:
        return [Interval(float(known[check.holds]), None, 1)]
    quantity = known[check.quantity]
    members = quantity if isinstance(quantity, list) else [quantity]
    return [one if isinstance(one, Interval) else Interval(float(one), None, 1) for one in members]


def _compare(check: Check, found: Interval, known: Quantities) -> StatementOutcome:
    direction = known[check.direction] if isinstance(check.direction, str) else check.direction
    half_width = found.half_width or 0.0
    if check.equals is not None:
        published = known[check.equals] if isinstance(check.equals, str) else check.equals
        outcome = compare_value(published, found, rounding=check.tolerance, direction=direction)
    else:
        holds, same_direction = _bounded(check, found.mean, half_width)
        outcome = _graded(holds, same_direction or bool(direction))
    if check.widest is not None and half_width > check.widest * abs(found.mean):
        return max(outcome, StatementOutcome.DIRECTION, key=_ORDER.index)
    return outcome


def _bounded(check: Check, mean: float, half_width: float) -> tuple[bool, bool]:
    """Whether the interval keeps to the bound, and whether its mean goes in the published direction."""
    if check.above is not None:
        least = check.above if check.direction_above is None else check.direction_above
        return mean - half_width > check.above, mean > least
    if check.at_most is not None:
        bound = check.at_most + check.tolerance
        return mean + half_width <= bound, mean <= bound
    if check.within is not None:
        return abs(mean) + half_width <= check.within, False
    if check.between is not None:
        low, high = check.between
        return mean > low and mean + half_width < high, mean - half_width < high
    return bool(mean), False


def _graded(holds: bool, same_direction: bool) -> StatementOutcome:
    if holds:
        return StatementOutcome.REPRODUCED
    return StatementOutcome.DIRECTION if same_direction else StatementOutcome.NOT


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
