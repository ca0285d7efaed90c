"""Policers on a simulated path: what passes by tshark, and whose bucket it is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pepscope.errors import ScenarioError
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

RATE_BIT_S = 2_000_000
BURST_BYTES = 50_000
BUCKET = {"rate_bit_s": RATE_BIT_S, "burst_bytes": BURST_BYTES}


def run(directory: Path, down: dict[str, Any], **traffic: Any) -> Run:
    line = {"rate_bit_s": 20_000_000, "delay_s": 0.02, "queue_packets": 1000}
    scenario: dict[str, Any] = {
        "name": "policed",
        "duration_s": 120.0,
        "path": [
            {"kind": "wired", "name": "line", "down": line},
            {"kind": "policer", "name": "contract", "down": down, "up": {}},
        ],
        "traffic": [{"kind": "download", "bytes": 2_000_000, **traffic}],
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
    }
    return simulate(Scenario.from_mapping(scenario), directory)


def down(capture: Path) -> list[tuple[float, int]]:
    """Time in seconds and length in bytes of each IP packet from the server, by tshark."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp.srcport == 5001", "-T", "fields"]
    fields = ["-e", "frame.time_relative", "-e", "ip.len"]
    text = subprocess.run([*command, *fields], capture_output=True, text=True, check=True).stdout
    return [(float(time), int(length)) for time, length in map(str.split, text.splitlines())]


def goodput_bit_s(made: Run) -> float:
    """Of all flows together, while each reads."""
    readings = [flow["mobile"] for flow in made.truth["flows"]]
    return float(sum(8 * one["read_bytes"] / (one["last_read_s"] - one["first_read_s"]) for one in readings))


def test_captures_hold_what_a_bucket_lets_pass(tmp_path: Path) -> None:
    made = run(tmp_path, BUCKET)
    sent, arrived = (down(made.captures[end]) for end in ("server", "mobile"))
    (dropped,) = (hop["down"]["overflowed_packets"] for hop in made.truth["hops"] if hop["name"] == "contract")
    assert dropped > 20
    assert len(sent) - len(arrived) == dropped
    tokens, before_s, least = float(BURST_BYTES), arrived[0][0], float(BURST_BYTES)
    for time_s, length in arrived:
        tokens = min(BURST_BYTES, tokens + (time_s - before_s) * RATE_BIT_S / 8) - length
        before_s, least = time_s, min(least, tokens)
    # Times of a capture are whole nanoseconds; a bucket that drops has been empty to less than a packet.
    assert -1 < least < 1500
    (flow,) = made.truth["flows"]
    assert flow["mobile"]["read_bytes"] == 2_000_000


@pytest.mark.parametrize(
    ("policed", "traffic", "buckets"),
    [
        ("together", {"count": 2, "one_user_each": True}, 1),
        ("each-mobile", {"count": 2}, 1),
        ("each-mobile", {"count": 2, "one_user_each": True}, 2),
        ("each-connection", {"count": 2}, 2),
    ],
)
def test_each_bucket_carries_its_rate(policed: str, traffic: dict[str, Any], buckets: int, tmp_path: Path) -> None:
    made = run(tmp_path, {**BUCKET, "policed": policed}, **traffic)
    # Losses in rows cost a sender some of its rate; the burst comes on top of it.
    assert 0.6 * buckets < goodput_bit_s(made) / RATE_BIT_S < 1.1 * buckets


def test_who_has_a_bucket_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"path\[1\]\.down\.policed must be one of together, each-mobile, each-con"):
        run(tmp_path, {"policed": "nobody"})
