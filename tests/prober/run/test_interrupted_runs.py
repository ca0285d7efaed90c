"""Runs as processes: interrupted, killed, without root, on a full disk, with a server that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.archive.archive_file import SUFFIX, open_archive
from prober.archive.observation_json import read_observation
from prober.client.control_client import ControlClient
from prober.measurement.task import Status
from tests.prober.runs_made_by_hand import captured_ports
from tests.prober.serving import PEPSCOPE, Serving, serving, without_root

TASKS = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(
        'applications = ["tcp", "ftp"]\n[limits]\npatience_s = 1\n[experiments.transfers]\nsizes_bytes = [5000]\n'
        "repeats = 2\n",
        encoding="utf-8",
    )
    return path


def command(plan_file: Path, server: Serving, output: Path, *options: str) -> list[str]:
    return [str(PEPSCOPE), "probe", "run", str(plan_file), "--server", server.server, "-o", str(output), *options]


def environment(server: Serving) -> dict[str, str]:
    return {**os.environ, "PEPSCOPE_PROBE_KEY": server.key}


def finish(words: list[str], server: Serving) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment(server), capture_output=True, text=True, timeout=600, check=False)


def until_measured(output: Path, count: int, process: subprocess.Popen[str]) -> set[str]:
    """Wait for so many tasks to be kept."""
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        kept = {item.name for item in output.glob("run-*/tasks/*")}
        if len(kept) >= count:
            return kept
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("nothing was measured")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_ended_process_goes_on_where_it_was(
    number: int, status: int, server: Serving, plan_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "runs"
    words = command(plan_file, server, output)
    process = subprocess.Popen(
        words, env=environment(server), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    kept = until_measured(output, 3, process)
    process.send_signal(number)
    reported, complained = process.communicate(timeout=600)
    assert process.returncode == status
    assert reported == ""
    if number != signal.SIGKILL:
        assert "the same command resumes the run" in complained
        assert "Traceback" not in complained
    before = {path.parent.name: path.read_bytes() for path in output.glob("run-*/tasks/*/observation.json")}
    assert kept <= set(before)
    done = finish(words, server)
    assert done.returncode == 0, done.stderr
    with open_archive(done.stdout.splitlines()[-1]) as archive:
        assert len(archive.observations) == TASKS
        again = {item.task.key: item for item in archive.observations}
    for key, data in before.items():
        assert again[key] == read_observation(data, key)


def test_a_server_that_dies_leaves_a_marked_archive_and_a_new_one_ends_the_run(plan_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "runs"
    with serving(tmp_path / "state") as first:
        words = command(plan_file, first, output)
        process = subprocess.Popen(
            words, env=environment(first), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until_measured(output, 3, process)
        first.end(signal.SIGKILL)
        reported, _ = process.communicate(timeout=600)
        assert process.returncode == 1
        assert "did not answer" in reported
        with open_archive(reported.splitlines()[-1]) as archive:
            assert not archive.manifest.complete
            assert 3 <= len(archive.observations) < TASKS
        with serving(tmp_path / "state", ports=[f"control={first.control_port}", *FREE_PORTS]) as second:
            done = finish(command(plan_file, second, output), second)
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.splitlines()[-1] == reported.splitlines()[-1]
    with open_archive(done.stdout.splitlines()[-1]) as archive:
        assert archive.manifest.complete
        assert {item.status for item in archive.observations} == {Status.DONE}
        assert len(archive.observations) == TASKS


FREE_PORTS = [f"{name}=0" for name in ("http", "https", "ftp", "tcp", "udp_echo", "dead")] + [
    f"{name}_free=0" for name in ("http", "https", "ftp")
]


def test_a_server_that_was_started_anew_meanwhile_only_takes_time(plan_file: Path, tmp_path: Path) -> None:
    """The session that the run began with is gone; another one is opened."""
    output = tmp_path / "runs"
    plan_file.write_text(plan_file.read_text().replace("patience_s = 1", "patience_s = 30"))
    with serving(tmp_path / "state") as first:
        ports = same_ports(first)
        words = command(plan_file, first, output)
        process = subprocess.Popen(
            words, env=environment(first), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until_measured(output, 3, process)
        first.end(signal.SIGKILL)
        with serving(tmp_path / "state", ports=ports):
            reported, complained = process.communicate(timeout=600)
        assert process.returncode == 0, reported + complained


def same_ports(server: Serving) -> list[str]:
    """All ports of a server, for one that takes its place."""
    with ControlClient("127.0.0.1", server.control_port, server.key) as control:
        ports = control.about().ports
    single = {name: getattr(ports, name) for name in ("control", "http", "https", "ftp", "udp_echo", "dead")}
    free = {f"{name}_free": getattr(ports, f"{name}_free") for name in ("http", "https", "ftp")}
    return [f"{name}={port}" for name, port in {**single, **free, "tcp": ports.tcp[0]}.items()]


def test_without_root_some_tasks_run_and_others_have_a_reason(server: Serving, tmp_path: Path) -> None:
    plan_file, output = tmp_path / "plan.toml", tmp_path / "runs"
    plan_file.write_text('applications = ["tcp"]\n[experiments.transfers]\nsizes_bytes = [5000]\nrepeats = 1\n')
    done = finish([*without_root(), *command(plan_file, server, output)], server)
    assert done.returncode == 0, done.stderr
    with open_archive(done.stdout.splitlines()[-1]) as archive:
        assert {item.status for item in archive.observations} == {Status.DONE}
        for item in archive.observations:
            assert item.mobile_capture == ""
            assert "mobile-capture: libpcap cannot capture on lo" in item.capture_note


def test_a_full_disk_keeps_what_is_whole_and_goes_on_when_there_is_room(
    server: Serving, plan_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "disk"
    output.mkdir()
    words = command(plan_file, server, output)
    # The second run finds the disk of the first one, larger: both happen in one mount namespace.
    script = (
        f'mount -t tmpfs -o size=120k none {output} && {{ "$@"; echo "status $?"; find {output} -name "*.partial"; '
        f'mount -o remount,size=50m {output}; "$@"; echo "status $?"; cp {output}/*{SUFFIX} {tmp_path}; }}'
    )
    done = finish(["unshare", "--mount", "sh", "-c", script, "sh", *words], server)
    first, _, rest = done.stdout.partition("status ")
    assert rest.startswith(("1\n", "2\n")), done.stdout + done.stderr
    assert "No space left on device" in first + done.stderr
    assert ".partial" not in rest.partition("\n")[2].partition("status ")[0]
    assert rest.rstrip().endswith("status 0"), done.stdout + done.stderr
    (path,) = tmp_path.glob(f"*{SUFFIX}")
    with open_archive(path) as archive:
        assert archive.manifest.complete
        assert len(archive.observations) == TASKS
        for item in archive.observations:
            ports = {flow.mobile_port for flow in item.measurement.flows}
            assert ports <= captured_ports(archive.captures[item.mobile_capture])
