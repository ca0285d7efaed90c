"""The page of a simulation: opens without complaint, draws, escapes, and says what happened."""

from __future__ import annotations

import json
import re
import resource
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reports.errors import ReportError
from reports.figures.packing import unpack
from reports.simulation.figures import simulation_figures
from reports.simulation.page import simulation_page_text, write_simulation_page
from tests.browser import Visit, browser, colour_count

__all__ = ["browser"]

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{rows}}"


def scenario(description: str = "A split.", **record: object) -> Scenario:
    return Scenario.from_mapping(
        {
            "name": "small split",
            "description": description,
            "duration_s": 60.0,
            "path": [
                {"kind": "wired", "name": "core", "down": {"rate_bit_s": 10_000_000, "delay_s": 0.01}},
                {"kind": "split-proxy", "name": "gateway", "buffer_bytes": 32_768},
                {"kind": "lte", "name": "cell", "terminals": [{"down": {"rate_bit_s": 2_000_000}}]},
            ],
            "traffic": [{"kind": "download", "bytes": 400_000}, {"kind": "upload", "bytes": 90_000}],
            "record": record,
        }
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(scenario(series_interval_s=0.01, one_way_delays=True), captures=False)


def test_the_page_opens_and_draws_without_requests(browser: Browser, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_simulation_page(run, path)
    for width, scheme in ((1280, "light"), (390, "dark")):
        visit = Visit(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
        plots = visit.page.locator(".plot")
        for number in range(plots.count()):
            plots.nth(number).scroll_into_view_if_needed()
            visit.page.wait_for_function(
                "n => document.querySelectorAll('.plot')[n].dataset.drawn === 'yes'", arg=number
            )
        assert visit.page.locator(".plot .main-svg .scatterlayer .trace").count() >= plots.count() > 5
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert colour_count(plots.first.screenshot()) > 10
        assert visit.complaints == []
        assert visit.requests == [path.as_uri()]


def test_boxes_say_what_hops_without_a_rate_do() -> None:
    path = [
        {"kind": "managed", "down": {"rate_bit_s": 9_000_000, "queue": {"kind": "fq-codel"}}},
        {"kind": "policer", "down": {"rate_bit_s": 8_000_000, "burst_bytes": 60_000}, "up": {}},
        {"kind": "impairments", "down": {"jitter_s": 0.01, "reordered": 0.02}, "up": {}},
        {"kind": "radio-states"},
        {"kind": "handover", "interval_s": 5.0},
    ]
    text = simulation_page_text(
        simulate(Scenario.from_mapping({"name": "hops", "duration_s": 1.0, "path": path}), captures=False)
    )
    boxes = [re.sub("<[^>]*>", "|", box) for box in re.findall(r'<li class="box hop">(.*?)</ul>', text)]
    assert [re.sub(r"\|+", "|", box).strip("|").split("|")[1:] for box in boxes] == [
        ["link with managed queues", "↓ 9 Mbit/s, fq-codel", "↑ 9 Mbit/s, fq-codel"],
        ["policer", "↓ 8 Mbit/s, burst 60 kB"],
        ["impairments", "↓ jitter 10 ms, 2 % reordered"],
        ["states of radios", "promotion 260 ms", "release 11.6 s", "long cycle 40 ms"],
        ["handovers", "interval 5 s", "interruption 50 ms"],
    ]


def test_the_page_has_settings_and_results(browser: Browser, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_simulation_page(run, path)
    page = Visit(browser, path).page
    assert page.locator(".box > b").all_inner_texts() == ["server", "core", "gateway", "cell", "mobile"]
    assert "10 Mbit/s, 10 ms" in page.locator(".box").nth(1).inner_text()
    assert page.locator(".box.proxy").inner_text().startswith("gateway")
    assert "490 kB delivered" in page.locator("h1").inner_text()
    tables = page.locator("table.counts")
    assert "400 kB" in tables.nth(0).locator("tbody tr").first.inner_text()
    assert tables.nth(1).locator("tbody tr").count() == 6
    assert tables.nth(2).locator("tbody tr").count() == 8


def test_figures_show_the_series(run: Run) -> None:
    figures = {figure.key: figure for figure in simulation_figures(run)}
    assert {"delivered", "congestion-window", "queue-bytes", "rate", "round-trip", "delay"} <= figures.keys()
    highest = max(unpack(trace.vertical).max() for trace in figures["delivered"].traces)
    assert figures["delivered"].vertical_title == "delivered (kB)"
    assert highest == pytest.approx(400)
    labels = {trace.label for trace in figures["congestion-window"].traces}
    assert {"server 0: congestion window", "gateway: mobile leg congestion window"} <= labels
    assert min(unpack(trace.vertical).min() for trace in figures["delay"].traces) >= 10.0


def test_without_series_the_tables_stand_alone() -> None:
    bare = simulate(scenario(), captures=False)
    assert simulation_figures(bare) == []
    text = simulation_page_text(bare)
    assert "No series were recorded" in text
    assert len(text) < 100_000


def test_nothing_from_a_scenario_becomes_markup(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    hostile = scenario(HOSTILE, series_interval_s=0.05).with_values({"path[0].name": HOSTILE, "name": HOSTILE})
    write_simulation_page(simulate(hostile, captures=False), path)
    visit = Visit(browser, path)
    assert visit.page.title().startswith("pepscope simulation: ")
    assert visit.page.locator("img").count() == 0
    assert visit.page.locator(".description").inner_text() == HOSTILE
    assert visit.complaints == []


def test_figure_data_is_plain_json(run: Run) -> None:
    found = re.search(r'<script type="application/json" id="figures-0">(.*?)</script>', simulation_page_text(run))
    assert found is not None
    assert len(json.loads(found[1])[0]) == len(simulation_figures(run))


def test_a_place_that_cannot_be_written_is_one_sentence(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot be written: No such file or directory\.$"):
        write_simulation_page(run, tmp_path / "missing" / "page.html")


def test_a_full_disk_leaves_an_older_page(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(ReportError, match="cannot be written: File too large"):
            write_simulation_page(run, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "older")]
