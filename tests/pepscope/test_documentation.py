"""Documentation agrees with the code, and its links exist."""

from __future__ import annotations

import csv
import re
import runpy
from pathlib import Path

import pytest

from reference_sim.simulation import simulate

DOCS = Path(__file__).parents[2] / "docs"


def test_commands_page_is_current() -> None:
    build = runpy.run_path(str(DOCS / "build.py"))
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == build["page"](), "run `make docs`"
    for name in ("detect", "explain", "inspect", "simulate"):
        assert f"## pepscope {name}\n" in written


def test_the_glossary_page_has_the_terms_of_the_tooltips() -> None:
    build = runpy.run_path(str(DOCS / "build.py"))
    assert (DOCS / "glossary.md").read_text(encoding="utf-8") == build["glossary_page"](), "run `make docs`"


def test_the_page_of_findings_has_the_weights_that_there_are() -> None:
    build = runpy.run_path(str(DOCS / "build.py"))
    assert (DOCS / "methods" / "findings.md").read_text(encoding="utf-8") == build["findings_page"](), "run `make docs`"


METHOD_PAGES = sorted(page for page in (DOCS / "methods").glob("*.md") if page.name != "findings.md")
FIGURES = {path.name for path in (DOCS / "figures").iterdir()}


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_method_pages_show_a_figure_and_their_blind_spots(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(\.\./figures/([a-z0-9-]+\.(?:png|svg))\)", text)
    assert shown
    assert set(shown) <= FIGURES
    assert "blind spots" in text.lower()


def test_every_figure_is_drawn_by_us_and_shown() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"])
    drawn = re.findall(r'Drawing\("([a-z0-9-]+)"', (DOCS / "draw_figures.py").read_text(encoding="utf-8"))
    assert {f"{name}.png" for name in drawn} <= FIGURES
    assert all(f"figures/{name}" in pages for name in FIGURES)


def test_the_figure_of_what_one_capture_finds_has_the_numbers_of_its_table() -> None:
    page = (DOCS / "validation" / "one-capture.md").read_text(encoding="utf-8")
    with (DOCS / "validation" / "one_capture_found.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert f"{int(row['found']):,} of {int(row['legs']):,}" in page, row


@pytest.mark.parametrize(
    ("script", "function", "arguments"),
    [
        ("draw_validation.py", "chart", ()),
        ("draw_timing.py", "chart", ("client",)),
        ("draw_timing.py", "chart", ("server",)),
        ("draw_timing.py", "late_answers", ()),
        ("draw_split_gain.py", "losses", ()),
        ("draw_split_gain.py", "objects", ()),
    ],
)
def test_charts_are_drawn_from_the_tables_that_there_are(
    script: str, function: str, arguments: tuple[str, ...]
) -> None:
    drawing = runpy.run_path(str(DOCS / script))
    chart = drawing[function](*arguments)
    written = (DOCS / "figures" / f"{chart.name}.svg").read_text(encoding="utf-8")
    assert written == drawing["chart_svg"](chart) + "\n", "run `make docs`"


def test_the_guide_to_scenarios_has_the_fields_that_there_are() -> None:
    build = runpy.run_path(str(DOCS / "scenario_fields.py"))
    written = (DOCS / "scenarios.md").read_text(encoding="utf-8")
    assert written == build["page"](), "run `make docs`"
    for field in ("rate_bit_s", "block_error_rate", "speech_terminals", "first_grant_bytes", "approach_per_s"):
        assert f"`{field}`" in written


def test_the_page_of_verdicts_has_the_weights_that_there_are() -> None:
    build = runpy.run_path(str(DOCS / "worked_verdict.py"))
    page = DOCS / "methods" / "verdict.md"
    assert page.read_text(encoding="utf-8") == build["page"](), "run `make docs`"


def test_the_smallest_scenario_is_the_one_in_the_guide() -> None:
    example = (DOCS.parent / "examples" / "scenario.toml").read_text(encoding="utf-8")
    assert example.split("\n", 3)[3] in (DOCS / "scenarios.md").read_text(encoding="utf-8")
    run = simulate(DOCS.parent / "examples" / "scenario.toml", captures=False)
    assert run.truth["flows"][0]["delivered_exactly"] == {"down": True, "up": True}


ROOMS = (
    "benchmarks|crates|detector|docs|examples|fuzz|papers|pepscope|prober|reference_proxy|reference_sim|reports|tests"
)
PAGES = [
    *DOCS.parent.glob("*.md"),
    *(page for room in ROOMS.split("|") for page in (DOCS.parent / room).rglob("*.md") if "target" not in page.parts),
]


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_links_between_pages_lead_to_files() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", _prose(page))]
    within = [(page, link) for page, link in links if not re.match(r"[a-z]+:", link)]
    assert len(within) > 50
    assert [f"{page}: {link}" for page, link in within if not (page.parent / link).exists()] == []


def test_the_list_of_decisions_has_each_of_them_once() -> None:
    notes = sorted(page.name for page in (DOCS / "decisions").glob("[0-9]*.md"))
    assert len(notes) > 90
    listed = re.findall(r"\[(\d{3})\]\((\1-[^)]+)\)", (DOCS / "decisions" / "index.md").read_text(encoding="utf-8"))
    assert sorted(name for _, name in listed) == notes, "a line below its room in docs/decisions/index.md for each note"


def test_names_on_the_map_of_the_code_are_defined_where_it_says() -> None:
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \| `([\w/.]+)` \|", (DOCS / "code-map.md").read_text(encoding="utf-8"), re.M)
    assert len(rows) > 25
    defined = {path: (DOCS.parent / path).read_text(encoding="utf-8") for _, path in rows}
    assert [row for row in rows if not re.search(rf"^(class|def) {row[0]}\b", defined[row[1]], re.M)] == []


def test_paths_that_pages_name_exist() -> None:
    """A path in backticks names a file of the project, unless capitals in it stand for other names.

    Left out are decisions, which are not rewritten, and what a reader adds: a file that a page has for pasting, its
    test and its page.
    """
    missing, seen = [], 0
    for page in PAGES:
        if page.parent.name == "decisions":
            continue
        whole = page.read_text(encoding="utf-8")
        pasted = {Path(path).stem for path in re.findall(r"<!-- paste: (\S+) -->", whole)}
        for path in re.findall(rf"`((?:{ROOMS})/[\w./-]+)`", _prose(page)):
            subject = Path(path).stem.removeprefix("test_").replace("-", "_")
            if subject in pasted or re.search(r"/[A-Z]+(/|$)", path):
                continue
            seen += 1
            below = [top / path for top in page.parents if top.is_relative_to(DOCS.parent)]
            # A pair of captures is named by what both files begin with.
            if not any(place.exists() or any(place.parent.glob(f"{place.name}.*")) for place in below):
                missing.append(f"{page}: {path}")
    assert seen > 50
    assert missing == []
