"""The live path: real kernels behind a scenario's hops, and nothing left of it afterwards."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pepscope
from pepscope.captures.capture import open_capture
from pepscope.errors import CaptureError
from reference_sim.live_path import emulate, live_path
from reference_sim.scenario import Scenario

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
PROBE = [sys.executable, str(Path(__file__).with_name("probe.py"))]
LINE = {"rate_bit_s": 20_000_000, "delay_s": 0.02, "queue_packets": 100}
DOWNLOAD = {"kind": "download", "bytes": 2_000_000}
#: mahimahi's format: an opportunity of 1504 bytes each millisecond, which is 12 Mbit/s.
STEADY_TRACE = "".join(f"{millisecond}\n" for millisecond in range(1, 101))


def scenario(*path: dict[str, Any], traffic: tuple[dict[str, Any], ...] = (DOWNLOAD,), **rest: Any) -> Scenario:
    return Scenario.from_mapping(
        {"name": "live", "duration_s": 30, "stop_after_finish_s": 0.5, "path": path, "traffic": traffic, **rest}
    )


def wired(**down: Any) -> dict[str, Any]:
    return {"kind": "wired", "name": "line", "down": {**LINE, **down}, "up": LINE}


def write(path: Path, made: Scenario) -> str:
    """The scenario as a file; its path."""

    def value(what: Any) -> str:
        if isinstance(what, dict):
            return "{" + ", ".join(f"{key} = {value(inner)}" for key, inner in what.items()) + "}"
        if isinstance(what, list):
            return "[" + ", ".join(map(value, what)) + "]"
        return json.dumps(what)

    document = json.loads(made.to_json())
    path.write_text("".join(f"{key} = {value(inner)}\n" for key, inner in document.items()), encoding="utf-8")
    return str(path)


def verdict(directory: Path) -> str:
    (pair,) = pepscope.detect(*(str(path) for path in sorted(directory.glob("*.pcap")))).pairs
    return pair.verdict.value


@pytest.fixture
def host() -> Iterator[list[str]]:
    """What runs a command in a network namespace that stands for the host: the real one other tests change as well."""
    name = f"pepscope-host-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield ["ip", "netns", "exec", name]
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def network_of(host: list[str]) -> str:
    commands = (["ip", "link"], ["ip", "route"], ["ip", "-6", "route"], ["ip", "rule"], ["nft", "list", "ruleset"])
    reported = (subprocess.run([*host, *command], capture_output=True, text=True, check=True) for command in commands)
    return "".join(one.stdout for one in reported)


def lives_in(namespace: int) -> list[str]:
    """Processes of a network namespace."""

    def inode(process: Path) -> int:
        try:
            return (process / "ns" / "net").stat().st_ino
        except OSError:
            return 0

    return [
        process.name for process in Path("/proc").iterdir() if process.name.isdigit() and inode(process) == namespace
    ]


def until(condition: Any, within_s: float = 60.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_datagrams_are_delayed_and_lost_by_the_scenario_without_changes_to_the_host(
    host: list[str], tmp_path: Path
) -> None:
    before = network_of(host)
    lossy = wired(loss={"kind": "independent", "probability": 0.2})
    with_server = write(tmp_path / "lossy.toml", scenario(lossy))
    count = 300
    command = [
        *host,
        PEPSCOPE,
        "emulate",
        with_server,
        "-o",
        str(tmp_path / "run"),
        "--server-command",
        shlex.join([*PROBE, "serve"]),
    ]
    finished = subprocess.run(
        [*command, "--", *PROBE, "ask", str(count), "0.002"], capture_output=True, text=True, timeout=600, check=True
    )
    times = json.loads(finished.stdout)
    truth = json.loads((tmp_path / "run" / "truth.json").read_text())
    (line,) = truth["hops"]
    up, down = line["up"], line["down"]
    assert (up["offered_packets"], up["lost_packets"], down["delivered_packets"]) == (count, 0, len(times))
    assert 0.1 < down["lost_packets"] / down["offered_packets"] < 0.3
    # What comes at once, because a process had waited for a processor, may wait for each other or find no room.
    assert down["offered_packets"] == up["delivered_packets"] == count - up["overflowed_packets"]
    assert 2 * LINE["delay_s"] <= min(times.values()) < 3 * LINE["delay_s"]
    (part,) = truth["live"]["parts"]
    assert part["left_packets"] == {way: line[way]["delivered_packets"] for way in ("down", "up")}
    assert part["lateness"]["packets"] == sum(part["left_packets"].values())
    assert sum(part["lateness"]["counts"]) == part["lateness"]["packets"]
    assert network_of(host) == before


@pytest.mark.parametrize("version", [4, 6])
def test_a_download_is_exact_as_fast_as_the_link_and_regular(tmp_path: Path, version: int) -> None:
    run = emulate(scenario(wired(), traffic=({**DOWNLOAD, "ip_version": version},)), (), tmp_path)
    (flow,) = run.truth["flows"]
    assert flow["delivered_exactly"] == {"down": True, "up": True}
    assert flow["mobile"]["read_bytes"] == DOWNLOAD["bytes"]
    assert flow["server"]["congestion_control"] == "cubic"
    seconds = flow["mobile"]["last_read_s"] - flow["mobile"]["first_read_s"]
    assert 0.3 * LINE["rate_bit_s"] < 8 * DOWNLOAD["bytes"] / seconds < 1.02 * LINE["rate_bit_s"]
    for capture in run.truth["captures"]:
        (connection,) = open_capture(str(tmp_path / capture["file"])).connections
        assert connection.ip_version == version
        assert connection.packets == capture["written_packets"]
        assert capture["missed_packets"] == 0
    assert verdict(tmp_path) == "regular"


def test_a_trace_in_mahimahis_format_bounds_the_rate(tmp_path: Path) -> None:
    link = {
        "kind": "variable-rate",
        "down": {"rates": {"kind": "mahimahi", "text": STEADY_TRACE}, "delay_s": 0.01, "queue_packets": 60},
    }
    run = emulate(scenario(link), (), tmp_path)
    (flow,) = run.truth["flows"]
    seconds = flow["mobile"]["last_read_s"] - flow["mobile"]["first_read_s"]
    assert 0.3 * 12e6 < 8 * DOWNLOAD["bytes"] / seconds < 1.02 * 12e6
    assert verdict(tmp_path) == "regular"


def test_the_tutorials_three_commands_work_as_pasted(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "emulate.md").read_text(encoding="utf-8")
    block = guide.partition("## In three commands")[2].partition("```console\n")[2].partition("```")[0]
    script = "\n".join(line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ "))
    assert [f"pepscope {name}" in script for name in ("emulate", "proxy", "detect")] == [True] * 3
    environment = {**os.environ, "PATH": f"{Path(PEPSCOPE).parent}:{os.environ['PATH']}"}
    finished = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "1 connection: 1 split-tcp" in finished.stdout, finished.stderr
    (truth,) = tmp_path.glob("*/truth.json")
    reported = json.loads(truth.read_text())
    (flow,) = reported["flows"]
    assert flow["class"] == "split-tcp"
    assert flow["delivered_exactly"]["down"]
    assert [(part["from"], part["to"]) for part in reported["live"]["parts"]] == [
        ("server", "middle"),
        ("middle", "mobile"),
    ]


def test_a_middle_without_a_proxy_only_forwards(tmp_path: Path) -> None:
    run = emulate(scenario({**wired(), "name": "core"}, {"kind": "split-proxy"}, wired()), (), tmp_path)
    assert run.truth["split_at"] == []
    assert run.truth["flows"][0]["class"] == "regular"
    assert verdict(tmp_path) == "regular"


def test_the_commands_status_is_ours_even_if_it_is_killed(tmp_path: Path) -> None:
    quiet = scenario(wired())
    assert emulate(quiet, ["sh", "-c", "exit 7"], tmp_path).exit_status == 7
    assert json.loads((tmp_path / "truth.json").read_text())["live"]["exit_status"] == 7
    assert emulate(quiet, ["sh", "-c", "kill -KILL $$"]).exit_status == 128 + signal.SIGKILL


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_we_are_ended(host: list[str], tmp_path: Path, end: signal.Signals) -> None:
    path = write(tmp_path / "quiet.toml", scenario(wired()))
    marker = tmp_path / "namespace"
    # The inner shell starts a background process that no other process waits for.
    inside = f"sleep 600 & stat -L -c %i /proc/self/ns/net > {marker}; sleep 600"
    serve = ("--server-command", shlex.join([*PROBE, "serve"]))
    command = [*host, PEPSCOPE, "emulate", path, *serve, "--", "sh", "-c", inside]
    before = network_of(host)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            assert until(lambda: marker.exists() and marker.read_text().strip())
            namespace = int(marker.read_text())
            assert namespace != Path("/proc/self/ns/net").stat().st_ino
            assert until(lambda: len(lives_in(namespace)) >= 2)
            os.kill(process.pid, end)
            status = process.wait(60)
        finally:
            process.kill()
    assert status == (128 + end if end == signal.SIGTERM else -end)
    assert until(lambda: not lives_in(namespace))
    assert network_of(host) == before


def test_an_exception_while_it_is_up_takes_everything_down() -> None:
    namespaces: list[int] = []
    sleepers = []

    def fail() -> None:
        with live_path(scenario(wired())) as emulation:
            namespaces.extend(namespace.inode for namespace in emulation.network.namespaces)
            sleepers.append(emulation.network.mobile.start(["sleep", "600"], detached=True))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(namespaces) == 2
    assert not any(lives_in(namespace) for namespace in namespaces)
    assert sleepers[0].poll() is not None


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "server.pcap").symlink_to("/dev/full")
    with pytest.raises(CaptureError, match=r"server\.pcap could not be written to its end; is the disk full"):
        emulate(scenario(wired()), (), tmp_path)
    assert not (tmp_path / "truth.json").exists()


def test_refusals_are_sentences(tmp_path: Path) -> None:
    def refusal(made: Scenario, *options: str) -> str:
        command = [PEPSCOPE, "emulate", write(tmp_path / "refused.toml", made), *options]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert finished.returncode == 2
        (line,) = finished.stderr.splitlines()
        return line

    quiet = scenario(wired())
    assert "server.control must be" in refusal(scenario(wired(), server={"control": "jersey"}))
    thinning = {"kind": "rewriter", "acknowledgement_thinning": {}}
    assert "rewriter with acknowledgement_thinning, which only a simulation has" in refusal(scenario(thinning))
    assert "there is no command no-such-command" in refusal(quiet, "--", "no-such-command")
    assert "give --middle" in refusal(quiet, "--middle-command", "true")
    assert "ended with status 3" in refusal(quiet, "--server-command", "sh -c 'exit 3'")
