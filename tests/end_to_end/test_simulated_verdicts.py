"""The detector on what the simulator writes: never a false alarm, and right wherever the truth says that it shows."""

from __future__ import annotations

import json
from functools import cache

import pytest

from benchmarks.validation import regular_setups
from benchmarks.validation.simulated import Expectation, Judged, judge, judge_point, points, section
from pepscope.results.verdicts import Verdict
from reference_sim.library import load_scenario, scenario_names
from reference_sim.scenario import Scenario

#: Simulated seconds of the longer scenarios; enough for every class to show.
SHORT_S = 40.0
SHORTER_S = {"bulk-100mbit-40ms": 2.0}

#: Every so many runs of the family, over several campaigns of it.
STEP, CAMPAIGNS = 11, 2
SAMPLED = 48


@cache
def sample() -> list[tuple[str, str]]:
    """Variant and scenario of the runs; not made while tests are collected, which every worker does."""
    return list(points(CAMPAIGNS))[::STEP]


@pytest.mark.parametrize("name", scenario_names())
def test_named_scenarios_are_judged_as_they_are(name: str) -> None:
    scenario = load_scenario(name)
    limit = SHORTER_S.get(name, SHORT_S if scenario.traffic[0].get("duration_s") else scenario.duration_s)
    judged = judge(name, scenario.with_values({"duration_s": limit}))
    assert judged
    for one in judged:
        # A kind that the captures do not show may be the other one; that something splits always shows here.
        assert one.verdict in one.expectation.right - {Verdict.INCONCLUSIVE}, one.reason


@cache
def judged_run(number: int) -> list[Judged]:
    """Verdicts on one run of the sample."""
    variant, text = sample()[number]
    return judge(variant, Scenario.from_mapping(json.loads(text)))


@pytest.mark.parametrize("number", range(SAMPLED))
def test_the_family_is_judged_as_its_truth_allows(number: int) -> None:
    judged = judged_run(number)
    assert judged
    for one in judged:
        assert one.verdict in one.expectation.right, f"{one.variant}: {one.reason}"


def test_the_sample_shows_every_class() -> None:
    assert len(sample()) == SAMPLED
    shown = [one for number in range(SAMPLED) for one in judged_run(number)]
    sure = {one.expectation.truth for one in shown if one.expectation.shows != "nothing"}
    assert sure == {Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY}
    assert sum(one.expectation.shows == "class" for one in shown) > len(shown) / 3


def test_a_wrong_verdict_is_counted() -> None:
    regular = Expectation(Verdict.REGULAR, frozenset({Verdict.REGULAR}))
    text = section(
        [Judged("regular", regular, Verdict.SPLIT_TCP, "", 1), Judged("regular", regular, Verdict.REGULAR, "", 2)]
    )
    assert "1 false alarms" in text
    assert "1 of 2 verdicts are right" in text
    assert "| regular | regular | class | 1 | 1 |  |  |" in text


def test_harmless_middleboxes_before_every_access_link_are_no_splits() -> None:
    judged = [one for given in regular_setups.points(draws=1, seed=2) for one in judge_point(given)]
    assert len({one.variant for one in judged}) >= 40
    assert {one.expectation.truth for one in judged} == {Verdict.REGULAR}
    assert [one for one in judged if one.verdict.is_split] == []
    assert "72 regular connections of 72 set-ups: 0 called split" in regular_setups.section(judged)
    alarm = Judged("router; LTE", judged[0].expectation, Verdict.SPLIT_TCP, "", 1)
    assert "0 / 1, **1 split**" in regular_setups.section([alarm])
