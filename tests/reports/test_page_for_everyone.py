"""Pages for those who print them, take pictures of them or use no pointer: by axe-core's rules and beyond them."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from pepscope.results.verdicts import DetectionResult, Verdict
from reports.audit.check_page import write_check_page
from reports.corpora.parts import network_page
from reports.corpora.site import write_site
from reports.detection.page import page_text, write_page
from tests.browser import Visit, browser
from tests.reports.checks_made_by_hand import make_check, make_place, make_port
from tests.reports.corpora.tables_made_by_hand import many_connections as corpus_connections
from tests.reports.corpora.tables_made_by_hand import write_tables
from tests.reports.results_made_by_hand import make_group, make_pair, make_result, make_series

__all__ = ["browser"]

OPEN_PLOTS = "details.connection[open] details.flow[open] .plot"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    split = make_pair(Verdict.SPLIT_TCP, series=(make_series(violations=20),))
    every = [
        split, *(make_pair(verdict, client=f"192.0.2.9:{at + 1024}") for at in range(2) for verdict in Verdict)
    ]  # fmt: skip
    write_page(make_result(split), folder / "one.html")
    grouped = (make_group(Verdict.SPLIT_TCP, 0, 1, 2),)
    write_page(DetectionResult(make_result().captures, every, grouped), folder / "many.html")
    write_site(write_tables(folder / "tables", corpus_connections(90)), folder / "site")
    write_check_page(make_check(make_port("split-tcp"), places=(make_place("far", 3),)), folder / "check.html")
    return {
        "check": folder / "check.html",
        "one connection": folder / "one.html",
        "many connections": folder / "many.html",
        "overview": folder / "site" / "index.html",
        "network": folder / "site" / network_page("192.0.2.0/24"),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["check", "one connection", "many connections", "overview", "network"])
def test_axe_finds_nothing(browser: Browser, pages: dict[str, Path], name: str, scheme: str) -> None:
    visit = Visit(browser, pages[name], color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 900})
    found = Axe().run(visit.page).response
    assert len(found["passes"]) > 15
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
    visit.page.context.close()


def test_open_figures_are_drawn_when_the_page_has_loaded_without_scrolling(
    browser: Browser, pages: dict[str, Path]
) -> None:
    visit = Visit(browser, pages["one connection"], viewport={"width": 1280, "height": 300})
    visit.page.wait_for_load_state("load")
    assert visit.page.locator(OPEN_PLOTS).count() == 7
    assert visit.page.locator(f"{OPEN_PLOTS}[data-drawn=yes]").count() == 7
    assert visit.page.locator("iframe").count() == 0
    assert visit.complaints == []


@pytest.mark.parametrize("width", [1280, 420])
def test_the_mode_bar_covers_no_legend(browser: Browser, pages: dict[str, Path], width: int) -> None:
    page = Visit(browser, pages["one connection"], viewport={"width": width, "height": 900}).page
    page.wait_for_load_state("load")
    boxes = page.evaluate(
        """() => Array.from(document.querySelectorAll(".plot[data-drawn=yes]"), (plot) => {
            const box = (name) => plot.querySelector(name)?.getBoundingClientRect();
            const bar = box(".modebar"), legend = box(".legend"), own = plot.getBoundingClientRect();
            return [bar?.top - own.top, bar?.bottom, legend?.top, bar?.height];
        })"""
    )
    with_legend = [box for box in boxes if box[2] is not None]
    assert len(with_legend) == 2
    for above, bottom, legend_top, height in with_legend:
        assert height > 0
        assert above >= 0
        assert bottom <= legend_top


def test_figures_keep_their_axes_when_the_window_changes(browser: Browser, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages["one connection"], viewport={"width": 1280, "height": 900}).page
    page.wait_for_load_state("load")
    widths = "Array.from(document.querySelectorAll('.plot[data-drawn=yes] .main-svg'), (svg) => svg.clientWidth)"
    before = page.evaluate(widths)
    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_function(f"before => {widths}.every((width, at) => width !== before[at])", arg=before)
    below = page.evaluate(
        """() => Array.from(document.querySelectorAll(".plot[data-drawn=yes]"), (plot) =>
            plot.getBoundingClientRect().bottom - plot.querySelector(".main-svg").getBoundingClientRect().bottom)"""
    )
    assert len(below) == 7
    assert min(below) >= 0


def test_the_keyboard_shows_what_a_term_means(browser: Browser, pages: dict[str, Path]) -> None:
    page = Visit(browser, pages["one connection"], viewport={"width": 1280, "height": 900}).page
    term = page.locator("h1 abbr").first
    term.focus()
    shown = term.evaluate("term => getComputedStyle(term, '::after').content")
    assert shown == f'"{term.get_attribute("title")}"'
    assert term.evaluate("term => getComputedStyle(term, '::after').position") == "fixed"
    page.keyboard.press("Tab")
    assert term.evaluate("term => getComputedStyle(term, '::after').content") == "none"


def test_tables_show_their_rows(browser: Browser, tmp_path: Path) -> None:
    pairs = [make_pair(verdict, client=f"192.0.2.9:{at + 1024}") for at in range(20) for verdict in Verdict]
    groups = tuple(make_group(Verdict.SPLIT_TCP, at, at + 1) for at in range(40))
    write_page(DetectionResult(make_result().captures, pairs, groups), tmp_path / "page.html")
    page = Visit(browser, tmp_path / "page.html", viewport={"width": 1280, "height": 900}).page
    page.locator("#connections tbody tr").nth(79).wait_for()
    heights = page.evaluate(
        "Array.from(document.querySelectorAll('.scroll'), (box) => [box.scrollHeight, box.clientHeight])"
    )
    assert len(heights) >= 2
    assert all(whole <= shown for whole, shown in heights), heights


def test_one_contradiction_has_one_number() -> None:
    from detector.detection import detect

    top = Path(__file__).parents[2]
    result = detect(*(str(top / "examples" / "split" / f"{end}.pcap.gz") for end in ("server", "mobile")), series=True)
    (pair,) = result.pairs
    (timing,) = (each for each in pair.evidence if "slack_s" in each.numbers)
    amount = f"contradict each other by {-timing.numbers['slack_s']:.3g} s"
    counts = f"{timing.numbers['violating_acks']} of {timing.numbers['acks']} acknowledgements"
    text = page_text(result)
    caption = text[text.index("Can one clock explain both data and acknowledgements?</h4>") :].partition(
        "</figcaption>"
    )[0]
    for said in (timing.summary, caption):
        assert amount in said
        assert counts in said
    assert "by up to" not in caption
