"""Emulation of a scenario's path between real kernels, in real time: set-up, traffic, truth."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import pepscope
from pepscope import _core
from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import CaptureError, LivePathError
from pepscope.whole_file import write_whole
from reference_sim.library import load_scenario
from reference_sim.live_path.namespaces import Namespace
from reference_sim.live_path.network import PROXY_KINDS, LiveNetwork, split_path
from reference_sim.live_path.opening import OpenedInSteps
from reference_sim.live_path.path_loop import PathLoop, processors_awake
from reference_sim.live_path.socket_series import SocketSampler, joined_series
from reference_sim.live_path.taps import Tap, apply_tap, live_taps
from reference_sim.live_path.traffic import LiveTraffic, live_flows
from reference_sim.run import Series
from reference_sim.scenario import Scenario
from reference_sim.simulation import SERIES_FILE, TRUTH_FILE, write_parquet

#: Where a cell's reports go, at the middle.
REPORT_PORT = 31_000
#: Form of truth.json, as of a simulation's.
_FORM = 1
_LISTENING_S = 30.0
#: A capture is handed over in blocks, a tenth of a second each; and packets may still be under way.
_LEAST_LINGERING_S = 0.3


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How an emulation runs."""

    #: Started in the server's namespace before the command, and in the middle's.
    server_command: Sequence[str] = ()
    middle_command: Sequence[str] = ()
    #: Puts the middle after so many hops where the scenario has no proxy, which would be the middle.
    middle_after: int | None = None
    #: The loop watches the clock for so long before a packet is due, since a sleeper wakes up late.
    spin_s: float = 100e-6
    #: The longest packet of the devices.
    packet_bytes: int = 1500
    #: Loops run with real-time priority: punctual on a busy machine. They sleep where nothing is due, but idle
    #: processors do not: they poll, so that a thread that is woken goes on at once.
    real_time: bool = True
    #: Packets of reports go to this UDP port of the middle.
    report_port: int = REPORT_PORT


@dataclass(frozen=True, slots=True)
class LiveRun:
    """An emulation that has run."""

    scenario: Scenario
    #: What really happened, in the form of a simulation's truth.
    truth: dict[str, Any]
    #: Capture files by place.
    captures: dict[str, Path] = field(default_factory=dict)
    #: Of the command; 0 where the scenario's own traffic ran.
    exit_status: int = 0
    #: Queue, window and delay series of the hops and of the sockets of the scenario's own traffic.
    series: Series = field(default_factory=lambda: Series(np.empty(0), ()))

    def lateness_s(self, quantile: str = "quantile_99_s") -> float:
        """The worst of the loops: `median_s`, `quantile_95_s`, `quantile_99_s` or `maximum_s`."""
        return max((float(part["lateness"][quantile]) for part in self.truth["live"]["parts"]), default=0.0)


class LiveEmulation(OpenedInSteps):
    """A path that is up; a context manager. `carry` the traffic inside it, then ask for the `result`."""

    def __init__(self, scenario: Scenario, directory: Path | None, settings: LiveSettings) -> None:
        super().__init__()
        self.scenario = scenario
        self.settings = settings
        self._directory = directory
        self._parts = split_path(scenario, settings.middle_after)
        self._taps = live_taps(scenario, self._parts)
        if settings.middle_command and len(self._parts) == 1:
            raise LivePathError(
                f"{scenario.name} has no proxy: give --middle, the number of hops between server and middle"
            )
        self.network = LiveNetwork(scenario, self._parts, settings.packet_bytes)
        self._loops: list[PathLoop] = []
        self._captures: dict[str, LiveCapture] = {}
        self._sampler: SocketSampler | None = None
        self._capture_counts: dict[str, dict[str, int]] = {}
        self.traffic: LiveTraffic | None = None
        self.started_ns = 0
        self._started_unix_ns = 0

    def _open_steps(self) -> None:
        network = self._closing.enter_context(self.network)
        if self.settings.real_time:
            self._closing.enter_context(processors_awake())
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / TRUTH_FILE).unlink(missing_ok=True)
            self._closing.callback(self._finish_captures)
            for tap in self._taps:
                namespace, device = self._device(tap)
                path = self._directory / f"{tap.name}.pcap"
                self._captures[tap.name] = namespace.call(LiveCapture, device, path, tap.snap_bytes)
        self.started_ns, self._started_unix_ns = time.monotonic_ns(), time.time_ns()
        interval_s: Any = self.scenario.record["series_interval_s"]
        if interval_s is not None:
            self._sampler = self._closing.enter_context(SocketSampler(interval_s, self.started_ns))
        for link in network.links:
            loop = PathLoop(self.scenario, link, self.network, self.settings, self.started_ns)
            self._loops.append(loop)
            self._closing.callback(loop.stop)
            loop.start()
        environment = network.environment()
        services = (
            (network.middle, self.settings.middle_command),
            (network.server, self.settings.server_command),
        )
        for station, command in services:
            if command and station is not None:
                _start_service(station, command, environment)

    def _device(self, tap: Tap) -> tuple[Namespace, str]:
        """The namespace and the device where a tap stands."""
        first, last = self.network.links[0], self.network.links[-1]
        if tap.after_hop == first.first_hop:
            return first.server_side, first.server_device
        if tap.after_hop == last.end_hop:
            return last.mobile_side, last.mobile_device
        if tap.after_hop == first.end_hop:
            return first.mobile_side, first.mobile_device
        if tap.after_hop == last.first_hop:
            return last.server_side, last.server_device
        raise LivePathError(f"there is no device for the tap {tap.name}")

    def run(self, command: Sequence[str]) -> int:
        """Run a command in the mobile's namespace; its exit status, 128 and more where a signal ended it."""
        process = self.network.mobile.start(command, detached=False, env=self.network.environment())
        status = self._wait(process)
        self.linger()
        return status if status >= 0 else 128 - status

    def run_scenario_traffic(self) -> None:
        """Run the scenario's own traffic between sockets of the two kernels. Raises ScenarioError, LivePathError."""
        self.traffic = LiveTraffic(
            self.scenario, self.network.server, self.network.mobile, self.started_ns, self._class(), self._sampler
        )
        self.traffic.run(self.check)
        self.linger()

    def _class(self) -> str | None:
        """Verdict that a detector should reach; `None` where it depends on the command in the middle."""
        if not self.settings.middle_command:
            return "regular"
        return next((PROXY_KINDS[hop["kind"]] for hop in self.scenario.path if hop["kind"] in PROXY_KINDS), None)

    def linger(self) -> None:
        """Let what is under way arrive: as long as the scenario goes on after its flows."""
        self.sleep(max(_LEAST_LINGERING_S, min(5.0, self.scenario.stop_after_finish_s)))

    def sleep(self, seconds: float) -> None:
        """Wait while the path is up. Raises LivePathError if it went down."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.1))

    def check(self) -> None:
        """Raise LivePathError if a loop has ended."""
        for loop in self._loops:
            loop.check()

    def _wait(self, process: subprocess.Popen[str]) -> int:
        while True:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                self.check()

    def _split_at(self) -> list[str]:
        """The hop at which connections end: a middle without a command only forwards."""
        if not self.settings.middle_command:
            return []
        return [str(hop["name"]) for hop in self.scenario.path if hop["kind"] in PROXY_KINDS]

    def _finish_captures(self) -> None:
        captures, self._captures = self._captures, {}
        failure: CaptureError | None = None
        for place, capture in captures.items():
            try:
                self._capture_counts[place] = {**capture.finish()}
            except CaptureError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _apply_taps(self, paths: dict[str, Path]) -> None:
        places = {0: "down", len(self.scenario.path): "up"}
        for tap in self._taps:
            if tap.name in paths and tap.has_effects:
                missed = self._capture_counts[tap.name]["missed_packets"]
                counts = apply_tap(
                    tap, paths[tap.name], self._started_unix_ns, self.scenario.seed, places.get(tap.after_hop)
                )
                counts["missed_packets"] += missed
                self._capture_counts[tap.name] = counts

    def result(self, exit_status: int = 0) -> LiveRun:
        """Stop the loops and captures and report the run; writes truth.json where there is a directory."""
        ended_ns = time.monotonic_ns()
        dropped = [link.dropped_packets() for link in self.network.links]
        paths = {place: capture.path for place, capture in self._captures.items()}
        self._finish_captures()
        for loop in self._loops:
            loop.stop()
        self.check()
        self._apply_taps(paths)
        totals = [loop.totals() for loop in self._loops]
        parts = []
        for loop, counts, lost in zip(self._loops, totals, dropped, strict=True):
            stations = {"from": loop.link.server_side.name, "to": loop.link.mobile_side.name}
            rest = {key: value for key, value in counts.items() if key not in ("hops", "now_s")}
            parts.append({**stations, **rest, "dropped_by_device_packets": lost})
        truth: dict[str, Any] = {
            "form": _FORM,
            "pepscope": pepscope.__version__,
            "scenario": json.loads(_core.check_scenario(self.scenario.to_json())),
            "simulated_s": (ended_ns - self.started_ns) * 1e-9,
            "split_at": self._split_at(),
            "flows": [] if self.traffic is None else self.traffic.report(),
            "hops": [hop for counts in totals for hop in counts["hops"]],
            "captures": [
                {"tap": place, "file": paths[place].name, **counts} for place, counts in self._capture_counts.items()
            ],
            **({} if self.traffic is None else {"voice": self.traffic.voice()}),
            "live": {
                "started_unix_ns": self._started_unix_ns,
                "kernel": os.uname().release,
                "exit_status": exit_status,
                "parts": parts,
            },
        }
        series = joined_series([loop.series() for loop in self._loops], self._sampler)
        if self._directory is not None:
            if series.quantities:
                write_parquet(series.to_frame(), self._directory / SERIES_FILE)
            write_whole(self._directory / TRUTH_FILE, json.dumps(truth, indent=1, sort_keys=True) + "\n")
        return LiveRun(self.scenario, truth, paths, exit_status, series)


def _start_service(namespace: Namespace, command: Sequence[str], environment: dict[str, str]) -> None:
    """Start a command that serves, and wait until it listens. Raises LivePathError."""
    process = namespace.start(command, detached=True, env=environment, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + _LISTENING_S
    while time.monotonic() < deadline and not namespace.listens():
        status = process.poll()
        if status == 0:
            return  # it set something up and is done
        if status is not None:
            raise LivePathError(f"the {namespace.name}'s command {command[0]} ended with status {status}")
        time.sleep(0.02)


@contextlib.contextmanager
def live_path(
    scenario: Scenario | str | Path, directory: str | Path | None = None, settings: LiveSettings | None = None
) -> Iterator[LiveEmulation]:
    """A scenario's path, up between namespaces while the context lasts, with captures in `directory` if one is given.

    Raises ScenarioError, LivePathError, OSError.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    target = None if directory is None else Path(directory)
    if os.geteuid() != 0:
        raise LivePathError("an emulation makes network namespaces and TUN devices, which needs root")
    with LiveEmulation(scenario, target, settings or LiveSettings()) as emulation:
        yield emulation


def emulate(
    scenario: Scenario | str | Path,
    command: Sequence[str] = (),
    directory: str | Path | None = None,
    *,
    settings: LiveSettings | None = None,
    while_up: Callable[[LiveEmulation], object] | None = None,
) -> LiveRun:
    """Run a command in the mobile's namespace behind a scenario's path; without one, the scenario's own traffic.

    `while_up` is called once that has ended and the path is still up. With a `directory`, `server.pcap`, `mobile.pcap`
    and, last, `truth.json` are written there.

    Raises ScenarioError for what no live path does, LivePathError, OSError.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    if not command and while_up is None:
        live_flows(scenario)
    with live_path(scenario, directory, settings) as emulation:
        exit_status = 0
        if command:
            exit_status = emulation.run(command)
        elif while_up is None:
            emulation.run_scenario_traffic()
        if while_up is not None:
            while_up(emulation)
        return emulation.result(exit_status)
