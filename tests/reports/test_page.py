from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from reports.detection.page import MAX_DRAWN, MAX_SECTIONS, page_text, write_page
from reports.errors import ReportError
from reports.figures.flow_figures import choose_limit, flow_figures, point_count
from reports.figures.packing import unpack
from tests.browser import Visit, browser, colour_count
from tests.reports.results_made_by_hand import make_pair, make_result, make_series

__all__ = ["browser"]


def test_the_page_opens_and_draws_without_requests(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(make_pair(Verdict.SPLIT_TCP, series=(make_series(violations=20),))), path)
    visit = Visit(browser, path, viewport={"width": 1280, "height": 800})
    visit.draw_all()
    assert visit.page.locator(".plot .main-svg .scatterlayer .trace").count() >= 10
    assert "too early" in visit.page.locator(".plot").first.inner_text()
    assert visit.complaints == []
    assert visit.requests == [path.as_uri()]


def test_figures_in_view_wait_for_the_end_of_the_file(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(make_pair(Verdict.SPLIT_TCP, series=(make_series(violations=20),))), path)
    visit = Visit(browser, path, viewport={"width": 1280, "height": 6000})
    visit.page.locator(".plot[data-drawn=yes]").nth(3).wait_for()
    assert visit.complaints == []


def test_screenshots_show_marks_at_both_widths_and_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(make_pair(Verdict.SPLIT_TCP, series=(make_series(violations=20),))), path)
    for width, scheme in ((1280, "light"), (390, "light"), (1280, "dark")):
        visit = Visit(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
        visit.draw_all()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        picture = visit.page.locator(".plot").first.screenshot()
        assert colour_count(picture) > 20
        assert visit.complaints == []


def test_table_filters_sorts_and_links(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    pairs = [
        make_pair(Verdict.REGULAR, client=f"192.0.2.7:{port}", payload_bytes=port) for port in (30000, 9000, 40000)
    ]
    write_page(make_result(*pairs, make_pair(Verdict.SPLIT_TCP, client="198.51.100.1:5")), path)
    page = Visit(browser, path).page
    rows = page.locator("#connections tbody tr")
    rows.first.wait_for()
    assert rows.count() == 4
    assert "198.51.100.1:5" in rows.first.inner_text()
    page.locator(".chip.split-tcp").click()
    assert rows.count() == 3
    page.get_by_role("button", name="payload").click()
    assert [re.search(r":(\d+)", text)[1] for text in rows.all_inner_texts()] == ["9000", "30000", "40000"]  # type: ignore[index]
    page.locator("#filter").fill("40000")
    assert rows.count() == 1
    rows.first.locator("a").click()
    page.wait_for_selector("#connection-2[open]")


def test_nothing_from_a_capture_becomes_markup(browser: Browser, tmp_path: Path) -> None:
    hostile = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{rows}}"
    evidence = (Evidence(hostile, Outcome.SPLIT, hostile, 0.5, hostile, {hostile: hostile}, (hostile,)),)
    pair = make_pair(
        Verdict.SPLIT_TCP, captures=(hostile, hostile), reason=hostile, evidence=evidence, client=hostile,
        series=(make_series(),),
    )  # fmt: skip
    path = tmp_path / "page.html"
    write_page(make_result(pair, warnings=(hostile,)), path)
    visit = Visit(browser, path)
    visit.draw_all()
    assert visit.page.title().startswith("pepscope: ")
    assert visit.page.locator("img").count() == 0
    assert visit.page.locator("p.reason").inner_text() == hostile
    assert visit.complaints == []


def test_of_a_million_points_a_few_thousand_are_drawn(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(make_result(make_pair(Verdict.SPLIT_TCP, series=(make_series(1_000_000, violations=9000),))), path)
    assert path.stat().st_size < 10e6
    visit = Visit(browser, path)
    visit.page.locator(".plot").first.scroll_into_view_if_needed()
    visit.page.wait_for_selector(".plot[data-drawn=yes]")
    caption = re.search(r"Drawn ([\d,]+) of 2,000,000 points", visit.page.locator("figcaption").first.inner_text())
    assert caption
    assert 1000 < int(caption[1].replace(",", "")) < 50_000


def test_sections_and_figures_of_many_connections_are_cut_with_a_note(tmp_path: Path) -> None:
    series = make_series(20_000)
    pairs = [make_pair(Verdict.REGULAR)] * 2500 + [make_pair(Verdict.SPLIT_TCP, series=(series, series))] * 60
    text = page_text(make_result(*pairs))
    assert len(text) < 10e6
    assert text.count('id="figures-') == MAX_DRAWN
    assert text.count('<details class="connection"') == MAX_SECTIONS
    assert "Of 2,560 connections, evidence is shown for 200, figures are drawn for 50" in text


def test_a_request_beside_a_download_is_folded_away() -> None:
    down = make_series()
    up = replace(down, direction=Direction.UP)
    text = page_text(make_result(make_pair(Verdict.REGULAR, series=(up, down))))
    flows = re.findall(r'<details class="flow"( open)?><summary><h3>(\w+), [^<]*: ([^<]*)</h3>', text)
    assert flows == [(" open", "Download", "2.5 MB"), ("", "Upload", "120 B")]


def test_clouds_keep_every_deciding_point() -> None:
    series = make_series(50_000, violations=30)
    series.forward_difference_s[31_234] = 5.0001  # the single datum that is closest to the line
    clouds = flow_figures(series, 300)[0]
    drawn = {trace.role: unpack(trace.vertical) for trace in clouds.traces}
    assert drawn["data"].min() == pytest.approx(0.0001, abs=1e-8)
    assert len(drawn["violation"]) == 30
    assert len(drawn["data"]) < 600
    assert "30 of 50,000 acknowledgements" in clouds.caption


def test_figures_follow_from_what_is_there() -> None:
    series = make_series()
    empty = series.receiver_window_bytes
    alone = replace(
        series, forward_time_s=empty, forward_difference_s=empty, one_way_delay_s=empty, line_offset_s=None,
        receiver_data_time_s=empty, receiver_data_offset=empty, receiver_ack_time_s=empty, receiver_ack_offset=empty,
    )  # fmt: skip
    assert [figure.key for figure in flow_figures(series, 100)] == [
        "clouds", "sequence", "delay", "round-trip-time", "window", "in-flight", "throughput",
    ]  # fmt: skip
    assert [figure.key for figure in flow_figures(alone, 100)] == [
        "sequence", "round-trip-time", "window", "in-flight", "throughput",
    ]  # fmt: skip


def test_the_budget_of_points_is_kept() -> None:
    flows = [make_series(10_000)] * 20 + [make_series(50)] * 20
    limit = choose_limit(flows, 200_000, 4000)
    assert sum(point_count(flow, limit) for flow in flows) <= 200_000
    assert sum(point_count(flow, limit + 1) for flow in flows) > 200_000


def test_figure_data_is_plain_json(tmp_path: Path) -> None:
    text = page_text(make_result(make_pair(Verdict.SPLIT_TCP, series=(make_series(),))))
    found = re.search(r'<script type="application/json" id="figures-0">(.*?)</script>', text)
    assert found is not None
    assert [len(flow) for flow in json.loads(found[1])] == [7]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot be written: No such file or directory\.$"):
        write_page(make_result(), tmp_path / "missing" / "page.html")
