"""Programs put their results between marks of the pages that the Makefile names for them."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.validation.askings import AS_RECORDED
from benchmarks.validation.marked_sections import with_section, write_section
from benchmarks.validation.report import report
from benchmarks.validation.score import Score

TOP = Path(__file__).parents[2]
PAGE = "before\n<!-- table: begin -->\nold\n<!-- table: end -->\nafter\n"


def test_the_marked_section_alone_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    write_section(path, "table", "new\n")
    assert path.read_text(encoding="utf-8") == PAGE.replace("old", "new")


@pytest.mark.parametrize(
    "page",
    ["", PAGE + PAGE, "<!-- table: begin -->\n", "<!-- table: end -->\n<!-- table: begin -->\n", PAGE.upper()],
    ids=["none", "twice", "not ended", "ended before", "another name"],
)
def test_a_page_without_both_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="must have <!-- table: begin --> and then <!-- table: end -->, each once"):
        with_section(page, "table", "new")


def _written() -> list[tuple[str, str]]:
    """Programs that the Makefile has write into a page, with the page."""
    makefile = (TOP / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"python -m (benchmarks[\w.]+)[^\n]*\s--write (docs/\S+)", makefile)


def test_every_program_finds_its_section_in_the_page_that_the_makefile_names() -> None:
    written = _written()
    assert len(written) == (TOP / "Makefile").read_text(encoding="utf-8").count("--write docs/") > 1
    for program, page in written:
        module = import_module(program)
        name = getattr(module, "SECTION", None) or import_module(f"{program}.__main__").SECTION
        text = (TOP / page).read_text(encoding="utf-8")
        assert with_section(text, name, "new") != text, program


def _score(run: str, reason: str) -> Score:
    return Score(run, AS_RECORDED, "regular", frozenset({"regular"}), "inconclusive", reason, {}, {})


def test_the_report_lists_flows_of_one_reason_once() -> None:
    scores = [_score("a", "22 segments were compared"), _score("a", "164 segments were compared"), _score("b", "none")]
    text = report(scores)
    assert "| a | as recorded | regular | inconclusive | 2 | 22 segments were compared |" in text
    assert "| b | as recorded | regular | inconclusive | 1 | none |" in text
    assert "## Mechanism" not in text
