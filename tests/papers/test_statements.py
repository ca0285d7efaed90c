"""The table of statements and its evaluator: wording and comparisons come from the table, numbers from quantities."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import papers
from papers.library import PAPERS
from papers.results import Assumption, Statement, StatementOutcome
from papers.statements.evaluation import evaluate, joined
from papers.statements.table import StatementError, read_statements
from reference_sim.intervals import Interval

R, D, N = StatementOutcome.REPRODUCED, StatementOutcome.DIRECTION, StatementOutcome.NOT
U, BUILT, UNMEASURED = StatementOutcome.UNDECIDED, StatementOutcome.BY_CONSTRUCTION, StatementOutcome.NOT_MEASURED
EQUALS, SOURCE = "{ quantity = 'gain', equals = 33", "source = 'the paper'"
TABLES = sorted(Path(papers.__file__).parent.glob("*/statements.toml"))


def outcome_of(tmp_path: Path, check: str, more: str = "", **quantities: Any) -> StatementOutcome:
    (statement,) = statements_of(tmp_path, f'check = {check}\nreason = "another link"\n{more}', **quantities)
    return statement.outcome


def statements_of(tmp_path: Path, rest: str, head: str = "", **quantities: Any) -> tuple[Statement, ...]:
    table = tmp_path / "statements.toml"
    table.write_text(
        f'[[section]]\nwhere = "Table 1"\n{head}\n[[section.statement]]\npublished = "a gain"\n{rest}\n'
        + ("" if "found =" in rest else 'found = "a loss"\n')
    )
    return evaluate(table, quantities)


@pytest.mark.parametrize(
    ("check", "found", "outcome"),
    [
        (f"{EQUALS}, {SOURCE}, tolerance = 0.5 }}", Interval(33.2, 0.3, 9), R),
        (f"{EQUALS}, {SOURCE}, tolerance = 0.5 }}", Interval(33.2, 0.4, 9), U),
        (f"{EQUALS}, {SOURCE}, tolerance = 0.5 }}", Interval(35.0, 1.0, 9), D),
        (f"{EQUALS} }}", Interval(35.0, 1.2, 9), R),
        (f"{EQUALS} }}", Interval(35.0, 1.4, 9), U),
        (f"{EQUALS} }}", Interval(-35.0, 1.0, 9), N),
        (f"{EQUALS}, direction = false }}", Interval(45.0, 1.0, 9), N),
        (f"{EQUALS} }}", Interval(33.0, None, 1), U),
        (f"{EQUALS} }}", 33.0, R),
        ("{ quantity = 'gain', equals = 0, rounding = 0.5 }", Interval(0.2, 0.2, 9), R),
        ("{ quantity = 'gain', above = 0.0 }", Interval(2.0, 1.9, 9), R),
        ("{ quantity = 'gain', above = 0.0 }", Interval(2.0, 2.1, 9), U),
        ("{ quantity = 'gain', above = 0.0 }", Interval(-2.0, 2.1, 9), U),
        ("{ quantity = 'gain', above = 0.0 }", Interval(-2.0, 1.9, 9), N),
        ("{ quantity = 'gain', above = 0.0, direction = true }", Interval(-2.0, 1.9, 9), D),
        (f"{{ quantity = 'gain', above = 10.0, direction_above = 1.0, {SOURCE} }}", 2.0, D),
        (f"{{ quantity = 'gain', above = 10.0, direction_above = 1.0, {SOURCE} }}", 0.5, N),
        (f"{{ quantity = 'gain', at_most = 4.0, tolerance = 0.5, {SOURCE} }}", Interval(4.0, 0.4, 9), R),
        (f"{{ quantity = 'gain', at_most = 4.0, tolerance = 0.5, {SOURCE} }}", Interval(4.0, 0.6, 9), U),
        (f"{{ quantity = 'gain', at_most = 4.0, tolerance = 0.5, {SOURCE} }}", 4.6, N),
        (f"{{ quantity = 'gain', within = 5.0, {SOURCE} }}", Interval(-4.0, 0.9, 9), R),
        (f"{{ quantity = 'gain', within = 5.0, {SOURCE} }}", Interval(-4.0, 1.1, 9), U),
        (f"{{ quantity = 'gain', within = 5.0, {SOURCE} }}", Interval(-7.0, 1.1, 9), N),
        (f"{{ quantity = 'gain', between = [0, 10], {SOURCE} }}", Interval(5.0, 4.0, 9), R),
        (f"{{ quantity = 'gain', between = [0, 10], {SOURCE} }}", Interval(-1.0, 4.0, 9), U),
        (f"{{ quantity = 'gain', between = [0, 10], {SOURCE} }}", Interval(15.0, 4.0, 9), N),
        ("{ holds = 'gain' }", True, R),
        ("{ holds = 'gain' }", None, U),
        ("{ holds = 'gain', direction = true }", False, D),
        ("{ holds = 'gain' }", False, N),
    ],
)
def test_each_comparison_has_its_outcomes(tmp_path: Path, check: str, found: Any, outcome: StatementOutcome) -> None:
    assert outcome_of(tmp_path, check, gain=found) is outcome


def test_several_checks_are_combined_by_the_rows_rule(tmp_path: Path) -> None:
    check = "{ quantity = 'gains', above = 0.0 }"
    gains = [Interval(2.0, 1.0, 9), Interval(-2.0, 1.0, 9)]
    assert outcome_of(tmp_path, check, gains=gains) is D
    assert outcome_of(tmp_path, check, 'combine = "least"', gains=gains) is N
    open_gains = [Interval(2.0, 1.0, 9), Interval(0.5, 1.0, 9)]
    assert outcome_of(tmp_path, check, gains=open_gains) is U
    assert outcome_of(tmp_path, check, 'combine = "least"', gains=open_gains) is U


def test_agreement_by_construction_is_told_and_a_failure_is_not_excused_by_it(tmp_path: Path) -> None:
    by_construction = 'by_construction = "the proxy is set so"'
    rest = f"check = {{ quantity = 'gain', above = 0.0 }}\nreason = 'it is not'\n{by_construction}"
    (held,), (failed,) = (statements_of(tmp_path, rest, gain=gain) for gain in (1.0, -1.0))
    assert (held.outcome, held.reason) == (BUILT, "the proxy is set so")
    assert (failed.outcome, failed.reason) == (N, "it is not")


def test_a_statement_that_nothing_measures_is_listed_with_the_reason(tmp_path: Path) -> None:
    (statement,) = statements_of(tmp_path, "not_measured = 'the networks are gone'")
    assert (statement.outcome, statement.reason) == (UNMEASURED, "the networks are gone")


def test_a_statement_shows_what_is_accepted_and_what_it_depends_on(tmp_path: Path) -> None:
    table = tmp_path / "statements.toml"
    table.write_text(
        '[[section]]\nwhere = "Table 1"\n[[section.statement]]\npublished = "33 %"\nfound = "{gain:%}"\n'
        f'check = {EQUALS} }}\nreason = "slow start"\ndepends_on = ["Initial windows"]\n'
    )
    choices = [Assumption("Initial windows", "nothing", "3", "RFC 3390", "10: 41 %")]
    (statement,) = evaluate(table, {"gain": Interval(33.0, 1.0, 9)}, choices)
    assert statement.tolerance == "33 ± 3.3 (a tenth of the published number)"
    assert statement.sensitivity == (("Initial windows", "10: 41 %"),)
    (comparison,) = statement.comparisons
    assert (comparison.mean, comparison.half_width, comparison.count) == (33.0, 1.0, 9)
    assert comparison.lowest == pytest.approx(29.7)
    assert comparison.highest == pytest.approx(36.3)
    with pytest.raises(StatementError, match="must name an assumption"):
        evaluate(table, {"gain": 33.0})


def test_a_row_for_each_case_with_its_words_and_numbers(tmp_path: Path) -> None:
    head = "cases = [{ window = 3, gain = 33 }, { window = 10, gain = 66 }]"
    rest = (
        'found = "{gain_<window>:%|2} with <window>, {share:.0%} of it at once"\nreason = "slow start"\n'
        'check = { quantity = "gain_<window>", equals = "<gain>" }'
    )
    found = statements_of(
        tmp_path, rest, head, gain_3=Interval(33.3, 0.2, 9), gain_10=Interval(50.0, 0.2, 9), share=0.5
    )
    assert [(one.outcome, one.reason) for one in found] == [(R, ""), (D, "slow start")]
    assert found[0].found == "33 ± 0.2 % with 3, 50% of it at once"


def test_what_fewer_runs_do_not_measure_is_listed_where_the_row_allows_it(tmp_path: Path) -> None:
    rest = "check = { quantity = 'gain', above = 0.0 }\nreason = 'none'\n"
    (statement,) = statements_of(tmp_path, f"{rest}is_optional = true")
    assert statement.outcome is UNMEASURED
    with pytest.raises(StatementError, match="gain must be a quantity"):
        statements_of(tmp_path, rest)


def test_cases_that_were_not_measured_are_no_silence(tmp_path: Path) -> None:
    with pytest.raises(StatementError, match="coasts must be a quantity that lists cases"):
        statements_of(tmp_path, "check = { holds = 'gain' }", 'cases = "coasts"')


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("check = { quantity = 'gain' }", "exactly one comparison, got none"),
        ("check = { quantity = 'gain', within = 1 }", "source must say where the tolerance or bound comes from"),
        ("check = { quantity = 'gain', equals = 1, tolerance = 1 }", "source must say"),
        ("check = { holds = 'gain' }\nnot_measured = 'x'", "either a check or not_measured, got both"),
        ("reason = 'x'", "either a check or not_measured, got none"),
        ("check = { quantity = 'gain', above = 0, within = 1 }", "exactly one comparison, got above and within"),
        ("check = { quantity = 'gain', equal = 0 }", "equal is not a field"),
        ("check = { quantity = 'gain', above = 0 }\nreasons = 'x'", "reasons is not a field"),
        ("check = { quantity = 'gain', above = 0 }\ncombine = 'best'", "combine must be"),
    ],
)
def test_a_slip_in_a_table_is_named(tmp_path: Path, rest: str, words: str) -> None:
    with pytest.raises(StatementError, match=words):
        statements_of(tmp_path, rest, gain=1.0)


def test_a_quantity_has_one_source() -> None:
    assert joined({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="two give a"):
        joined({"a": 1}, {"a": 2})


def test_every_paper_has_a_table() -> None:
    assert len(TABLES) == len(PAPERS)


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.parent.name)
def test_every_row_has_place_statement_and_reason(table: Path) -> None:
    rows = read_statements(table, None)
    assert rows
    for row, _ in rows:
        assert row.where
        assert row.published
        assert bool(row.found) == bool(row.checks)
        assert row.reason or row.remark or row.not_measured


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.parent.name)
def test_every_check_has_a_tolerance_or_bound_with_its_source(table: Path) -> None:
    """Of the table as it is written, with the statements whose cases are measured."""
    document = tomllib.loads(table.read_text(encoding="utf-8"))
    statements = [one for section in document["section"] for one in section["statement"]]
    for statement in statements:
        checks = statement.get("check", [])
        for check in checks if isinstance(checks, list) else [checks]:
            is_order_or_tenth = check.get("above") == 0.0 or ("equals" in check and "tolerance" not in check)
            assert is_order_or_tenth or check.get("source"), (statement["published"], check)
