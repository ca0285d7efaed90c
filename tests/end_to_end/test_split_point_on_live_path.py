"""A simulated split point beside the reference proxy between kernels, with the same buffer and hysteresis (root)."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from reference_sim.live_path import SERVER, LiveSettings, live_path
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from tests.end_to_end.proxied import TRANSFER
from tests.end_to_end.scheduling import ahead_of_other_work

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
PORT, PROXY_PORT = 80, 8888
LENGTH = 6_000_000
BUFFER_BYTES = 262_144
#: What setsockopt is given; the kernel takes twice as much.
SERVER_LEG_BYTES, MOBILE_LEG_BYTES = 65_536, 16_384
#: A cycle begins with so many bytes at once, so long after as many: a window of the server leg, after a full buffer.
#: Single segments between (window probes, a window that opens by a segment) begin none.
BURST_BYTES, BURST_GAP_S, CYCLE_GAP_S = 30_000, 0.008, 0.04
#: Chosen before the first run.
TOLERANCE = 0.10

CORE = {"kind": "wired", "name": "core", "down": {"rate_bit_s": 50_000_000, "delay_s": 0.01}}
CELL = {"kind": "wired", "name": "cell", "down": {"rate_bit_s": 8_000_000, "delay_s": 0.005, "queue_packets": 100}}


def _scenario(box: dict[str, Any]) -> Scenario:
    return Scenario.from_mapping(
        {
            "name": "hysteresis",
            "duration_s": 60,
            "server": {"host": "linux"},
            "mobile": {"host": "linux"},
            "path": [CORE, {"kind": "split-proxy", "name": "box", **box}, CELL],
            "traffic": [{"kind": "download", "bytes": LENGTH, "application": "http"}],
            "record": {"taps": [{"name": name, "snap_bytes": 256} for name in ("server", "mobile")]},
        }
    )


def _bursts(capture: Path) -> list[tuple[float, float, int]]:
    """When the server sends much at once: first and last segment in seconds, bytes."""
    read = open_capture(str(capture))
    connection = max(read.connections, key=lambda one: one.down.stream_bytes)
    packets = read.packets(connection.id)
    is_data = (packets.direction == Direction.DOWN) & (packets.payload_bytes > 0)
    times, sizes = (packets.time_ns[is_data] * 1e-9).tolist(), packets.payload_bytes[is_data].tolist()
    bursts = [(times[0], times[0], 0)]
    for now, size in zip(times, sizes, strict=True):
        begin, last, held = bursts[-1]
        if now - last > BURST_GAP_S:
            bursts.append((now, now, size))
        else:
            bursts[-1] = (begin, now, held + size)
    return bursts


def _cycles(capture: Path) -> tuple[float, float, int]:
    """Medians of the bytes from one cycle to the next and of the seconds between, after the first second; how many."""
    bursts = _bursts(capture)
    start = bursts[0][0] + 1.0
    begins: list[float] = []
    last = -1.0
    for begin, end, size in bursts:
        if size >= BURST_BYTES:
            if begin > start and begin - last > CYCLE_GAP_S:
                begins.append(begin)
            last = end
    periods = [later - earlier for earlier, later in pairwise(begins)]
    amounts = [
        sum(size for begin, _, size in bursts if earlier <= begin < later) for earlier, later in pairwise(begins)
    ]
    return (median(amounts), median(periods), len(periods)) if periods else (0.0, 0.0, 0)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, float, int]:
    """Cycles beside the reference proxy, which reads again once half of its buffer is empty."""
    directory = tmp_path_factory.mktemp("real")
    settings = (
        f"buffer_bytes={BUFFER_BYTES}",
        f"server.receive_buffer_bytes={SERVER_LEG_BYTES}",
        f"mobile.send_buffer_bytes={MOBILE_LEG_BYTES}",
    )
    where = ["--interception", "transparent", "--device", "pepscope-cell", "--ports", str(PORT)]
    where += ["--listen", f"0.0.0.0:{PROXY_PORT}"]
    words = [PEPSCOPE, "proxy", "split", *where, *(word for setting in settings for word in ("--set", setting))]
    middle = ("sh", "-c", f"{shlex.join(words)} --setup && exec {shlex.join(words)}")
    serving = (sys.executable, str(TRANSFER), "serve", SERVER[4], str(PORT))
    live = LiveSettings(middle_command=middle, server_command=serving)
    # A relay that reads late has forwarded more until then: longer cycles, by as much as the machine is busy.
    with ahead_of_other_work(), live_path(_scenario({}), directory, live) as emulation:
        fetching = [sys.executable, str(TRANSFER), "fetch", "direct", "-", "0", SERVER[4], str(PORT), str(LENGTH)]
        assert emulation.run([*fetching, "down"]) == 0
        run = emulation.result()
    return _cycles(run.captures["server"])


def _simulated(resume_share: float, directory: Path) -> Path:
    """What waits in the send buffer counts as held, so that it is added to both marks."""
    sending = 2 * MOBILE_LEG_BYTES
    box = {
        "buffer_bytes": BUFFER_BYTES + sending,
        "resume_share": (resume_share * BUFFER_BYTES + sending) / (BUFFER_BYTES + sending),
        "read_bytes": 262_144,
        "takes_time": True,
        "opening": "after-accept",
        "server_leg": {"host": "linux", "receive_buffer_bytes": 2 * SERVER_LEG_BYTES},
        "mobile_leg": {"host": "linux", "send_buffer_bytes": sending},
    }
    return simulate(_scenario(box), directory).captures["server"]


def test_bursts_of_the_server_are_those_beside_a_real_relay(real: tuple[float, float, int], tmp_path: Path) -> None:
    simulated = _cycles(_simulated(0.5, tmp_path))
    assert min(simulated[2], real[2]) >= 12, f"{simulated} {real}"
    assert simulated[0] == pytest.approx(real[0], rel=TOLERANCE), f"{simulated} {real}"
    assert simulated[1] == pytest.approx(real[1], rel=TOLERANCE), f"{simulated} {real}"


def test_without_hysteresis_there_are_no_such_bursts(tmp_path: Path) -> None:
    assert _cycles(_simulated(1.0, tmp_path))[2] == 0
