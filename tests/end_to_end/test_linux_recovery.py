"""Simulated Linux hosts repair losses and space segments out as this kernel does, segment by segment (root)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from reference_sim.live_path import emulate
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from tests.end_to_end.scheduling import ahead_of_other_work

_SEGMENT = 1448
_LINE = {"rate_bit_s": 20_000_000, "delay_s": 0.02, "queue_packets": 1000}


def _scenario(
    segments: int, lost: tuple[int, ...] = (), more: tuple[dict[str, Any], ...] = (), **server: Any
) -> Scenario:
    down = {**_LINE, "loss": {"kind": "listed", "packets": list(lost)}} if lost else _LINE
    path = [{"kind": "wired", "name": "line", "down": down, "up": _LINE}, *more]
    return Scenario.from_mapping(
        {
            "name": "recovery",
            "duration_s": 20,
            "server": {"host": "linux", **server},
            "mobile": {"host": "linux"},
            "path": path,
            "traffic": [{"kind": "download", "bytes": segments * _SEGMENT}],
            "record": {"taps": [{"name": "server", "after_hop": 0}, {"name": "mobile", "after_hop": len(path)}]},
        }
    )


def _sent(capture: Path) -> list[tuple[float, int]]:
    """When data left the server, from its first segment on, and where it begins in the stream."""
    read = open_capture(str(capture))
    (connection,) = read.connections
    packets = read.packets(connection.id)
    is_data = (packets.direction == Direction.DOWN) & (packets.payload_bytes > 0)
    times, offsets = packets.time_ns[is_data], packets.sequence_offset[is_data]
    assert times.size
    return list(zip(((times - times[0]) * 1e-9).tolist(), offsets.tolist(), strict=True))


def _both(scenario: Scenario, directory: Path) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    simulated = simulate(scenario, directory / "simulated")
    # A server that writes the rest late has its FIN in flight with the lost segments, and another one is the probe.
    with ahead_of_other_work():
        live = emulate(scenario, (), directory / "live")
    return _sent(simulated.captures["server"]), _sent(live.captures["server"])


@pytest.mark.parametrize(
    ("segments", "lost"),
    [
        (57, (57,)),  # the last: a probe
        (57, (55, 56, 57)),  # the last three: a probe, and what it shows
        (57, (54, 55, 56, 57, 58)),  # the last four and the probe: a timeout
        (120, (20, 30, 31)),  # three in the middle
        (40, (14, 41)),  # one, and the last
    ],
)
def test_losses_are_repaired_by_the_same_segments(segments: int, lost: tuple[int, ...], tmp_path: Path) -> None:
    simulated, live = _both(_scenario(segments, lost), tmp_path)
    assert _resent(simulated) == _resent(live)


def test_what_is_reordered_is_not_sent_again_once_it_is_known(tmp_path: Path) -> None:
    down = {"reordered": 0.02, "reorder_s": 0.004}
    mixing = {"kind": "impairments", "name": "mixing", "down": down, "up": {}}
    both = _both(_scenario(1400, (), (mixing,)), tmp_path)
    repeats = [len(sent) - len({sequence for _, sequence in sent}) for sent in both]
    assert all(count < 6 for count in repeats), repeats


def _resent(sent: list[tuple[float, int]]) -> list[int]:
    """Where what was sent again begins, in its order."""
    sequences = [sequence for _, sequence in sent]
    return [sequence for number, sequence in enumerate(sequences) if sequence in sequences[:number]]


@pytest.mark.parametrize("server", [{"control": "cubic", "pacing": True}, {"control": "bbr"}])
def test_bursts_leave_at_the_same_pace(server: dict[str, Any], tmp_path: Path) -> None:
    simulated, live = _both(_scenario(150, **server), tmp_path)
    spread = [_late_share(sent) for sent in (simulated, live)]
    assert spread[0] == pytest.approx(spread[1], abs=0.15), spread
    unpaced = _sent(simulate(_scenario(150, control="cubic"), tmp_path / "unpaced").captures["server"])
    assert _late_share(unpaced) < min(spread) / 2


def _late_share(sent: list[tuple[float, int]]) -> float:
    """The share of the gaps between bursts, behind the first window, longer than two segments take the line."""
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(sent[10:80]) if later - earlier > 3e-4]
    return sum(gap > 1.3e-3 for gap in gaps) / len(gaps)
