"""The page's table of connections in a browser: every connection is in the page, few are in the document."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import DetectionResult, PairResult, Verdict
from reports.detection.page import MAX_SECTIONS, write_page
from tests.browser import Visit, browser
from tests.reports.results_made_by_hand import make_group, make_pair, make_result, make_series

__all__ = ["browser"]

CONNECTIONS = 188_000
WEIGHTS = {Verdict.REGULAR: 70, Verdict.SPLIT_TCP: 8, Verdict.TCP_PROXY: 4, Verdict.INCONCLUSIVE: 18}

#: The one connection that stands last: regular, with the least payload.
LAST = make_pair(Verdict.REGULAR, client="172.16.0.1:1025", payload_bytes=0, reason="Here is the last one.")

ROWS = "#connections tbody tr"


def many_connections(count: int) -> PairTable:
    """Connections whose addresses, ports, sizes and reasons vary as those of a day's web traffic."""
    draw = random.Random(5)
    table = PairTable()
    for verdict in draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count - 1):
        host = f"10.{draw.randrange(4)}.{draw.randrange(64)}.{draw.randrange(1, 255)}"
        pair = make_pair(
            verdict,
            client=f"{host}:{draw.randrange(1024, 65536)}",
            server=f"203.0.{draw.randrange(10)}.{int(draw.paretovariate(0.7)) % 250 + 1}:{draw.choice((443, 443, 80))}",
            payload_bytes=100 + int(draw.lognormvariate(9, 2)),
            reason=f"Only {draw.randrange(10)} of {draw.randrange(10, 400)} segments arrive as they left; "
            f"{draw.randrange(200)} acknowledgements are early.",
            evidence=(),
        )
        table.append(pair)
    for row in range(len(table)):
        table.columns.duration_s[row] = draw.lognormvariate(0, 2)
    table.append(LAST)
    return table


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "page.html"
    pairs = many_connections(CONNECTIONS)
    series = make_series(20_000)
    split = [place for place in range(CONNECTIONS) if pairs.verdict(place) is Verdict.SPLIT_TCP]
    for place in split[:60]:
        pairs.add_series(place, (series, series))
    groups = (make_group(Verdict.SPLIT_TCP, *split),)
    write_page(DetectionResult(make_result().captures, pairs, groups), path)
    return path


@pytest.fixture
def visit(browser: Browser, large_page: Path) -> Iterator[Visit]:
    visit = Visit(browser, large_page, viewport={"width": 1280, "height": 800})
    visit.page.wait_for_selector(ROWS)
    yield visit
    assert visit.complaints == []
    assert visit.requests == [large_page.as_uri()]
    assert visit.page.locator(ROWS).count() < 200
    visit.page.context.close()


def scroll_to_end(visit: Visit) -> None:
    visit.page.locator("#connections-scroll").evaluate("box => { box.scrollTop = box.scrollHeight; }")


def test_a_page_of_many_connections_stays_small_with_groups_first(large_page: Path) -> None:
    text = large_page.read_text(encoding="utf-8")
    assert len(text.encode()) < 10e6
    assert text.index('id="groups"') < text.index('id="connections"')
    assert LAST.reason not in text


def test_scrolling_to_the_end_shows_the_last_connection(visit: Visit) -> None:
    assert visit.page.locator("#connections").get_attribute("aria-rowcount") == str(CONNECTIONS + 1)
    assert visit.page.locator("#shown").inner_text() == "188,000 connections"
    assert visit.page.locator(ROWS).first.get_attribute("aria-rowindex") == "2"
    scroll_to_end(visit)
    last = visit.page.locator(ROWS).filter(has_text=LAST.reason)
    last.wait_for()
    assert last.get_attribute("aria-rowindex") == str(CONNECTIONS + 1)
    box, row = visit.page.locator("#connections-scroll").bounding_box(), last.bounding_box()
    assert box is not None
    assert row is not None
    assert row["y"] + row["height"] == pytest.approx(box["y"] + box["height"], abs=3)


def test_search_and_filter_find_what_was_not_in_the_document(visit: Visit) -> None:
    rows = visit.page.locator(ROWS)
    assert rows.filter(has_text="172.16.0.1:1025").count() == 0
    for words in ("172.16.0.1:1025", "172.16.0.1:10", "THE LAST one", "regular here 172.16"):
        visit.page.locator("#filter").fill(words)
        assert rows.count() == 1
        assert "172.16.0.1:1025" in rows.inner_text()
    assert visit.page.locator("#shown").inner_text() == "1 of 188,000 connections shown"
    visit.page.locator(".chip.regular").click()
    assert rows.count() == 0
    visit.page.locator("#filter").fill("")
    scroll_to_end(visit)
    visit.page.locator(".badge.inconclusive").first.wait_for()
    assert visit.page.locator(".badge.regular", has_text="regular").locator("visible=true").count() == 0
    assert int(visit.page.locator("#connections").get_attribute("aria-rowcount") or 0) < CONNECTIONS / 2


def test_sorting_orders_all_connections(visit: Visit) -> None:
    first = visit.page.locator(ROWS).first
    visit.page.get_by_role("button", name="payload").click()
    assert "172.16.0.1:1025" in first.inner_text()
    visit.page.get_by_role("button", name="payload").click()
    assert "MB" in first.inner_text()
    visit.page.get_by_role("button", name="client").click()
    assert "10.0.0.1:" in first.inner_text()
    assert visit.page.locator("#connections th[aria-sort]").get_attribute("aria-sort") == "ascending"
    scroll_to_end(visit)
    visit.page.locator(ROWS).filter(has_text=LAST.reason).wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_keyboard_moves_from_row_to_row(visit: Visit, width: int) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    focused = page.locator("#connections tbody tr:focus")
    page.locator("#connections thead button").last.focus()
    page.keyboard.press("Tab")
    assert focused.get_attribute("aria-rowindex") == "2"
    page.keyboard.press("ArrowDown")
    assert focused.get_attribute("aria-rowindex") == "3"
    page.keyboard.press("End")
    assert LAST.reason in focused.inner_text()
    page.locator("#connections-scroll").evaluate("box => { box.scrollTop = 0; }")
    page.locator(f"{ROWS}[aria-rowindex='2']").wait_for()
    assert focused.get_attribute("aria-rowindex") == str(CONNECTIONS + 1)
    page.keyboard.press("ArrowUp")
    assert focused.get_attribute("aria-rowindex") == str(CONNECTIONS)
    box, row = page.locator("#connections-scroll").bounding_box(), focused.bounding_box()
    assert box is not None
    assert row is not None
    assert box["y"] < row["y"] < box["y"] + box["height"]
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_selector("details.connection[id^=connection][open]:target")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_only_connections_with_a_section_are_links(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(*[make_pair(Verdict.REGULAR)] * (MAX_SECTIONS + 1)), path)
    visit = Visit(browser, path)
    scroll_to_end(visit)
    last = visit.page.locator(f"{ROWS}[aria-rowindex='{MAX_SECTIONS + 2}']")
    assert last.locator("a").count() == 0
    before = visit.page.locator(f"{ROWS}[aria-rowindex='{MAX_SECTIONS + 1}'] a")
    assert before.get_attribute("href") == f"#connection-{MAX_SECTIONS - 1}"
    visit.page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_last_row_shows_all_of_its_reason(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    reason = "The segments that arrive are the segments that left. " * 9
    write_page(make_result(*[make_pair(Verdict.REGULAR, reason=reason)] * 2), path)
    visit = Visit(browser, path, viewport={"width": width, "height": 900})
    text = visit.page.locator(f"{ROWS} td.reason span").last
    hidden = "text => text.scrollHeight - text.clientHeight"
    assert text.evaluate(hidden) > 20
    text.click()
    assert text.evaluate(hidden) <= 1
    scroll_to_end(visit)
    box, row = visit.page.locator("#connections-scroll").bounding_box(), visit.page.locator(ROWS).last.bounding_box()
    assert box is not None
    assert row is not None
    assert row["y"] + row["height"] <= box["y"] + box["height"] + 1
    visit.page.context.close()


def test_a_print_holds_the_first_rows_and_says_so(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(*[make_pair(Verdict.REGULAR)] * 600), path)
    visit = Visit(browser, path)
    visit.page.wait_for_selector(ROWS)
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert visit.page.locator(ROWS).count() == 500
    assert visit.page.locator("#shown").inner_text() == "600 connections, the first 500 of them in print"
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert visit.page.locator(ROWS).count() < 50
    assert visit.page.locator("#shown").inner_text() == "600 connections"
    visit.page.context.close()


def test_without_scripts_the_page_says_where_the_connections_are(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(*[make_pair(Verdict.REGULAR)] * 3), path)
    visit = Visit(browser, path, java_script_enabled=False)
    assert "evidence of 3 connections below are complete" in visit.page.locator("main").inner_text()
    assert visit.page.locator("details.connection").count() == 3
    visit.page.context.close()


@pytest.mark.parametrize(
    "endpoint",
    ["192.0.2.7:40001", "[2001:db8::7]:443", "192.0.2.7:0", "192.0.2.7:007", "192.0.2.7", "a:b:99999", "é\n:1", ":"],
)
def test_endpoints_are_shown_as_they_are(browser: Browser, tmp_path: Path, endpoint: str) -> None:
    path = tmp_path / "page.html"
    pair: PairResult = make_pair(Verdict.REGULAR, client=endpoint, server=f"{endpoint}<b>&amp;")
    write_page(make_result(pair), path)
    visit = Visit(browser, path)
    cells = visit.page.locator(f"{ROWS} td.endpoint")
    visit.page.wait_for_selector(ROWS)
    assert [cells.nth(0).text_content(), cells.nth(1).text_content()] == [endpoint, f"{endpoint}<b>&amp;"]
    visit.page.context.close()
