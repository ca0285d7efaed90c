"""The dashboard, as Grafana's schema reads it and as a real Prometheus answers its queries."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from detector.commands.watch import watch
from detector.corpora.watch.metrics import WatchCollector
from pepscope.command_line.metrics import serve_metrics
from tests.detector.corpora.watch.snapshots import free_port, snapshot_of_split

PATIENCE_S = 120


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(CliRunner().invoke(watch, ["--show", "dashboard"]).stdout)
    return shown


def unlike(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Where something of ours is missing in theirs or another there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = [f"{place}/{key}" for key in ours.keys() - theirs.keys()]
        return missing + [
            one for key in ours.keys() & theirs for one in unlike(ours[key], theirs[key], f"{place}/{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [one for number, (own, other) in pairs for one in unlike(own, other, f"{place}[{number}]")]
    return [] if ours == theirs else [place]


def test_the_schema_of_grafana_knows_every_field(dashboard: dict[str, Any]) -> None:
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    assert unlike(dashboard, read) == []


class Prometheus:
    """One that scrapes one address every second."""

    def __init__(self, directory: Path, scraped_port: int) -> None:
        self.port = free_port()
        configuration = directory / "prometheus.yml"
        configuration.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: watch, static_configs: [{{targets: ['127.0.0.1:{scraped_port}']}}]}}]\n"
        )
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def answer(self, query: str) -> list[dict[str, Any]]:
        """The samples that a query gives now. Raises URLError where it is refused."""
        address = f"http://127.0.0.1:{self.port}/api/v1/query?query={urllib.parse.quote(query)}"
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as response:
            found = json.loads(response.read())
        assert found["status"] == "success"
        samples: list[dict[str, Any]] = found["data"]["result"]
        return samples

    def wait_for(self, query: str) -> None:
        """Until it answers with something."""
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.answer(query):
                    return
            except urllib.error.HTTPError as refused:
                refused.close()
            except OSError:
                assert self._process.poll() is None
            assert time.monotonic() < ends_s
            time.sleep(0.2)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    snapshot = snapshot_of_split()
    port = free_port()
    stop = serve_metrics("127.0.0.1", port, WatchCollector(lambda: snapshot), with_process=True)
    asked = Prometheus(tmp_path, port)
    yield asked
    asked.stop()
    stop()


def test_prometheus_answers_every_query_of_the_dashboard(dashboard: dict[str, Any], prometheus: Prometheus) -> None:
    # A rate needs two samples.
    prometheus.wait_for("count_over_time(pepscope_watch_connections_total[1m]) > 1")
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for query in queries:
        samples = prometheus.answer(query.replace("$instance", ".*"))
        assert samples, query
    of_instances = next(each["query"] for each in dashboard["templating"]["list"] if each["name"] == "instance")
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", of_instances).groups()
    assert [label in sample["metric"] for sample in prometheus.answer(metric)] == [True]
