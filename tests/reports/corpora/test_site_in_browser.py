"""The site in Chromium, from a disk: links, figures, widths, the dark, the keyboard, and no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from detector.corpora.audit import audit_captures
from reports.corpora.site import write_site
from tests.browser import Visit, browser, colour_count
from tests.detector.one_capture.real_networks import named
from tests.reports.corpora.tables_made_by_hand import many_connections, write_tables

__all__ = ["browser"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    audit_captures([str(named("lte-relay.server").path)], folder / "result", processes=1)
    write_site(folder / "result", folder / "site", pages=1)
    return folder / "site"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    write_site(write_tables(folder / "tables", many_connections(3000)), folder / "site")
    return folder / "site"


def test_from_the_overview_to_a_network_to_a_connection_and_back(browser: Browser, site: Path) -> None:
    visit = Visit(browser, site / "index.html", viewport={"width": 1280, "height": 900})
    page = visit.page
    page.locator("section[aria-labelledby='networks-by-application-and-week'] tbody a").first.click()
    page.wait_for_url("**/networks/*.html")
    page.locator("section[aria-labelledby='connections'] tbody a").first.click()
    page.wait_for_url("**/connections/*.html")
    plot = page.locator("details.flow[open] .plot").first
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg .scatterlayer .trace").first.wait_for(state="attached")
    page.locator(".brand a").click()
    page.wait_for_url("**/index.html")
    assert visit.complaints == []
    assert all(request.startswith(site.as_uri()) for request in visit.requests)
    assert any(request.endswith("plotly.min.js") for request in visit.requests)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_pages_fit_and_follow_the_scheme(browser: Browser, large: Path, width: int, scheme: str) -> None:
    first = Visit(browser, large / "index.html", viewport={"width": width, "height": 500}, color_scheme=scheme)
    assert colour_count(first.page.screenshot()) > 20
    pages = [large / "index.html", large / "networks.html", *sorted((large / "networks").glob("*.html"))[:2]]
    assert len(pages) == 4
    for path in pages:
        visit = Visit(browser, path, viewport={"width": width, "height": 900}, color_scheme=scheme)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(18, 22, 28)" if scheme == "dark" else "rgb(246, 247, 249)")
        assert visit.complaints == []
        assert all(request.startswith(large.as_uri()) for request in visit.requests)
        visit.page.context.close()


def test_the_keyboard_reaches_the_content_and_wide_tables(browser: Browser, large: Path) -> None:
    page = Visit(browser, large / "index.html", viewport={"width": 600, "height": 900}).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    table = page.locator(".wide").first
    table.focus()
    assert table.get_attribute("aria-label")


def test_a_printed_page_has_its_tables_whole(browser: Browser, large: Path, tmp_path: Path) -> None:
    page = Visit(browser, large / "networks.html", viewport={"width": 1280, "height": 900}).page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    assert page.locator(".list tbody tr").last.bounding_box() is not None
    overflow = page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX")
    assert overflow == "visible"
    assert len(page.pdf()) > 10_000
