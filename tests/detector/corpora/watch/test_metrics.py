"""Metrics as Prometheus gets them, the dashboard that asks for them, the unit, and the table of a terminal."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from detector.commands.watch import watch
from detector.corpora.watch.metrics import METRICS, MOST_GROUPS, Snapshot, WatchCollector
from detector.corpora.watch.standing import Standing, StandingGroup
from detector.corpora.watch.table import LiveTable, summary_line, table_lines
from pepscope.command_line.metrics import serve_metrics
from pepscope.errors import UsageError
from tests.detector.corpora.watch.snapshots import free_port, snapshot_of_split

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "watch.md"
#: Metrics of prometheus_client itself that the dashboard shows.
OF_PROCESS = {"process_resident_memory_bytes"}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return snapshot_of_split()


@pytest.fixture
def scraped(snapshot: Snapshot) -> dict[str, list[Any]]:
    stop = serve_metrics("127.0.0.1", port := free_port(), WatchCollector(lambda: snapshot), with_process=True)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        text = response.read().decode()
    stop()
    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_prometheus_gets_every_metric_with_its_labels(scraped: dict[str, list[Any]]) -> None:
    for metric in METRICS:
        samples = scraped[metric.exported_name]
        assert all(set(sample.labels) == set(metric.labels) for sample in samples)
    assert set(scraped) >= OF_PROCESS
    of_group = {
        (sample.labels["network"], sample.labels["port"]): sample.value
        for sample in scraped["pepscope_watch_group_split_probability"]
    }
    assert of_group == {("10.45.0.0/24", "80"): pytest.approx(0.999), ("10.45.0.0/24", "443"): pytest.approx(0.999)}
    counts = {sample.labels["verdict"]: sample.value for sample in scraped["pepscope_watch_groups"]}
    assert counts == {"split-tcp": 2, "regular": 0, "tcp-proxy": 0, "inconclusive": 0}
    packets = {sample.labels["outcome"]: sample.value for sample in scraped["pepscope_watch_packets_total"]}
    assert packets == {"received": 1000, "dropped": 5, "interface-dropped": 0}


def test_the_guide_names_every_metric() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(pepscope_watch_\w+)`", text))
    assert named == {metric.exported_name for metric in METRICS}


def queries(dashboard: dict[str, Any]) -> list[str]:
    of_panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return of_panels + [each["query"] for each in dashboard["templating"]["list"]]


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    dashboard = json.loads(CliRunner().invoke(watch, ["--show", "dashboard"]).stdout)
    labels = {metric.exported_name: set(metric.labels) for metric in METRICS}
    asked = set()
    for query in queries(dashboard):
        names = set(re.findall(r"\b(?:pepscope_watch|process)_\w+", query))
        assert names <= set(labels) | OF_PROCESS, query
        asked |= names
        known = {"instance"}.union(*(labels.get(name, set()) for name in names))
        for selector in re.findall(r"\{(.*?)\}", query):
            used = set(re.findall(r'(\w+)\s*=~?\s*"', selector))
            assert used <= known, query
        for aggregated in re.findall(r"by \((\w+)\)", query):
            assert aggregated in known, query
    assert asked - OF_PROCESS == set(labels)
    for panel in dashboard["panels"]:
        assert panel["title"]
        assert panel["description"]
        named = {label for target in panel["targets"] for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])}
        assert named <= set().union(*(labels.get(name, set()) for name in labels))


def test_panels_of_the_dashboard_have_places_of_their_own() -> None:
    dashboard = json.loads(CliRunner().invoke(watch, ["--show", "dashboard"]).stdout)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) > 10


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "pepscope-watch@eth0.service"
    unit.write_text(CliRunner().invoke(watch, ["--show", "unit"]).stdout)
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    # Every option of its command exists.
    (command,) = re.findall(r"^ExecStart=.* pepscope watch (.*)$", unit.read_text(), re.MULTILINE)
    options = set(re.findall(r"(?<!\S)--?[a-z]+", command))
    assert options == {"-i", "--state", "--log", "--metrics"}
    assert options <= {name for parameter in watch.params for name in parameter.opts}


def test_very_many_groups_have_no_series_each(snapshot: Snapshot) -> None:
    group = snapshot.groups[0]
    many = [
        StandingGroup(replace(group.result, network=f"n{number}"), group.since_ns) for number in range(MOST_GROUPS + 5)
    ]
    families = {family.name: family for family in WatchCollector(lambda: replace(snapshot, groups=many)).collect()}
    assert len(families["pepscope_watch_group_verdict"].samples) == MOST_GROUPS
    counts = {sample.labels["verdict"]: sample.value for sample in families["pepscope_watch_groups"].samples}
    assert counts["split-tcp"] == MOST_GROUPS + 5


def test_an_address_that_is_taken_is_said() -> None:
    stop = serve_metrics("127.0.0.1", port := free_port(), WatchCollector(Snapshot))
    try:
        with pytest.raises(UsageError, match=f"^metrics cannot be served at 127.0.0.1:{port}: Address already in use$"):
            serve_metrics("127.0.0.1", port, WatchCollector(Snapshot))
    finally:
        stop()


def test_the_table_fits_the_terminal(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "10")
    group = snapshot.groups[0]
    many = [StandingGroup(replace(group.result, port=number), group.since_ns) for number in range(50)]
    stream = StringIO()
    with LiveTable(stream, "eth0") as table:
        table.draw(replace(snapshot, groups=many))
        table.draw(snapshot)  # too soon
    drawn = stream.getvalue()
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn).split("\r\n")
    assert len(lines) <= 10
    assert all(len(line) <= 60 for line in lines)
    assert "and 47 more" in drawn
    assert drawn.count("pepscope watch eth0") == 1
    assert drawn.endswith("\x1b[?25h\x1b[?1049l")


def test_what_asks_for_a_proxy_stands_apart_from_the_same_port(snapshot: Snapshot) -> None:
    result = snapshot.groups[0].result
    declared = replace(result, evidence=(replace(result.evidence[0], finding="asked-as-proxy"),))
    standing = Standing()
    assert len(standing.update([result, declared], 1)) == 2
    plain, proxy = standing.groups
    assert (plain.to_dict()["asks_proxy"], proxy.to_dict()["asks_proxy"]) == (False, True)
    assert "80 (proxy)" in "".join(table_lines([proxy]))
    stop = serve_metrics(
        "127.0.0.1", port := free_port(), WatchCollector(lambda: replace(snapshot, groups=standing.groups))
    )
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        text = response.read().decode()
    stop()
    assert {'port="80"', 'port="80 (proxy)"'} <= {*re.findall(r'port="[^"]*"', text)}


def test_the_table_shows_splits_first(snapshot: Snapshot) -> None:
    head, first, second = table_lines(snapshot.groups)
    assert head.split()[:2] == ["CLIENTS", "IN"]
    assert first.split()[:3] == ["10.45.0.0/24", "443", "client"]
    assert "split-tcp >99 %" in first
    assert "split-tcp" in second
    assert summary_line(snapshot) == (
        "20 connections; slices: 1 judged; 1,000 packets, 5 dropped (0.50%); judged until 2023-11-14T22:13:20.000Z"
    )
    assert summary_line(replace(snapshot, connections=1)).startswith("1 connection; slices: ")
