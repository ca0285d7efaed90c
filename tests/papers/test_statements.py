"""The table of statements and its evaluator: wording and comparisons come from the table, numbers from quantities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import papers
from papers.evaluation import evaluate, joined
from papers.library import PAPERS
from papers.results import Statement, StatementOutcome
from papers.statement_table import StatementError, read_statements
from reference_sim.intervals import Interval

R, D, N = StatementOutcome.REPRODUCED, StatementOutcome.DIRECTION, StatementOutcome.NOT
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
        ("{ quantity = 'gain', equals = 33, tolerance = 0.5 }", Interval(35.0, 1.6, 9), R),
        ("{ quantity = 'gain', equals = 33, tolerance = 0.5 }", Interval(35.0, 1.0, 9), D),
        ("{ quantity = 'gain', equals = 33 }", Interval(-35.0, 1.0, 9), N),
        ("{ quantity = 'gain', equals = 33, direction = false }", Interval(35.0, 1.0, 9), N),
        ("{ quantity = 'gain', equals = 33, widest = 0.25 }", Interval(30.0, 9.0, 9), D),
        ("{ quantity = 'gain', equals = 33, widest = 0.25 }", Interval(-30.0, 9.0, 9), N),
        ("{ quantity = 'gain', above = 0.0 }", Interval(2.0, 1.9, 9), R),
        ("{ quantity = 'gain', above = 0.0 }", Interval(2.0, 2.1, 9), D),
        ("{ quantity = 'gain', above = 0.0 }", Interval(-2.0, 2.1, 9), N),
        ("{ quantity = 'gain', above = 0.0, direction = true }", Interval(-2.0, 2.1, 9), D),
        ("{ quantity = 'gain', above = 10.0, direction_above = 1.0 }", 2.0, D),
        ("{ quantity = 'gain', above = 10.0, direction_above = 1.0 }", 0.5, N),
        ("{ quantity = 'gain', at_most = 4.0, tolerance = 0.5 }", Interval(4.0, 0.4, 9), R),
        ("{ quantity = 'gain', at_most = 4.0, tolerance = 0.5 }", Interval(4.0, 0.6, 9), D),
        ("{ quantity = 'gain', at_most = 4.0, tolerance = 0.5 }", 4.6, N),
        ("{ quantity = 'gain', within = 5.0 }", Interval(-4.0, 0.9, 9), R),
        ("{ quantity = 'gain', within = 5.0 }", Interval(-4.0, 1.1, 9), N),
        ("{ quantity = 'gain', between = [0, 10] }", Interval(5.0, 4.0, 9), R),
        ("{ quantity = 'gain', between = [0, 10] }", Interval(-1.0, 4.0, 9), D),
        ("{ quantity = 'gain', between = [0, 10] }", Interval(15.0, 4.0, 9), N),
        ("{ holds = 'gain' }", True, R),
        ("{ holds = 'gain', direction = true }", False, D),
        ("{ holds = 'gain' }", False, N),
    ],
)
def test_each_comparison_has_three_outcomes(tmp_path: Path, check: str, found: Any, outcome: StatementOutcome) -> None:
    assert outcome_of(tmp_path, check, gain=found) is outcome


def test_several_checks_are_combined_by_the_rows_rule(tmp_path: Path) -> None:
    check = "{ quantity = 'gains', above = 0.0 }"
    gains = [Interval(2.0, 1.0, 9), Interval(-2.0, 1.0, 9)]
    assert outcome_of(tmp_path, check, gains=gains) is D
    assert outcome_of(tmp_path, check, 'combine = "least"', gains=gains) is N
    assert outcome_of(tmp_path, check, 'needs = "is_ahead"', gains=gains[:1], is_ahead=False) is N
    assert outcome_of(tmp_path, check, 'fully_only_if = "is_plain"', gains=gains[:1], is_plain=False) is D
    assert outcome_of(tmp_path, check, 'fully_only_if = "is_plain"', gains=gains[1:], is_plain=False) is N


def test_a_row_for_each_case_with_its_words_and_numbers(tmp_path: Path) -> None:
    head = "cases = [{ window = 3, gain = 33 }, { window = 10, gain = 66 }]"
    rest = (
        'found = "{gain_<window>:%|2} with <window>, {share:.0%} of it at once"\nreason = "slow start"\n'
        'check = { quantity = "gain_<window>", equals = "<gain>", tolerance = 0.5 }'
    )
    found = statements_of(
        tmp_path, rest, head, gain_3=Interval(33.3, 0.2, 9), gain_10=Interval(50.0, 0.2, 9), share=0.5
    )
    assert [(one.outcome, one.reason) for one in found] == [(R, ""), (D, "slow start")]
    assert found[0].found == "33 ± 0.2 % with 3, 50% of it at once"


def test_what_fewer_runs_do_not_measure_is_left_out_only_where_the_row_allows_it(tmp_path: Path) -> None:
    rest = "check = { quantity = 'gain', above = 0.0 }\nreason = 'none'\n"
    assert statements_of(tmp_path, f"{rest}is_optional = true") == ()
    with pytest.raises(StatementError, match="gain must be a quantity"):
        statements_of(tmp_path, rest)


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("check = { quantity = 'gain' }", "exactly one comparison, got none"),
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
    rows = read_statements(table, {})
    assert rows
    for row, _ in rows:
        assert row.where
        assert row.published
        assert row.found
        assert row.reason or row.remark
