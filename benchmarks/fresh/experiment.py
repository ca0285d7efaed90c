"""Run one experiment: build the path, start the middle, capture at both ends while the transfers run, write it down."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import namespaces
from benchmarks.fresh.client import PATIENCE_S
from benchmarks.fresh.edits import edited
from benchmarks.fresh.path import NetworkPath
from benchmarks.fresh.scenario import CHAT, HTTP, OTHER, Scenario
from benchmarks.fresh.truth import flows, read_log
from tests.captures.containers import read_capture, write_pcap

if TYPE_CHECKING:
    from benchmarks.fresh.client import Job

_SETTLE_S = 0.4


def run(name: str, scenario: Scenario, number: int, seed: str, target: Path) -> dict[str, Any]:
    """Run one experiment and write its two captures into `target`; its entry of the manifest."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pepscope-fresh-") as scratch:
        directory = Path(scratch)
        directory.chmod(0o755)
        with NetworkPath(scenario.plan, number, seed, directory) as path:
            jobs = _transfer(scenario, path, directory)
            limits = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
            socket_bytes = sum(int(namespaces.inside(path.middle, "sysctl", "-n", key).split()[2]) for key in limits)
            addresses = {"server": path.server_address, "mobile": path.mobile_address}
        files = {
            place: _write(directory / f"{place}.pcap", place, name, scenario, seed, target)
            for place in ("server", "mobile")
        }
        found = flows(scenario, jobs, directory, socket_bytes)
        errors = [entry["error"] for entry in read_log(directory / "client.jsonl") if "error" in entry]
    return {
        "id": name, "base": name, "class": scenario.truth, "variant": None, "proxy_software": scenario.software,
        "seed": seed, "middle_socket_bytes": socket_bytes, "wall_s": round(time.monotonic() - begun, 1),
        "addresses": addresses, "captured_at": scenario.capture_at,
        "path": dataclasses.asdict(scenario.plan), "files": files,
        "clock": {
            "mobile_offset_s": scenario.edits.offset_s, "mobile_skew_ppm": scenario.edits.drift_ppm,
            "steps": scenario.edits.steps,
        },
        "client_errors": errors, "edits": dataclasses.asdict(scenario.edits), "flows": found,
    }  # fmt: skip


def _transfer(scenario: Scenario, path: NetworkPath, directory: Path) -> list[Job]:
    ports = [str(port) for port in (HTTP, OTHER, CHAT)]
    path.start_python(
        path.server,
        "origin",
        str(directory / "origin.jsonl"),
        scenario.origin_congestion_control,
        scenario.protocol,
        *ports,
    )
    path.wait_listening(path.server, CHAT)
    scenario.middle(path)
    captures = [_capture(path, place, scenario, directory) for place in ("server", "mobile")]
    jobs = scenario.jobs(path)
    (directory / "jobs.json").write_text(json.dumps([dataclasses.asdict(job) for job in jobs]))
    client = path.start_python(path.mobile, "client", str(directory / "jobs.json"), str(directory / "client.jsonl"))
    client.wait(PATIENCE_S + 10)
    time.sleep(_SETTLE_S)
    for capture in captures:
        capture.send_signal(signal.SIGINT)
        capture.wait(10)
        if capture.stderr is not None:
            capture.stderr.close()
    return jobs


def _capture(path: NetworkPath, place: str, scenario: Scenario, directory: Path) -> subprocess.Popen[str]:
    """Start tcpdump at a host (or at another place of the scenario) and wait until it listens."""
    host, device = scenario.capture_at.get(place, (place, path.device[place]))
    link_type = ["-y", scenario.capture_link_type] if scenario.capture_link_type and device == "any" else []
    capture = subprocess.Popen(
        [
            "ip", "netns", "exec", getattr(path, host), "tcpdump", "-n", "-i", device, "-s",
            str(scenario.snap_length), "-B", "16384", "--immediate-mode", "--time-stamp-precision=nano", *link_type,
            "-Z", "root", "-w", str(directory / f"{place}.pcap"), "tcp",
        ],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert capture.stderr is not None
    for line in capture.stderr:
        if "listening on" in line:
            return capture
    raise RuntimeError("tcpdump did not start")


def _write(source: Path, place: str, name: str, scenario: Scenario, seed: str, target: Path) -> dict[str, Any]:
    capture = edited(read_capture(source), place, scenario.edits, random.Random(f"{seed}/{place}"))
    data = gzip.compress(write_pcap(capture.frames, capture.link_type, nanoseconds=True), 6, mtime=0)
    file = target / f"{name}.{place}.pcap.gz"
    file.write_bytes(data)
    return {
        "name": file.name, "packets": len(capture.frames), "snaplen": scenario.snap_length,
        "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip


def report_failure(name: str, error: Exception) -> None:
    """Say on standard error that an experiment could not be run."""
    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
