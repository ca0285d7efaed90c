"""Times of a machine that are learned from set-ups: known ones come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.real_or_simulated.learning import learn
from benchmarks.real_or_simulated.passages import passages
from benchmarks.real_or_simulated.runs import Captures, simulated_runs
from benchmarks.real_or_simulated.set_ups import scenario, set_ups

if TYPE_CHECKING:
    from pathlib import Path

RECEIVING = {"least_s": 5e-6, "median_s": 20e-6, "spread": 0.3}
CROSSING = {"least_s": 1e-5, "median_s": 4e-5, "spread": 0.3}
LATE = {"least_s": 0.0, "median_s": 2e-6, "spread": 0.7}


def on_a_known_machine(set_up: dict[str, Any]) -> dict[str, Any]:
    times = {"receiving": RECEIVING, "cold_receiving": 1, "machine_spread": 0, "interrupted_share": 0}
    ends = {end: {**set_up[end], "times": times} for end in ("server", "mobile")}
    sends, receives = (
        {"kind": "device", "name": "sends", "down": CROSSING},
        {"kind": "device", "name": "receives", "down": LATE},
    )
    return {**set_up, **ends, "path": [sends, *set_up["path"], receives]}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[Captures]]:
    drawn = set_ups(8, 9)
    return drawn, simulated_runs(drawn, tmp_path_factory.mktemp("known"), {"host": "linux"}, on_a_known_machine)


def test_times_of_a_machine_and_its_devices_come_back(known: tuple[list[dict[str, Any]], list[Captures]]) -> None:
    learned = learn(*known)
    assert learned.ends["server"].times["receiving"].median_s == pytest.approx(20e-6, rel=0.15)
    sends, receives = learned.devices["server"][0], learned.devices["mobile"][1]
    assert sends["down"]["median_s"] == pytest.approx(4e-5, rel=0.15)
    assert receives["down"]["median_s"] == pytest.approx(2e-6, rel=0.5)
    assert learned.devices["mobile"][0].get("up", {"median_s": 0.0})["median_s"] < 1e-6


def test_set_ups_with_what_was_learned_can_be_simulated(
    known: tuple[list[dict[str, Any]], list[Captures]], tmp_path: Path
) -> None:
    learned = learn(*known)
    (other,) = set_ups(1, 10)
    changed = scenario(learned.scenario(other), {"host": "linux"})
    assert [hop["kind"] for hop in changed.path] == ["device", "device", "wired", "device", "device"]
    assert len({hop["name"] for hop in changed.path}) == 5
    (run,) = simulated_runs([other], tmp_path, {"host": "linux"}, learned.scenario)
    entering = passages("server", other, run).entering
    assert float(np.median([time_s for time_s, _ in entering])) == pytest.approx(4e-5, rel=0.3)


def test_a_path_without_devices_takes_no_time_beyond_its_own(tmp_path: Path) -> None:
    drawn = set_ups(1, 9)
    (run,) = simulated_runs(drawn, tmp_path, {"host": "linux"})
    found = passages("server", drawn[0], run)
    assert all(time_s < 1e-8 for time_s, _ in found.entering)
    assert float(np.median(np.abs(found.late_s))) < 1e-8
    assert found.apart_s == []


def test_packets_that_waited_are_told_by_coming_sooner_than_the_line_brings_them(tmp_path: Path) -> None:
    apart = {"least_s": 3e-5, "median_s": 3e-5, "spread": 0.0}
    late = {"interrupted_share": 0.02, "interruption": {"least_s": 0.01, "median_s": 0.01, "spread": 0.0}}

    def beside_a_late_device(set_up: dict[str, Any]) -> dict[str, Any]:
        receives = {"kind": "device", "name": "receives", "down": LATE, "apart": apart, **late}
        return {**set_up, "path": [*set_up["path"], receives]}

    drawn = set_ups(6, 9)
    runs = simulated_runs(drawn, tmp_path, {"host": "linux"}, beside_a_late_device)
    waited_s = [gap for set_up, run in zip(drawn, runs, strict=True) for gap in passages("server", set_up, run).apart_s]
    assert len(waited_s) > 40
    assert float(np.median(waited_s)) == pytest.approx(3e-5, rel=0.05)
