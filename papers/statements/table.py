"""The table of a paper's statements, `statements.toml`: sections, wording, quantities, comparisons, tolerances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pepscope.errors import PepscopeError
from pepscope.settings import read_toml
from pepscope.strict_reading import Amount, Table, read_as

_CASE_VALUE = re.compile(r"<(\w+)>")
_COMPARISONS = ("equals", "above", "at_most", "within", "between", "holds")


class StatementError(PepscopeError):
    """A table of statements that does not follow its form, or names a quantity that is not measured."""


class Check(Table, frozen=True):
    """One comparison of a measured quantity: exactly one of the comparisons below is set.

    A quantity may be a list: each of its members is then compared. An interval is accepted where all of it is.
    """

    #: Name of the quantity; with `holds`, none.
    quantity: str = ""
    #: The published number, or the name of a quantity with it. Without a `tolerance` a tenth of it is the tolerance.
    equals: float | str | None = None
    #: Above this; 0 stands for an order.
    above: float | None = None
    #: At or below this, `tolerance` added.
    at_most: float | None = None
    #: Within so much of 0.
    within: float | None = None
    #: Between the two.
    between: tuple[float, float] | None = None
    #: Name of a condition: a quantity that is true, false, or None where the runs do not decide.
    holds: str | None = None
    #: The published number's own interval, or half a unit of its last digit where it is calculated.
    tolerance: Amount | None = None
    #: Half a unit of the published number's last digit: the least that a tolerance of a tenth may be.
    rounding: Amount = 0.0
    #: Where the tolerance or the bound comes from.
    source: str = ""
    #: Whether the effect has the published direction: a condition's name, or fixed. By default the comparison decides.
    direction: bool | str | None = None
    #: With `above`: the direction is the published one where the mean lies above this.
    direction_above: float | None = None

    @property
    def comparisons(self) -> list[str]:
        """Names of the comparisons that are set."""
        return [name for name in _COMPARISONS if getattr(self, name) is not None]

    @property
    def needs_source(self) -> bool:
        """Whether this project chose a number that the reader may want the source of."""
        if self.equals is not None:
            return self.tolerance is not None
        return self.holds is None and self.above != 0.0


class Row(Table, frozen=True):
    """One statement of the table, with the values of its case filled in."""

    #: Where the paper makes it: a section, a table, a figure, a slide.
    where: str
    #: The statement in our words, with the paper's numbers.
    published: str
    #: Template of what was found, with quantities in braces.
    found: str = ""
    checks: tuple[Check, ...] = msgspec.field(name="check", default=())
    #: Cause of a difference; shown unless the statement is reproduced.
    reason: str = ""
    #: What the result depends on; shown where there is no reason to show.
    remark: str = ""
    #: Why nothing is measured; then there is no check.
    not_measured: str = ""
    #: The parameter from which the statement follows, so that agreement says nothing.
    by_construction: str = ""
    #: Subjects of the assumptions whose other values change the result.
    depends_on: tuple[str, ...] = ()
    #: "mixed": the direction is the published one where some check is reproduced; or the outcome of the "least".
    combine: Literal["mixed", "least"] = "mixed"
    #: Listed as not measured where a quantity was not measured, as with fewer runs.
    is_optional: bool = False


class _Section(Table, frozen=True):
    """Statements of one place, one set for each case."""

    statement: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)]
    where: str = ""
    #: Written in the table, or the name of a quantity that lists them.
    cases: tuple[dict[str, Any], ...] | str = ({},)


class _Document(Table, frozen=True):
    section: Annotated[tuple[_Section, ...], Meta(min_length=1)]


def read_statements(
    path: Path, quantities: Mapping[str, Any] | None, *, is_partial: bool = False
) -> list[tuple[Row, Mapping[str, Any]]]:
    """All statements of a table in order, one for each case of its section, with that case.

    `<name>` in a string stands for the case's value of that name. Without `quantities` only the sections are read whose
    cases the table itself lists; with `is_partial` sections whose cases are no quantity are left out. Raises
    StatementError, OSError.
    """
    document = read_as(_Document, read_toml(path, StatementError), StatementError, place=path.name)
    rows = []
    for number, section in enumerate(document.section):
        place = f"{path.name}.section[{number}].statement"
        if is_partial and isinstance(section.cases, str) and section.cases not in (quantities or {}):
            continue
        for case in _cases(section, quantities):
            for index, statement in enumerate(section.statement):
                rows.append((_row({"where": section.where, **statement}, case, f"{place}[{index}]"), case))
    return rows


def _cases(section: _Section, quantities: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    if not isinstance(section.cases, str):
        return section.cases
    if quantities is None:
        return ()
    if not quantities.get(section.cases):
        raise StatementError(f"{section.cases} must be a quantity that lists cases, for {section.where}")
    cases: Sequence[Mapping[str, Any]] = quantities[section.cases]
    return cases


def _row(given: Mapping[str, Any], case: Mapping[str, Any], place: str) -> Row:
    filled = {name: _filled(value, case) for name, value in given.items()}
    if isinstance(filled.get("check"), Mapping):
        filled["check"] = [filled["check"]]
    row = read_as(Row, filled, StatementError, place=place)
    if bool(row.checks) == bool(row.not_measured):
        raise StatementError(
            f"{place} must have either a check or not_measured, got {'both' if row.checks else 'none'}"
        )
    for number, check in enumerate(row.checks):
        _require_whole(check, f"{place}.check[{number}]")
    return row


def _require_whole(check: Check, place: str) -> None:
    if len(check.comparisons) != 1:
        given_ones = " and ".join(check.comparisons) or "none"
        raise StatementError(f"{place} must have exactly one comparison, got {given_ones}")
    if check.needs_source and not check.source:
        raise StatementError(f"{place}.source must say where the tolerance or bound comes from, got none")


def _filled(value: Any, case: Mapping[str, Any]) -> Any:
    """The value with `<name>` replaced by the case's, everywhere inside; a string of nothing else keeps its type."""
    if isinstance(value, str):
        whole = _CASE_VALUE.fullmatch(value)
        if whole and whole[1] in case:
            return case[whole[1]]
        return _CASE_VALUE.sub(lambda found: str(case[found[1]]), value)
    if isinstance(value, Mapping):
        return {name: _filled(one, case) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, case) for one in value]
    return value
