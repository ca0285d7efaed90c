"""Handovers on a simulated path, as tshark sees them in the captures."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pepscope import detect
from pepscope.errors import ScenarioError
from pepscope.results.verdicts import Verdict
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

INTERVAL_S = 1.0
INTERRUPTION_S = 0.1


def run(directory: Path, **handover: Any) -> Run:
    line = {"rate_bit_s": 5_000_000, "delay_s": 0.02, "queue_packets": 200}
    fields = {"interval_s": INTERVAL_S, "intervals": "fixed", "interruption_s": INTERRUPTION_S, **handover}
    scenario: dict[str, Any] = {
        "name": "moving",
        "duration_s": 60.0,
        "path": [
            {"kind": "wired", "name": "line", "down": line},
            {"kind": "handover", "name": "cells", **fields},
        ],
        "traffic": [{"kind": "download", "bytes": 3_000_000}],
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
    }
    return simulate(Scenario.from_mapping(scenario), directory)


def arrivals_s(capture: Path) -> list[float]:
    """Time of each data packet that came down, in seconds since the start of the run, by tshark."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp.len > 0 && tcp.srcport == 5001", "-T", "fields"]
    text = subprocess.run([*command, "-e", "frame.time_epoch"], capture_output=True, text=True, check=True).stdout
    return [float(line) - 1_700_000_000 for line in text.splitlines()]


def cells(made: Run) -> dict[str, int]:
    (hop,) = (hop for hop in made.truth["hops"] if hop["name"] == "cells")
    counts: dict[str, int] = hop["down"]
    return counts


def interruptions(times_s: list[float]) -> list[tuple[float, float]]:
    """Beginnings and ends of the handovers that are over before the last packet."""
    period_s = INTERVAL_S + INTERRUPTION_S
    numbers = range(int(times_s[-1] / period_s))
    return [(number * period_s + INTERVAL_S, (number + 1) * period_s) for number in numbers]


@pytest.mark.parametrize("forwards", [True, False])
def test_nothing_arrives_during_a_handover(forwards: bool, tmp_path: Path) -> None:
    made = run(tmp_path, forwards=forwards)
    times_s = arrivals_s(made.captures["mobile"])
    handovers = interruptions(times_s)
    assert len(handovers) >= 4
    # Times as floating-point numbers of seconds since 1970 are a quarter of a microsecond apart.
    for starts_s, ends_s in handovers:
        assert not [time_s for time_s in times_s if starts_s + 1e-6 < time_s < ends_s - 1e-6]
    together = [sum(abs(time_s - ends_s) < 1e-6 for time_s in times_s) for _, ends_s in handovers]
    if forwards:
        # The line goes on sending, 42 packets in 0.1 s; they arrive at once.
        assert max(together) > 30
        assert cells(made)["lost_packets"] == 0
    else:
        assert max(together) <= 1
        assert cells(made)["lost_packets"] > 30
    (flow,) = made.truth["flows"]
    assert flow["mobile"]["read_bytes"] == 3_000_000


def test_handovers_are_no_split_and_a_run_can_be_repeated(tmp_path: Path) -> None:
    made, again = (run(tmp_path / name, intervals="exponential", forwards=False) for name in "ab")
    for end in ("server", "mobile"):
        assert made.captures[end].read_bytes() == again.captures[end].read_bytes()
    assert cells(made)["lost_packets"] > 0
    (pair,) = detect(str(made.captures["server"]), str(made.captures["mobile"])).pairs
    assert pair.verdict is Verdict.REGULAR


@pytest.mark.parametrize(
    ("handover", "sentence"),
    [
        ({"interval_s": 0.0}, r"path\[1\]\.interval_s must be a number from 0\.001 to 1e7, got 0.0"),
        ({"intervals": "poisson"}, r"path\[1\]\.intervals must be one of exponential, fixed"),
    ],
)
def test_impossible_handovers_are_refused(handover: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        run(tmp_path, **handover)
