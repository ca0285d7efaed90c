"""Run one network: build it, start servers and middle, capture while the clients work, write captures and truth."""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fresh.truth import read_log
from benchmarks.one_ended import clocks, middles, servers, truth
from benchmarks.one_ended.client import PATIENCE_S
from benchmarks.one_ended.topology import Network
from benchmarks.one_ended.traffic import draw_jobs

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Capturing, Plan

SCHEMA = 1

#: A network whose emulator gave packets out later than this (99 of 100) is marked late: its times cannot be trusted.
LATE_S = 0.005
_SETTLE_S = 0.8


def run(plan: Plan, target: Path) -> dict[str, Any]:
    """Run a network and write `target/NAME`; its truth. An earlier result of that name is replaced."""
    begun = time.monotonic()
    result = target / plan.name
    shutil.rmtree(result, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="pepscope-one-ended-") as scratch:
        directory = Path(scratch)
        directory.chmod(0o755)
        with Network(plan, directory) as network:
            servers.start(network)
            middles.start(network)
            network.raise_priority()
            ticker = network.start_module(None, "ticker", str(directory / "ticker.json"), log="ticker.out")
            _work(network)
            emulator = network.end_emulator()
            ticker.send_signal(signal.SIGTERM)
            ticker.wait(5)
        waking = json.loads((directory / "ticker.json").read_text())["lateness_s"]
        result.mkdir(parents=True)
        for place in plan.captures:
            clocks.rewrite(directory / f"{place}.pcap", plan, place)
            with (
                (directory / f"{place}.pcap").open("rb") as raw,
                gzip.open(result / f"{place}.pcap.gz", "wb", 6) as packed,
            ):
                shutil.copyfileobj(raw, packed)
        written = _truth(plan, directory, emulator, waking)
    written["wall_s"] = round(time.monotonic() - begun, 1)
    (result / "truth.json").write_text(json.dumps(written, indent=1))
    return written


def _truth(plan: Plan, directory: Path, emulator: dict[str, Any], waking: dict[str, float]) -> dict[str, Any]:
    logs = [entry for client in plan.clients for entry in read_log(directory / f"{client.name}.jsonl")]
    errors = [entry for entry in logs if "error" in entry]
    return {
        "schema": SCHEMA, "seed": plan.seed, "id": plan.name, "access": plan.clients[0].access, "middle": plan.middle,
        "lateness_p99_s": emulator["lateness_s"]["p99"], "waking_p99_s": waking["p99"],
        "late": max(emulator["lateness_s"]["p99"], waking["p99"]) > LATE_S,
        "split_ports": plan.split_ports, "carried": emulator["carried"],
        "done": Counter(entry["done"] for entry in logs if "done" in entry),
        "errors": Counter(f"{entry['kind']}:{entry['port']}: {entry['error'][:60]}" for entry in errors),
        "captures": [
            {
                "file": f"{place}.pcap.gz", "side": truth.side(place), "snap_length": capturing.snap_length,
                "begins_late": capturing.late_s > 0, "groups": truth.groups(plan, place),
            }
            for place, capturing in plan.captures.items()
        ],
        "plan": dataclasses.asdict(plan),
    }  # fmt: skip


def _work(network: Network) -> None:
    """Capture while the clients work."""
    plan, directory = network.network_plan, network.directory
    captures: list[subprocess.Popen[bytes]] = []
    timers = []

    def begin(place: str, capturing: Capturing) -> None:
        captures.append(_capture(network, place, capturing))

    for place, capturing in plan.captures.items():
        if capturing.late_s:
            timers.append(threading.Timer(capturing.late_s, begin, (place, capturing)))
        else:
            begin(place, capturing)
    time.sleep(0.3)
    for later in timers:
        later.start()
    clients = []
    for client in plan.clients:
        jobs = directory / f"{client.name}-jobs.json"
        jobs.write_text(json.dumps(draw_jobs(plan, client)))
        log = str(directory / f"{client.name}.jsonl")
        clients.append(
            network.start_module(network.namespace(client.name), "client", str(jobs), log, log=f"{client.name}.out")
        )
    for process in clients:
        process.wait(plan.duration_s + 2 * PATIENCE_S)
    for later in timers:
        later.join()
    time.sleep(_SETTLE_S)
    for capture in captures:
        capture.send_signal(signal.SIGINT)
    for capture in captures:
        capture.wait(10)


def _capture(network: Network, place: str, capturing: Capturing) -> subprocess.Popen[bytes]:
    """tcpdump at a place, listening."""
    namespace, device = network.vantage_points[place]
    log = network.directory / f"tcpdump-{place}.log"
    with log.open("wb") as output:
        capture = subprocess.Popen(
            [
                "ip", "netns", "exec", namespace, "tcpdump", "-n", "-i", device, "-s", str(capturing.snap_length),
                "-B", "8192", f"--time-stamp-precision={'nano' if capturing.nanoseconds else 'micro'}", "-Z", "root",
                "-w", str(network.directory / f"{place}.pcap"), "ip",
            ],
            stderr=output,
        )  # fmt: skip
    deadline = time.monotonic() + 10
    while "listening on" not in log.read_text():
        if capture.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"tcpdump did not start at {place}: {log.read_text()[-200:]}")
        time.sleep(0.01)
    return capture
