"""The table of a paper's statements, `statements.toml`: sections, wording, quantities, comparisons, tolerances."""

from __future__ import annotations

import re
from collections.abc import Mapping
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

    A quantity may be a list: each of its members is then compared.
    """

    #: Name of the quantity; with `holds`, none.
    quantity: str = ""
    #: The published number, or the name of a quantity with it: lies in the interval, widened by `tolerance`.
    equals: float | str | None = None
    #: The whole interval lies above this.
    above: float | None = None
    #: The whole interval lies at or below this, `tolerance` added.
    at_most: float | None = None
    #: The whole interval lies within so much of 0.
    within: float | None = None
    #: The mean lies above the first, the whole interval below the second.
    between: tuple[float, float] | None = None
    #: Name of a condition (a quantity that is true or false).
    holds: str | None = None
    #: Half a unit of the published number's last digit, or what else the paper leaves open.
    tolerance: Amount = 0.0
    #: Whether the effect has the published direction: a condition's name, or fixed. By default the comparison decides.
    direction: bool | str | None = None
    #: With `above`: the direction is the published one where the mean lies above this.
    direction_above: float | None = None
    #: An interval with a half width of more than this share of its mean does not count as reproduced.
    widest: Amount | None = None


class Row(Table, frozen=True):
    """One statement of the table, with the values of its case filled in."""

    #: Where the paper makes it: a section, a table, a figure, a slide.
    where: str
    #: The statement in our words, with the paper's numbers.
    published: str
    #: Template of what was found, with quantities in braces.
    found: str
    checks: Annotated[tuple[Check, ...], Meta(min_length=1)] = msgspec.field(name="check")
    #: Cause of a difference; shown unless the statement is reproduced.
    reason: str = ""
    #: What the result depends on; shown where there is no reason to show.
    remark: str = ""
    #: Condition without which the statement is not reproduced at all.
    needs: str = ""
    #: Condition without which it has the same direction at most.
    fully_only_if: str = ""
    #: "mixed": reproduced where all checks are, not reproduced where none is, else the same direction; or the "least".
    combine: Literal["mixed", "least"] = "mixed"
    #: Left out where a quantity was not measured, as with fewer runs.
    is_optional: bool = False


class _Section(Table, frozen=True):
    """Statements of one place, one set for each case."""

    statement: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)]
    where: str = ""
    #: Written in the table, or the name of a quantity that lists them.
    cases: tuple[dict[str, Any], ...] | str = ({},)


class _Document(Table, frozen=True):
    section: Annotated[tuple[_Section, ...], Meta(min_length=1)]


def read_statements(path: Path, quantities: Mapping[str, Any]) -> list[tuple[Row, Mapping[str, Any]]]:
    """All statements of a table in order, one for each case of its section, with that case.

    `<name>` in a string stands for the case's value of that name. Raises StatementError, OSError.
    """
    document = read_as(_Document, read_toml(path, StatementError), StatementError, place=path.name)
    rows = []
    for number, section in enumerate(document.section):
        place = f"{path.name}.section[{number}].statement"
        cases = quantities.get(section.cases, ()) if isinstance(section.cases, str) else section.cases
        for case in cases:
            for index, statement in enumerate(section.statement):
                rows.append((_row({"where": section.where, **statement}, case, f"{place}[{index}]"), case))
    return rows


def _row(given: Mapping[str, Any], case: Mapping[str, Any], place: str) -> Row:
    filled = {name: _filled(value, case) for name, value in given.items()}
    if isinstance(filled.get("check"), Mapping):
        filled["check"] = [filled["check"]]
    row = read_as(Row, filled, StatementError, place=place)
    for number, check in enumerate(row.checks):
        comparisons = [name for name in _COMPARISONS if getattr(check, name) is not None]
        if len(comparisons) != 1:
            given_ones = " and ".join(comparisons) or "none"
            raise StatementError(f"{place}.check[{number}] must have exactly one comparison, got {given_ones}")
    return row


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
