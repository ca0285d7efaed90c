"""Groups of one vantage point in every output: they carry the verdicts, of one connection as well."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pandas as pd
import pytest
from playwright.sync_api import Browser

from pepscope.results.verdicts import CaptureSummary, DetectionResult, GroupSide, SplitPlace, Verdict
from reports.detection.contract import read_document
from reports.detection.frames import groups_path, hosts_path, write_csv, write_parquet
from reports.detection.group_section import MAX_GROUPS
from reports.detection.junit import write_junit
from reports.detection.page import PAGE_BYTES, page_text, write_page
from reports.detection.prose import explain
from reports.detection.table import write_table
from reports.figures.group_figures import MAX_HOSTS, group_figures
from reports.figures.packing import unpack
from tests.browser import Visit, browser
from tests.reports.results_made_by_hand import make_pair, make_vantage_group

__all__ = ["browser"]


def vantage_result(*groups, pairs: int = 6) -> DetectionResult:
    made = tuple(make_pair(Verdict.INCONCLUSIVE, captures=("mobile.pcap",)) for _ in range(pairs))
    return DetectionResult((CaptureSummary("mobile.pcap", 2000, pairs),), made, groups)


def one_of_each(*, series: bool = False) -> DetectionResult:
    return vantage_result(
        make_vantage_group(Verdict.REGULAR, 3, network="198.51.100.0/24"),
        make_vantage_group(Verdict.INCONCLUSIVE, 4, network="10.0.0.0/24", exchanges=0),
        make_vantage_group(Verdict.SPLIT_TCP, 5, network="10.9.0.0/24", where=SplitPlace.SERVER),
        make_vantage_group(Verdict.SPLIT_TCP, 0, 1, 2, series=series),
    )


def written(result: DetectionResult, width: int = 80) -> str:
    stream = io.StringIO()
    write_table(result, stream, colour=False, width=width)
    return stream.getvalue()


def test_networks_come_first_worst_above_and_within_the_width() -> None:
    text = written(one_of_each())
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()
    places = [text.index(name) for name in ("192.0.2.0/24", "10.9.0.0/24", "10.0.0.0/24", "198.51.100.0/24")]
    assert places == sorted(places)
    row = next(line for line in text.splitlines() if line.startswith("192.0.2.0/24"))
    assert row.split() == ["192.0.2.0/24", "443", "40", "ms", "20", "ms", "network", "60", "3", "split-tcp", ">99", "%"]
    assert "Between this capture and the servers:" in text
    closing = "4 networks and ports: 1 split-tcp, 1 inconclusive, 1 regular, 1 split at the server's own site"
    assert closing in " ".join(text.split())
    assert text.index("CLIENT  ") > places[-1]


def test_the_interval_of_the_hidden_leg_is_written_where_it_fits() -> None:
    assert "20 ms (8-50 ms)" in written(one_of_each(), width=110)
    assert "(8-50 ms)" not in written(one_of_each(), width=80)


def test_both_stretches_of_a_capture_in_between_are_named() -> None:
    result = vantage_result(
        make_vantage_group(Verdict.SPLIT_TCP, 0, side=GroupSide.SERVER),
        make_vantage_group(Verdict.REGULAR, 1, side=GroupSide.CLIENT),
    )
    text = written(result)
    assert "Between this capture and the clients:" in text
    assert "Between this capture and the servers:" in text
    assert ">judged<" in page_text(result)
    assert ">judged<" not in page_text(one_of_each())


def test_of_many_networks_the_regular_ones_have_no_hosts_and_the_rest_is_counted() -> None:
    groups = [make_vantage_group(Verdict.REGULAR, place, network=f"10.0.{place}.0/24") for place in range(30)]
    text = written(vantage_result(make_vantage_group(Verdict.SPLIT_TCP, 30), *groups, pairs=31))
    assert text.count("  HOST ") == 1
    assert "11 more networks and ports not listed here" in text


@pytest.mark.parametrize("hosts", [1, 3, 9])
def test_hosts_follow_a_split_group_only_where_there_are_several(hosts: int) -> None:
    text = written(vantage_result(make_vantage_group(Verdict.SPLIT_TCP, 0, hosts=hosts), pairs=1))
    assert ("  HOST " in text) is (hosts > 1)
    assert ("and 4 more hosts" in text) is (hosts == 9)


def test_the_page_leads_with_networks_and_says_where_a_split_stands() -> None:
    text = page_text(one_of_each())
    assert "1 of 4 networks and ports is split; 1 at the server" in text
    assert text.index('id="groups"') < text.index('id="connections"')
    assert text.count('<table class="hosts"') == 4
    assert "The network does not split them." in text
    only = page_text(vantage_result(make_vantage_group(Verdict.SPLIT_TCP, 0), pairs=1))
    assert "split in the network" in only


def test_two_thousand_networks_stay_within_the_page() -> None:
    groups = [
        make_vantage_group(Verdict.SPLIT_TCP, place, network=f"10.{place >> 8}.{place & 255}.0/24", series=place < 50)
        for place in range(2000)
    ]
    text = page_text(vantage_result(*groups, pairs=2000))
    assert text.count('<details class="connection" id="group-') == MAX_GROUPS
    assert "1,950 more groups not listed here" in text
    assert len(text) < PAGE_BYTES


def test_figures_show_what_the_series_hold() -> None:
    group = make_vantage_group(Verdict.SPLIT_TCP, 0, series=True)
    distribution, scatter, handshakes, references = group_figures(group)
    exchange = distribution.traces[1]
    assert unpack(exchange.vertical)[[0, -1]].tolist() == [0, 1]
    assert unpack(exchange.horizontal)[-1] == pytest.approx(71)
    assert "within 11 ms" in distribution.caption
    assert distribution.note == "Drawn 120 of 180 points, evenly chosen."
    assert [trace.label for trace in scatter.traces[:2]] == ["TLS handshakes", "answers of applications, other turns"]
    assert [trace.drawn for trace in scatter.traces[:2]] == [15, 45]
    assert "hidden leg of its own" in scatter.caption
    assert handshakes.rows == ("203.0.113.1", "203.0.113.2", "203.0.113.3")
    assert unpack(handshakes.traces[0].vertical).tolist() == [0, 1, 2]
    assert "10 ms to 30 ms longer than the transport" in references.caption
    assert group_figures(replace(group, series=None)) == []


def test_one_host_has_its_hidden_leg_drawn_and_many_are_cut() -> None:
    one = group_figures(make_vantage_group(Verdict.SPLIT_TCP, 0, hosts=1, series=True))[1]
    assert one.traces[-1].label == "with the hidden leg"
    above = unpack(one.traces[-1].vertical) - unpack(one.traces[-1].horizontal)
    assert above == pytest.approx(20, abs=0.01)
    many = group_figures(make_vantage_group(Verdict.REGULAR, 0, hosts=60, series=True))
    assert len(many[2].rows) == MAX_HOSTS


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark")])
def test_a_browser_draws_the_figures_without_a_complaint(
    browser: Browser, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    path = tmp_path / "page.html"
    write_page(one_of_each(series=True), path)
    visit = Visit(browser, path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = visit.page
    plots = page.locator("#group-0 .plot")
    assert plots.count() == 4
    for number in range(4):
        plots.nth(number).scroll_into_view_if_needed()
        page.wait_for_function("n => document.querySelectorAll('.plot')[n].dataset.drawn === 'yes'", arg=number)
    assert "203.0.113.3" in plots.nth(2).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.complaints == []


@pytest.mark.parametrize(("width", "reasons"), [(1400, True), (1200, True), (1000, False)])
def test_the_table_of_groups_fits_the_window(browser: Browser, tmp_path: Path, width: int, reasons: bool) -> None:
    path = tmp_path / "page.html"
    write_page(one_of_each(), path)
    page = Visit(browser, path, viewport={"width": width, "height": 900}).page
    assert page.evaluate("(t => t.scrollWidth - t.clientWidth)(document.querySelector('#groups').parentElement)") == 0
    assert page.locator("#groups td.reason").first.is_visible() == reasons


def test_connections_have_one_probability_on_page_in_table_and_in_prose(browser: Browser, tmp_path: Path) -> None:
    shares = {Verdict.REGULAR: 0.04, Verdict.SPLIT_TCP: 0.69, Verdict.TCP_PROXY: 0.27}
    pair = replace(make_pair(Verdict.SPLIT_TCP, captures=("mobile.pcap",)), probability=shares)
    result = replace(vantage_result(make_vantage_group(Verdict.SPLIT_TCP, 0)), pairs=(pair,))
    assert written(result).splitlines()[-4].split()[-4:] == ["96", "%", "2.5", "MB"]
    assert "Probability: 96 %." in explain(result, width=1000)
    write_page(result, tmp_path / "page.html")
    page = Visit(browser, tmp_path / "page.html").page
    page.locator("#connections tbody tr").wait_for()
    assert "96 %" in page.locator("#connections tbody tr").inner_text()
    assert page.locator("#connection-0 > summary .share").text_content() == "96 %"


def test_prose_gives_the_grounds_of_a_group_from_its_document() -> None:
    text = " ".join(explain(read_document(json.loads(one_of_each(series=True).to_json())), width=100).split())
    assert "Judged: between this capture and the servers." in text
    assert "203.0.113.3: split-tcp, 20 exchanges, near leg 40 ms, hidden leg 30 ms, reference 70 ms" in text
    assert "Group of 1 connection, clients in 198.51.100.0/24" in text


def test_series_are_no_part_of_documents() -> None:
    with_series, without = one_of_each(series=True), one_of_each()
    assert with_series.to_json() == without.to_json()
    assert with_series.to_json_lines() == without.to_json_lines()
    assert with_series.groups == without.groups


def test_junit_has_the_groups_before_the_connections(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    write_junit(one_of_each(), path)
    root = ElementTree.parse(path).getroot()  # our own file
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("10", "2", "7")
    cases = root.findall("./testsuite/testcase")
    assert cases[0].get("name") == "client side: 198.51.100.0/24, port 443"
    assert [case[0].tag if len(case) else "passed" for case in cases[:4]] == ["passed", "skipped", "failure", "failure"]


@pytest.mark.parametrize("result", [one_of_each(), vantage_result()], ids=["groups", "none"])
def test_groups_and_hosts_lie_beside_the_table(tmp_path: Path, result: DetectionResult) -> None:
    write_parquet(result, tmp_path / "verdicts.parquet")
    write_csv(result, tmp_path / "verdicts.csv")
    groups = pd.read_parquet(groups_path(tmp_path / "verdicts.parquet"))
    hosts = pd.read_parquet(hosts_path(tmp_path / "verdicts.parquet"))
    assert len(groups) == len(result.groups) == len(pd.read_csv(groups_path(tmp_path / "verdicts.csv")))
    assert len(hosts) == 3 * len(result.groups) == len(pd.read_csv(hosts_path(tmp_path / "verdicts.csv")))
    assert groups_path(tmp_path / "verdicts.csv").read_bytes() == result.groups_frame().to_csv().encode()
    assert hosts_path(tmp_path / "verdicts.csv").read_bytes() == result.hosts_frame().to_csv(index=False).encode()
    assert groups.dtypes["exchanges"] == "Int64"
    assert hosts.dtypes["near_round_trip_s"] == groups.dtypes["hidden_round_trip_low_s"] == "float64"
    if result.groups:
        assert hosts.groupby("group").size().tolist() == [3, 3, 3, 3]
        assert groups.loc[3, "hidden_round_trip_high_s"] == 0.05
        assert hosts.loc[hosts["group"] == 3, "hidden_round_trip_s"].tolist() == pytest.approx([0.01, 0.02, 0.03])
