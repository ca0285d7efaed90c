"""The page of commands says what the commands say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import detector.methods
from reference_sim.simulation import simulate

DOCS = Path(__file__).parents[2] / "docs"


def test_commands_page_is_current() -> None:
    build = runpy.run_path(str(DOCS / "build.py"))
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == build["page"](), "run `make docs`"
    for name in ("detect", "explain", "inspect", "simulate"):
        assert f"## pepscope {name}\n" in written


METHOD_PAGES = sorted((DOCS / "methods").glob("*.md"))
FIGURES = {path.name for path in (DOCS / "figures").glob("*.png")}


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_method_pages_show_a_figure_and_their_blind_spots(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(\.\./figures/([a-z0-9-]+\.png)\)", text)
    assert shown
    assert set(shown) <= FIGURES
    assert "blind spots" in text.lower()


def test_every_method_has_a_page() -> None:
    methods = {method.__module__.split(".")[2] for method in detector.methods.METHODS}
    assert methods <= {page.stem for page in METHOD_PAGES}


def test_every_figure_is_drawn_by_us_and_shown() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"])
    drawn = re.findall(r'Drawing\("([a-z0-9-]+)"', (DOCS / "draw_figures.py").read_text(encoding="utf-8"))
    assert {f"{name}.png" for name in drawn} <= FIGURES
    assert all(f"figures/{name}" in pages for name in FIGURES)


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
