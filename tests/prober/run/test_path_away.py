"""A path that fails during a run: the run waits or reports it, and never counts it as a measurement."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pepscope.captures.capture import open_capture
from prober.archive.archive_file import open_archive
from prober.measurement.task import Status
from tests.end_to_end.network import CLIENT_ADDRESS, SERVER_ADDRESS, Network, network
from tests.prober.serving import PEPSCOPE, Serving, serving

TASKS = 8


@pytest.fixture(scope="module")
def names() -> Iterator[Network]:
    with network() as made:
        yield made


@pytest.fixture(scope="module")
def server(names: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    state = tmp_path_factory.mktemp("state")
    inside = names.inside(names.server)
    with serving(state, ports=(), command=inside, listen=SERVER_ADDRESS) as running:
        yield running


def plan_file(directory: Path, patience_s: float) -> Path:
    path = directory / "plan.toml"
    path.write_text(
        f'applications = ["http-data", "tcp"]\n[limits]\npatience_s = {patience_s}\n'
        "[experiments.transfers]\nsizes_bytes = [20_000]\nrepeats = 2\n"
    )
    return path


def start(names: Network, server: Serving, plan: Path, output: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        names.inside(
            names.client, str(PEPSCOPE), "probe", "run", str(plan), "--server", SERVER_ADDRESS, "-o", str(output)
        ),
        env={**os.environ, "PEPSCOPE_PROBE_KEY": server.key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def switch(names: Network, state: str) -> None:
    """The link between the middle and the client, on or off at the middle: the client only hears nothing more."""
    command = names.inside(names.middle, "ip", "link", "set", "client0", state)
    subprocess.run(command, check=True, capture_output=True)


def until_measured(output: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        if len(list(output.glob("run-*/tasks/*"))) >= count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("nothing was measured")


def test_a_path_that_comes_back_in_time_only_costs_time(names: Network, server: Serving, tmp_path: Path) -> None:
    process = start(names, server, plan_file(tmp_path, 60), tmp_path / "runs")
    until_measured(tmp_path / "runs", 2, process)
    switch(names, "down")
    time.sleep(2)
    assert process.poll() is None
    switch(names, "up")
    reported, complained = process.communicate(timeout=600)
    assert process.returncode == 0, reported + complained
    with open_archive(reported.splitlines()[-1]) as archive:
        assert archive.manifest.complete
        assert len(archive.observations) == TASKS
        assert all(item.measurement.values["intact"] for item in archive.observations)
        for item in archive.observations:
            seen = open_capture(str(archive.captures[item.mobile_capture])).connections
            ports = {connection.server.rpartition(":")[2] for connection in seen}
            assert ports == {str(flow.server_port) for flow in item.measurement.flows}, "no control channel"
            assert item.server_capture


def test_a_path_that_stays_away_ends_the_run_with_what_it_has(names: Network, server: Serving, tmp_path: Path) -> None:
    plan, output = plan_file(tmp_path, 2), tmp_path / "runs"
    plan.write_text(plan.read_text().replace("[limits]", "[limits]\ntask_s = 2"))
    process = start(names, server, plan, output)
    until_measured(output, 2, process)
    switch(names, "down")
    try:
        reported, complained = process.communicate(timeout=600)
    finally:
        switch(names, "up")
    assert process.returncode == 1, reported + complained
    assert f"the server at {SERVER_ADDRESS} port 8443 did not answer for 2 s" in reported
    with open_archive(reported.splitlines()[-1]) as archive:
        assert not archive.manifest.complete
        assert "did not answer" in archive.manifest.reason
        assert 2 <= len(archive.observations) < TASKS
        assert {item.status for item in archive.observations} == {Status.DONE}
    done = start(names, server, plan, output)
    again, complained = done.communicate(timeout=600)
    assert done.returncode == 0, again + complained
    assert again.splitlines()[-1] == reported.splitlines()[-1]
    with open_archive(again.splitlines()[-1]) as archive:
        assert archive.manifest.complete
        assert len(archive.observations) == TASKS
        assert archive.metadata["mobile"]["device"]["name"] == "up0"
        assert CLIENT_ADDRESS not in str(archive.metadata)
