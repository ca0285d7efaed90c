"""The page of an audit in a browser, and as text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from pepscope.captures.packets import Direction
from pepscope.results.audits import AuditResult
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from reports.audit.gain_chart import gain_chart, gain_table, read_gains
from reports.audit.junit import write_audit_junit
from reports.audit.page import audit_page_text, write_audit_page
from reports.audit.sides import sides_section
from reports.errors import ReportError
from reports.figures.svg_chart import chart_svg
from tests.browser import Visit, browser
from tests.reports.audits_made_by_hand import CDMA_I, DOWN, UP, gain_metrics, make_audit, make_cell, make_run

__all__ = ["browser"]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_a_cell_leads_to_what_it_rests_on(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    write_audit_page(make_audit(CDMA_I, CDMA_I, figures=True), path)
    visit = Visit(browser, path, viewport={"width": width, "height": 800})
    page = visit.page
    assert page.locator(".matrix tbody tr").count() == 5
    assert page.locator(".matrix td a").count() == len(CDMA_I)
    page.locator(".matrix td.tcp-proxy a").click()
    page.wait_for_function("() => document.getElementById('cell-http-image-down').getBoundingClientRect().top < 400")
    cell = page.locator("#cell-http-image-down")
    assert "TCP proxy" in cell.inner_text()
    cell.locator(".connection summary").first.click()
    cell.locator(".plot").first.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('#cell-http-image-down .plot').dataset.drawn === 'yes'")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.complaints == []
    assert visit.requests[0] == path.as_uri()
    assert {request.split("#")[0] for request in visit.requests} == {path.as_uri()}


def test_a_link_to_a_connection_opens_it(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_audit_page(make_audit(figures=True), path)
    page = Visit(browser, path).page
    page.goto(f"{path.as_uri()}#connection-2")
    page.wait_for_function("() => document.getElementById('connection-2').open")


def test_verdicts_differ_by_more_than_colour() -> None:
    text = audit_page_text(make_audit())
    signs = re.findall(r'<li class="([a-z-]+)">(<svg.*?</svg>)', text)
    assert len({shape for _, shape in signs}) == len({kind for kind, _ in signs}) == 4


def test_nothing_from_an_archive_becomes_markup() -> None:
    run = make_run()
    hostile = '<script>alert("x")</script>'
    run = replace(
        run,
        server=hostile,
        source=hostile,
        warnings=(hostile,),
        circumstances={hostile: {hostile: hostile}, "list": [{hostile: hostile}]},
        not_measured=tuple(replace(item, reason=hostile, experiment=hostile) for item in run.not_measured),
        cells=tuple(replace(cell, reason=hostile) for cell in run.cells),
        metrics=tuple(
            replace(
                item, metrics={**item.metrics, hostile: hostile, "gain": [{**row, "reading": hostile} for row in rows]}
            )
            for item in run.metrics
            for rows in [item.metrics.get("gain", [])]
        ),
    )
    text = audit_page_text(AuditResult((run, run)))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_history_shows_every_run_and_the_change_in_words() -> None:
    before = {**CDMA_I, ("http-data", DOWN): Verdict.TCP_PROXY}
    text = audit_page_text(make_audit(before, {**CDMA_I, ("ftp", UP): Verdict.INCONCLUSIVE}, CDMA_I))
    assert text.count('<ol class="strip">') == len(CDMA_I)
    changes = re.findall(r'<ul class="changes">(.*?)</ul>', text)
    assert len(changes) == 1
    assert changes[0].count("<li>") == 1
    assert "was tcp-proxy until" in changes[0]
    assert "History" not in audit_page_text(make_audit())


INTACT = Evidence("identity", Outcome.INTACT, "same-packets", 0.9, "Segments arrive as <they> left.")
SPLIT = Evidence("slow-reader", Outcome.SPLIT, "more-taken-than-receiver-holds", 0.8, "More was taken.")


@pytest.mark.parametrize(
    ("active", "connected"),
    [((SPLIT,), (INTACT,)), ((SPLIT,), ()), ((INTACT,), ()), ((), (INTACT, SPLIT)), ((), (SPLIT,))],
    ids=["both", "split-only", "intact-only", "both-of-one-connection", "a-connection-only"],
)
def test_an_inconclusive_cell_shows_both_sides(active: tuple[Evidence, ...], connected: tuple[Evidence, ...]) -> None:
    cell = make_cell("ftp", DOWN, Verdict.INCONCLUSIVE)
    first = replace(cell.connections[0], pair=replace(cell.connections[0].pair, evidence=connected))
    text = sides_section(replace(cell, evidence=active, connections=(first,)), {})
    spoken = {item.outcome for item in (*active, *connected)}
    assert text.count("Nothing that was measured.") == 2 - len(spoken)
    assert text.count('aria-label="strength') == len(active) + len(connected)
    assert ("&lt;they&gt;" in text) == (INTACT in (*active, *connected))
    for item in connected:
        assert f'{first.task}</td><td data-label="strength">' in text, item


def test_only_inconclusive_cells_with_evidence_have_sides() -> None:
    split = replace(make_cell("ftp", DOWN, Verdict.SPLIT_TCP), evidence=(SPLIT,))
    assert sides_section(split, {}) == ""
    aside = replace(make_cell("ftp", DOWN, Verdict.INCONCLUSIVE), connections=())
    assert sides_section(aside, {}) == ""
    assert "Both sides" in audit_page_text(
        AuditResult((replace(make_run(), cells=(replace(aside, evidence=(SPLIT,)),)),))
    )


def test_what_was_not_measured_stands_there_with_its_reason() -> None:
    text = audit_page_text(make_audit())
    assert text.count("ACKs cannot be held back without root") == 1
    assert "the server &lt;closed&gt; the connection" in text


def test_an_audit_without_cells_is_a_page_too() -> None:
    empty = replace(make_run({}), metrics=(), not_measured=(), circumstances={})
    assert "Nothing was measured." in audit_page_text(AuditResult((empty,)))


def test_gains_are_drawn_with_their_intervals() -> None:
    gains = read_gains(gain_metrics().metrics)
    drawn = gain_chart(gains, "gains")
    firm, loose, nothing = drawn.lines
    assert (len(firm.x), len(loose.x), nothing.y) == (4, 1, [0.0, 0.0])
    assert all(interval and interval[0] <= y <= interval[1] for interval, y in zip(firm.interval, firm.y, strict=True))
    svg = ElementTree.fromstring(chart_svg(drawn))
    assert len(svg.findall(".//{*}circle")) == 4 + 1  # with the legend's
    assert drawn.x_label(gains[0].size_bytes) in {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert read_gains({"gain": [{"size_bytes": 0, "gain": 1.0}, {"size_bytes": True, "gain": 1.0}, 3]}) == []
    one = ElementTree.fromstring(chart_svg(gain_chart(gains[:1], "a single size")))
    assert one.find(".//{*}rect") is not None


def test_junit_fails_on_splits_and_skips_what_is_open(tmp_path: Path) -> None:
    path = tmp_path / "audit.xml"
    write_audit_junit(make_audit(), path)
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("8", "4", "2")
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases["FTP, download"] == ["failure"]
    assert cases["HTTPS, download"] == ["skipped"]
    assert cases["TCP, free port, upload"] == []


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="cannot be written"):
        write_audit_page(make_audit(), tmp_path / "no" / "page.html")
    with pytest.raises(ReportError, match="cannot be written"):
        write_audit_junit(make_audit(), tmp_path / "no" / "audit.xml")


def test_many_connections_of_a_cell_are_cut_and_counted() -> None:
    cell = make_cell("ftp", Direction.DOWN, Verdict.REGULAR)
    many = replace(cell, connections=cell.connections * 20)
    text = audit_page_text(AuditResult((replace(make_run(), cells=(many,)),)))
    assert text.count('class="connection"') == 30
    assert "30 more are in the output of" in text


def test_a_gain_is_read_beside_the_nearest_simulated_cell() -> None:
    row = {"size_bytes": 1000, "gain": 0.5, "reading": "faster", "simulated": {"reading": "In <simulation> less."}}
    assert "faster. In &lt;simulation&gt; less." in gain_table(read_gains({"gain": [row]}))
    assert ">faster</td>" in gain_table(read_gains({"gain": [{**row, "simulated": None}]}))
