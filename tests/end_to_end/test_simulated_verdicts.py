"""The detector on what the simulator writes: never a false alarm, and right wherever the truth says that it shows."""

from __future__ import annotations

import json

import pytest

from benchmarks.simulated_validation import Expectation, Judged, judge, points, section
from pepscope.results import Kind
from reference_sim.library import load_scenario, scenario_names
from reference_sim.scenario import Scenario

#: Simulated seconds of the longer scenarios; enough for every class to show.
SHORT_S = 40.0
SHORTER_S = {"bulk-100mbit-40ms": 2.0}

#: Every so many runs of the family, over several campaigns of it.
STEP, CAMPAIGNS = 11, 2
SAMPLE = list(points(CAMPAIGNS))[::STEP]


@pytest.mark.parametrize("name", scenario_names())
def test_named_scenarios_are_judged_as_they_are(name: str) -> None:
    scenario = load_scenario(name)
    limit = SHORTER_S.get(name, SHORT_S if scenario.traffic[0].get("duration_s") else scenario.duration_s)
    judged = judge(name, scenario.with_values({"duration_s": limit}))
    assert judged
    for one in judged:
        # A kind that the captures do not show may be the other one; that something splits always shows here.
        assert one.verdict in one.expectation.right - {Kind.INCONCLUSIVE}, one.reason


@pytest.mark.parametrize(("variant", "text"), SAMPLE, ids=[f"{i * STEP}-{one[0]}" for i, one in enumerate(SAMPLE)])
def test_the_family_is_judged_as_its_truth_allows(variant: str, text: str) -> None:
    for one in judge(variant, Scenario.from_mapping(json.loads(text))):
        assert one.verdict in one.expectation.right, one.reason


def test_the_sample_shows_every_class() -> None:
    shown = [one for variant, text in SAMPLE for one in judge(variant, Scenario.from_mapping(json.loads(text)))]
    sure = {one.expectation.truth for one in shown if one.expectation.shows != "nothing"}
    assert sure == {Kind.REGULAR, Kind.SPLIT_TCP, Kind.TCP_PROXY}
    assert sum(one.expectation.shows == "class" for one in shown) > len(shown) / 3


def test_a_wrong_verdict_is_counted() -> None:
    regular = Expectation(Kind.REGULAR, frozenset({Kind.REGULAR}))
    text = section([Judged("regular", regular, Kind.SPLIT_TCP, "", 1), Judged("regular", regular, Kind.REGULAR, "", 2)])
    assert "1 false alarms" in text
    assert "1 of 2 verdicts are right" in text
    assert "| regular | regular | class | 1 | 1 |  |  |" in text
