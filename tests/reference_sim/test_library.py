"""The scenarios and campaigns that come with pepscope."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import reference_sim
from pepscope.errors import ScenarioError
from reference_sim.library import campaign_names, campaign_path, load_scenario, scenario_names
from reference_sim.simulation import simulate
from reference_sim.sweep import Campaign

ROOM = Path(reference_sim.__file__).parent
LONGEST_S = 20.0


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_has_a_description_and_delivers(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.description.endswith(".")
    run = simulate(scenario.with_values({"duration_s": min(LONGEST_S, scenario.duration_s)}), captures=False)
    assert run.summary()["delivered_bytes"] > 0
    for flow in run.truth["flows"]:
        if flow["mobile"]["outcome"] == "closed" and name != "wei-recompression":
            assert flow["delivered_exactly"] == {"down": True, "up": True}


@pytest.mark.parametrize("name", campaign_names())
def test_every_campaign_has_a_description_and_starts(name: str) -> None:
    campaign = Campaign.from_toml(campaign_path(name))
    assert campaign.name == name
    assert campaign.description.endswith(".")
    assert next(campaign.points()).scenario.duration_s > 0
    assert campaign.runs > 1


def test_a_name_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(ScenarioError, match="--list"):
        load_scenario("no-such-scenario")


def test_the_made_up_trace_is_as_it_was_made() -> None:
    """1.5 Mbit/s (1 + 0.8 sin(2 pi t / 5 s)), nothing from 7 s to 7.5 s, in packets of 1504 bytes."""
    times_ms, packets = [], 0.0
    for time_ms in range(1, 10_001):
        time_s = time_ms / 1000
        if not 7.0 < time_s <= 7.5:
            packets += 1.5e6 * (1 + 0.8 * math.sin(2 * math.pi * time_s / 5)) / 1000 / (1504 * 8)
        while packets >= 1:
            times_ms.append(time_ms)
            packets -= 1
    text = (ROOM / "scenarios" / "made-up-cell.mahimahi").read_text(encoding="ascii")
    assert [int(line) for line in text.split()] == times_ms
