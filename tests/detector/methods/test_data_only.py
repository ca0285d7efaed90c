"""Captures that hold packets with data alone, by the filter of tcpdump's own manual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pepscope import detect
from pepscope.results.verdicts import Verdict
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

ONLY_DATA = "tcp and ((ip[2:2] - ((ip[0] & 0xf) << 2)) - ((tcp[12] & 0xf0) >> 2)) != 0"
BOXES: dict[str, dict[str, Any]] = {
    "none": {"kind": "wired", "name": "box", "down": {"delay_s": 0.0}},
    "local acknowledgement": {"kind": "local-acknowledger", "name": "box", "directions": "both"},
}


def dialogue(box: dict[str, Any], directory: Path) -> tuple[str, str]:
    """Questions and answers of one segment each, which acknowledge one another, past `box`: two captures."""
    wire = {"rate_bit_s": 2e8, "delay_s": 0.03, "queue_packets": 1000}
    scenario = Scenario.from_mapping(
        {
            "name": "dialogue", "duration_s": 100.0, "stop_after_finish_s": 3.0, "seed": 3,
            "mobile": {"host": "linux"}, "server": {"host": "linux"},
            "path": [
                {"kind": "wired", "name": "core", "down": wire, "up": wire}, box,
                {"kind": "wired", "name": "cell", "down": wire, "up": wire},
            ],
            "traffic": [
                {"kind": "http", "pages": 60, "page_bytes": 600, "request_bytes": 300, "think_time_mean_s": 0.01}
            ],
            "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
        }
    )  # fmt: skip
    captures = simulate(scenario, directory).captures
    return str(captures["server"]), str(captures["mobile"])


@pytest.mark.parametrize("box", BOXES)
def test_a_capture_without_pure_acknowledgements_clears_nobody(box: str, tmp_path: Path) -> None:
    [pair] = detect(*dialogue(BOXES[box], tmp_path), filter=ONLY_DATA).pairs
    assert pair.verdict is Verdict.INCONCLUSIVE, pair.reason
    assert {item.finding for item in pair.evidence} & {"same-data"}
    assert not {item.finding for item in pair.evidence} & {"same-packets", "acks-cross-whole-path"}


def test_with_its_pure_acknowledgements_the_dialogue_is_regular(tmp_path: Path) -> None:
    [pair] = detect(*dialogue(BOXES["none"], tmp_path)).pairs
    assert pair.verdict is Verdict.REGULAR, pair.reason
