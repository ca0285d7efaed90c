"""Jitter, reordering and copies on a simulated path, as tshark sees them in the captures."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pepscope import detect
from pepscope.errors import ScenarioError
from pepscope.results.verdicts import Verdict
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

LINE = {"kind": "wired", "name": "line", "down": {"rate_bit_s": 10_000_000, "delay_s": 0.02, "queue_packets": 1000}}


def run(directory: Path, **down: float) -> Run:
    scenario: dict[str, Any] = {
        "name": "shaken",
        "duration_s": 60.0,
        "stop_after_finish_s": 1.0,
        "path": [LINE, {"kind": "impairments", "name": "air", "down": down, "up": {}}],
        "traffic": [{"kind": "download", "bytes": 1_000_000}],
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
    }
    return simulate(Scenario.from_mapping(scenario), directory)


def arrived(capture: Path) -> list[tuple[str, int]]:
    """IP identification and sequence number of each data packet that came down, in order, by tshark."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp.len > 0 && tcp.srcport != 40000", "-T", "fields"]
    fields = ["-e", "ip.id", "-e", "tcp.seq"]
    text = subprocess.run([*command, *fields], capture_output=True, text=True, check=True).stdout
    return [(name, int(number)) for name, number in map(str.split, text.splitlines())]


def air(made: Run) -> dict[str, int]:
    (hop,) = (hop for hop in made.truth["hops"] if hop["name"] == "air")
    counts: dict[str, int] = hop["down"]
    return counts


def late(packets: list[tuple[str, int]]) -> int:
    """How many arrive behind a later one that was sent after them."""
    most, found = -1, 0
    for _, number in packets:
        found += number < most
        most = max(most, number)
    return found


def test_jitter_keeps_the_order(tmp_path: Path) -> None:
    made = run(tmp_path, jitter_s=0.02)
    packets = arrived(made.captures["mobile"])
    assert len(packets) > 600
    assert late(packets) == 0
    assert air(made)["delivered_packets"] == air(made)["offered_packets"]


def test_copies_are_counted_and_have_the_same_numbers(tmp_path: Path) -> None:
    made = run(tmp_path, duplicated=0.05)
    packets = arrived(made.captures["mobile"])
    copies = sum(count - 1 for count in Counter(packets).values())
    # Packets without data may be copied, too.
    assert 10 < copies <= air(made)["duplicated_packets"]
    assert air(made)["delivered_packets"] == air(made)["offered_packets"] + air(made)["duplicated_packets"]


def test_packets_that_are_held_back_are_overtaken(tmp_path: Path) -> None:
    made = run(tmp_path, reordered=0.02, reorder_s=0.01)
    packets = arrived(made.captures["mobile"])
    assert late(packets) >= 5
    again = run(tmp_path / "again", reordered=0.02, reorder_s=0.01)
    assert again.captures["mobile"].read_bytes() == made.captures["mobile"].read_bytes()


def test_none_of_it_is_a_split(tmp_path: Path) -> None:
    made = run(tmp_path, jitter_s=0.01, reordered=0.01, duplicated=0.01)
    (pair,) = detect(str(made.captures["server"]), str(made.captures["mobile"])).pairs
    assert pair.verdict is Verdict.REGULAR


@pytest.mark.parametrize("down", [{"reordered": 1.5}, {"jitter_s": -1}, {"reordered": 0.1, "reorder_s": 0}])
def test_impossible_impairments_are_refused(down: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"path\[1\]\.down"):
        run(tmp_path, **down)
