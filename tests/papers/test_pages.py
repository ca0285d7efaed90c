"""Tables of the papers' pages come from the command's directory, and say where no value was varied."""

from __future__ import annotations

import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papers.library import PAPERS, load_paper
from papers.results import Assessment, Comparison, OtherVerdict, Reproduction, Statement, StatementOutcome
from papers.statements.page import statements_text

DOCS = Path(__file__).parents[2] / "docs"
SEARCHES = [(name, search.name) for name in PAPERS for search in load_paper(name).searches]
R, N = StatementOutcome.REPRODUCED, StatementOutcome.NOT


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A copy of the pages."""
    return Path(shutil.copytree(DOCS / "papers", tmp_path / "pages"))


def _write(directory: Path, pages: Path) -> Any:
    return runpy.run_path(str(DOCS / "paper_tables.py"))["write_tables"](directory, pages)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_gets_the_statements_of_the_command(paper: str, pages: Path, tmp_path: Path) -> None:
    before = (pages / f"{paper}.md").read_text(encoding="utf-8")
    (tmp_path / "out" / paper).mkdir(parents=True)
    (tmp_path / "out" / paper / "statements.md").write_text("0 of 1 statements\n\n| a |\n|---|\n| b |\n", "utf-8")
    assert _write(tmp_path / "out", pages) == [f"{paper}: statements"]
    after = (pages / f"{paper}.md").read_text(encoding="utf-8")
    head, _, rest = after.partition("0 of 1 statements\n\n| a |\n|---|\n| b |\n")
    assert rest
    assert before.startswith(head.rstrip("\n"))
    assert before.endswith(rest)
    assert after.count("| a |") == 1
    assert _write(tmp_path / "out", pages) == [f"{paper}: statements"]
    assert (pages / f"{paper}.md").read_text(encoding="utf-8") == after


@pytest.mark.parametrize(("paper", "search"), SEARCHES)
def test_every_search_has_a_place(paper: str, search: str, pages: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / paper / "search").mkdir(parents=True)
    (tmp_path / "out" / paper / "search" / f"{search}.md").write_text("5 of 9 hold\n", encoding="utf-8")
    assert _write(tmp_path / "out", pages) == [f"{paper}: search {search}"]
    assert (pages / "open-parameters.md").read_text(encoding="utf-8").count("\n\n5 of 9 hold\n\n") == 1


def test_a_page_without_the_place_is_named(pages: Path, tmp_path: Path) -> None:
    (pages / "hu.md").write_text("no place\n", encoding="utf-8")
    (tmp_path / "out" / "hu").mkdir(parents=True)
    (tmp_path / "out" / "hu" / "statements.md").write_text("0 of 1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"hu\.md must have the lines"):
        _write(tmp_path / "out", pages)


def test_a_row_says_where_no_value_was_varied() -> None:
    measured = Comparison("x", 1.0, 0.1, 5, 0.0, None, R)
    varied = Statement("here", "it", "1", R, comparisons=(measured,), elsewhere=(OtherVerdict("", "", R, (measured,)),))
    unvaried = replace(varied, elsewhere=())
    calculated = replace(unvaried, outcome=N, reason="no", comparisons=(replace(measured, half_width=0.0, count=1),))
    fixed = replace(unvaried, outcome=StatementOutcome.BY_CONSTRUCTION, reason="a formula")
    condition = replace(unvaried, comparisons=(Comparison("holds", 1.0, 0.0, 1, 1.0, None, R),))
    result = Reproduction("p", "P", "s", "full", Assessment((varied, unvaried, calculated, fixed, condition)))
    *_, first, second, third, fourth, fifth = statements_text(result).splitlines()
    assert first.endswith("| The same with 0 values of 0 parameters |")
    assert second.endswith("| not varied |")
    assert fifth.endswith("| not varied |")
    assert third.endswith("|  |")
    assert fourth.endswith("|  |")
