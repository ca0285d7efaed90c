"""Both ends of a measurement on a live path: the real server, a mobile, and a middle that can be made to do things.

Mobile, 30 ms, middle, 20 ms, server: real kernels in namespaces of their own, so that a split in the middle shortens
what it answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pepscope.captures.live.one_file import LiveCapture
from prober.audit.captured_flows import CapturedTask, judge_captures
from prober.client.control_client import ControlClient
from prober.client.mobile_end import MobileEnd
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.plan import LimitsTable, Plan
from prober.protocol.application import Application
from prober.protocol.control_messages import Key
from reference_sim.live_path import (
    CELL_DEVICE,
    FIRST_MOBILE,
    SERVER,
    WIRED_DEVICE,
    LiveEmulation,
    LiveSettings,
    live_path,
)
from reference_sim.scenario import Scenario
from tests.prober.serving import PEPSCOPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pepscope.captures.packets import Direction
    from pepscope.results.verdicts import Evidence, PairResult

Result = TypeVar("Result")

WIRED_S, CELL_S = 0.02, 0.03
SERVER_ADDRESS = SERVER[4]
HTTP_PORT = 80
HTTPS_PORT = 443
CONTROL_PORT = 8443
_READY_S = 300.0
_MOST_ATTEMPTS = 5
_BOX, _BOX_TABLE = "pepscope-box", 200
_TREE = Path(__file__).parents[4]

HAPROXY = "haproxy"
#: An HTTP proxy that sends the requests of all its clients over the connections to the server that it has.
REUSING_HAPROXY = "reusing-haproxy"
#: It takes what is diverted to it, and connects to the server that was meant.
HAPROXY_SETTINGS = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen diverted
    bind 0.0.0.0:8888 transparent
    option transparent
"""
REUSING_SETTINGS = f"""
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
    option forwardfor
listen diverted
    bind 0.0.0.0:8888 transparent
    server probed {SERVER_ADDRESS}:{HTTP_PORT}
"""
_HAPROXY_SETTINGS = {HAPROXY: HAPROXY_SETTINGS, REUSING_HAPROXY: REUSING_SETTINGS}


@dataclass(frozen=True, slots=True)
class Measured:
    """What an experiment measured and what it says of it."""

    measurement: Measurement
    evidence: tuple[Evidence, ...]
    facts: Mapping[str, Any]
    #: Verdicts on its connections, those of the measurement's flows first.
    pairs: tuple[PairResult, ...] = ()

    @property
    def findings(self) -> list[str]:
        return [item.finding for item in self.evidence]


class Live:
    """A path that is up with a server behind it."""

    def __init__(self, emulation: LiveEmulation, key: str, directory: Path) -> None:
        self._network = emulation.network
        self._key = key
        self._directory = directory

    def measure(
        self,
        experiment: Experiment[Any, Any],
        application: Application = Application.HTTP_DATA,
        direction: Direction | None = None,
        *,
        captured: bool = False,
        **changes: Any,
    ) -> Measured:
        """Measure the first task for an application and direction, parameters changed, and examine it."""
        plan = Plan(
            limits=LimitsTable(task_s=120.0),
            applications=(application,),
            experiments={experiment.name: experiment.options(**changes)},
        )
        task = next(
            item for item in experiment.tasks(plan.experiments[experiment.name], plan) if item.direction is direction
        )
        seen = self._network.mobile.call(self._seen, experiment, plan, task, captured)
        return Measured(
            seen.observation.measurement, experiment.examine([seen]), experiment.metrics([seen]), seen.pairs
        )

    def measure_until_found(self, *arguments: Any, **options: Any) -> Measured:
        """Like `measure`, again while the experiment finds nothing.

        On a busy machine an answer of a process comes later than one of a kernel, and too few times agree.
        """
        for _ in range(_MOST_ATTEMPTS):
            made = self.measure(*arguments, **options)
            if made.evidence:
                break
        return made

    def call(self, function: Callable[[MobileEnd], Result]) -> Result:
        """Call a function with a mobile's end, inside."""

        def inside() -> Result:
            with self._end(Plan()) as end:
                return function(end)

        return self._network.mobile.call(inside)

    def _seen(self, experiment: Experiment[Any, Any], plan: Plan, task: Task, captured: bool) -> ObservedTask:
        with self._end(plan) as end, contextlib.ExitStack() as stack:
            mobile = self._directory / "mobile.pcap"
            server = self._directory / "server.pcap"
            if captured:
                capture = LiveCapture(CELL_DEVICE, mobile, 256, f"host {SERVER_ADDRESS} and not port {CONTROL_PORT}")
                name = end.control.start_capture("test", 256)
                stack.callback(capture.finish)
            with end.task():
                measured = experiment.measure(task, end)
            if captured:
                time.sleep(0.5)
                stack.close()
                end.control.fetch_capture(name, server)
        values = json.loads(json.dumps(dict(measured.values)))
        observation = Observation(
            task,
            Status.DONE,
            "",
            0,
            1.0,
            Measurement(values, measured.flows, measured.ack_delay_s),
            mobile_capture="mobile.pcap" if captured else "",
            server_capture="server.pcap" if captured else "",
        )
        if not captured:
            return ObservedTask(observation)
        judged = judge_captures(CapturedTask(observation, mobile, server), series=False)
        return ObservedTask(observation, judged.pairs, mobile, server)

    @contextlib.contextmanager
    def _end(self, plan: Plan) -> Iterator[MobileEnd]:
        with ControlClient(SERVER_ADDRESS, CONTROL_PORT, self._key, patience_s=10.0) as control:
            yield MobileEnd(
                control,
                control.about(),
                host=SERVER_ADDRESS,
                address=SERVER_ADDRESS,
                task_limit_s=plan.limits.task_s,
                expected_round_trip_s=plan.rates.round_trip_time_s,
                certificate_sha256=Key.parse(self._key).fingerprint,
            )

    def audit_without_root(self, plan: str) -> dict[str, Any]:
        """What `pepscope audit` says of one run of a plan (TOML), by a mobile that has no right at all."""
        return self.audit(plan, "setpriv", "--bounding-set=-all", "--inh-caps=-all")

    def audit(self, plan: str, *prefix: str) -> dict[str, Any]:
        """What `pepscope audit` says of one run of a plan (TOML); `prefix` goes before the command."""
        path = self._directory / "plan.toml"
        path.write_text(plan, encoding="utf-8")
        command = [str(PEPSCOPE), "audit", str(path), "--json", "--server", f"{SERVER_ADDRESS}:{CONTROL_PORT}"]
        process = self._network.mobile.start(
            [*prefix, *command, "-o", str(self._directory / "runs")],
            detached=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PEPSCOPE_PROBE_KEY": self._key},
        )
        reported, said = process.communicate(timeout=600)
        assert process.returncode == 0, said
        (run,) = json.loads(reported)["runs"]
        return dict(run)

    def in_middle(self, *commands: str) -> None:
        """Run shell commands in the middle's namespace; they must succeed."""
        assert self._network.middle is not None
        for command in commands:
            process = self._network.middle.start(["sh", "-ec", command], detached=True, stderr=subprocess.PIPE)
            _, said = process.communicate(timeout=_READY_S)
            assert process.returncode == 0, f"{command}: {said}"

    @contextlib.contextmanager
    def rules(self, *rules: str) -> Iterator[None]:
        """Rules of iptables (the words after `iptables`, `-A` among them) in the middle while the context lasts."""
        try:
            self.in_middle(*(f"iptables -w 5 {rule}" for rule in rules))
            yield
        finally:
            self.in_middle(
                *(f"iptables -w 5 {rule.replace('-A ', '-D ', 1)} 2>/dev/null || true" for rule in reversed(rules))
            )

    def _await_listener(self) -> None:
        assert self._network.middle is not None
        deadline_s = time.monotonic() + _READY_S
        while not self._network.middle.listens():
            assert time.monotonic() < deadline_s, "the proxy did not start"
            time.sleep(0.05)

    @contextlib.contextmanager
    def acknowledging(self, *ports: int, **settings: Any) -> Iterator[None]:
        """A middlebox that acknowledges data from these ports (HTTP's) before the receiver does (RFC 3135, 3.1.2)."""
        assert self._network.middle is not None
        served = ports or (HTTP_PORT,)
        wanted = json.dumps({"mobile": FIRST_MOBILE[4], "ports": served, **settings})
        command = [sys.executable, "-m", "benchmarks.fresh.acknowledging_box", _BOX]
        process = self._network.middle.start(
            [*command, str(self._directory / "box.jsonl"), wanted], detached=True, stderr=subprocess.PIPE, cwd=_TREE
        )
        ways = [
            way
            for port in served
            for way in (f"iif {CELL_DEVICE} ipproto tcp dport {port}", f"iif {WIRED_DEVICE} ipproto tcp sport {port}")
        ]
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "ready\n"
            self.in_middle(f"ip link set {_BOX} up", f"ip route add default dev {_BOX} table {_BOX_TABLE}")
            self.in_middle(*(f"ip rule add {way} lookup {_BOX_TABLE}" for way in ways))
            yield
        finally:
            # The route goes with the device, and the device with the process.
            self.in_middle(*(f"ip rule del {way} lookup {_BOX_TABLE} || true" for way in ways))
            process.kill()
            process.communicate(timeout=_READY_S)

    @contextlib.contextmanager
    def proxy(self, mode: str, *options: str, ports: str = str(HTTP_PORT)) -> Iterator[None]:
        """A transparent proxy in the middle: one of our own modes, or HAProxy."""
        assert self._network.middle is not None
        diverted = ("--interception", "transparent", "--device", CELL_DEVICE, "--ports", ports)
        command = [str(PEPSCOPE), "proxy", mode, *diverted, *options]
        running = [*command, "--listen", "0.0.0.0:8888"]
        if mode in _HAPROXY_SETTINGS:
            command[2] = "split"
            (self._directory / "haproxy.cfg").write_text(_HAPROXY_SETTINGS[mode], encoding="utf-8")
            running = ["haproxy", "-db", "-f", str(self._directory / "haproxy.cfg")]
        self.in_middle(" ".join([*command, "--setup"]))
        process = self._network.middle.start(running, detached=True, stderr=subprocess.PIPE)
        try:
            self._await_listener()
            yield
        finally:
            process.terminate()
            process.communicate(timeout=_READY_S)
            self.in_middle(" ".join([*command, "--teardown"]))


@contextlib.contextmanager
def live(
    directory: Path,
    *,
    wired_s: float = WIRED_S,
    cell_s: float = CELL_S,
    cell_rate_bit_s: int = 10_000_000,
    loss: float = 0.0,
) -> Iterator[Live]:
    """A path, a server, and what it takes to measure; nothing is left of it."""
    scenario = Scenario.from_mapping(
        {
            "name": "measured",
            "duration_s": 3600,
            "path": [_hop(wired_s, 50_000_000, 0.0), _hop(cell_s, cell_rate_bit_s, loss)],
            "traffic": [{"kind": "download", "bytes": 1000}],
        }
    )
    with live_path(scenario, None, LiveSettings(middle_after=1)) as emulation:
        server = emulation.network.server.start(
            [str(PEPSCOPE), "probe", "serve", "--state", str(directory / "state"), "--log-level", "error"],
            detached=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert server.stdout is not None
        with server.stdout:
            key = server.stdout.readline().split()[1]
            server.stdout.readline()
            yield Live(emulation, key, directory)


def _hop(delay_s: float, rate_bit_s: int, loss: float) -> dict[str, Any]:
    end = {"rate_bit_s": rate_bit_s, "delay_s": delay_s, "queue_packets": 100}
    lossy = {**end, "loss": {"kind": "independent", "probability": loss}} if loss else end
    return {"kind": "wired", "down": lossy, "up": lossy}
