"""The gain experiment: pairs by turns, medians, and intervals that hold what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pepscope.captures.packets import Direction
from prober.errors import ArchiveError, PlanError
from prober.experiments.gain import CONFIDENCE, LEAST_PAIRS, TABLE_II_BYTES, Gain, gain_interval, gain_row
from prober.plan import Plan
from prober.protocol.application import Application
from tests.prober.experiments.observed import seen, tasks_of


def plan(**settings: Any) -> Plan:
    return Plan.from_mapping({"experiments": {"gain": settings}})


def pair(usual_s: float, free_s: float, size_bytes: int = 1000, **fields: Any) -> dict[str, Any]:
    return {
        "size_bytes": size_bytes, "first": "usual", "usual_port": 80, "free_port": 26_880, "usual_total_s": usual_s,
        "free_total_s": free_s, "usual_first_byte_s": 0.1, "free_first_byte_s": 0.1, "usual_moved_bytes": size_bytes,
        "free_moved_bytes": size_bytes, **fields,
    }  # fmt: skip


def test_the_sizes_are_those_of_table_ii_and_come_by_turns() -> None:
    tasks = list(tasks_of(Gain(), plan(repeats=3)))
    assert [task.parameters["size_bytes"] for task in tasks[:7]] == list(TABLE_II_BYTES)
    assert [task.repeat for task in tasks] == [1] * 7 + [2] * 7 + [3] * 7
    assert {(task.application, task.direction, task.captured) for task in tasks} == {
        (Application.HTTP_DATA, Direction.DOWN, False)
    }


def test_as_many_repeats_as_are_asked_for() -> None:
    assert len(list(tasks_of(Gain(), plan(repeats=100, sizes_bytes=[1000, 5000])))) == 200


def test_applications_that_make_no_pair_are_refused() -> None:
    with pytest.raises(PlanError, match="usual port is the free one"):
        list(tasks_of(Gain(), plan(applications=["tcp"])))
    with pytest.raises(PlanError, match=r"gain\.applications"):
        list(tasks_of(Gain(), plan(applications=["gopher"])))


def test_the_gain_is_of_medians_of_throughput() -> None:
    row = gain_row(1000, [(0.5, 0.9), (0.4, 0.8), (0.4, 0.8), (0.4, 0.8), (0.4, 9.0), (0.4, 0.8)])
    assert row["gain"] == pytest.approx(1.0)
    assert row["simulated"] is None, "no simulated object is as small"
    assert row["usual_rate_bit_s"] == pytest.approx(20_000)
    assert row["free_rate_bit_s"] == pytest.approx(10_000)
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    assert row["reading"].startswith("the usual port is faster by 100 %")


def test_slower_is_reported_as_slower() -> None:
    row = gain_row(1000, [(1.0, 0.76 + 0.001 * number) for number in range(10)])
    assert row["gain"] < 0
    assert row["reading"].startswith("the usual port is slower by 24 %")


def test_an_interval_that_includes_zero_is_reported() -> None:
    chance = np.random.default_rng(1)
    row = gain_row(1000, [tuple(chance.uniform(0.5, 1.5, 2)) for _ in range(12)])
    assert row["gain_low"] < 0 < row["gain_high"]
    assert "includes 0" in row["reading"]


def test_equal_times_are_no_difference() -> None:
    row = gain_row(1000, [(0.5, 0.5)] * 8)
    assert (row["gain"], row["gain_low"], row["gain_high"]) == (0, 0, 0)
    assert "includes 0" in row["reading"]


def test_too_few_pairs_have_no_interval() -> None:
    row = gain_row(1000, [(0.5, 0.9)] * (LEAST_PAIRS - 1))
    assert (row["gain_low"], row["gain_high"]) == (None, None)
    assert "too few pairs" in row["reading"]


def test_the_interval_holds_the_truth_at_its_confidence() -> None:
    """Times that scatter by a factor, slow hours that touch both; the true gain is 0.3."""
    chance = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        slow = chance.lognormal(0, 0.4, 30)
        usual = slow * chance.lognormal(0, 0.2, 30)
        free = 1.3 * slow * chance.lognormal(0, 0.2, 30)
        low, high = gain_interval(np.column_stack([usual, free]))
        held += low <= 0.3 <= high
    assert held / 300 >= CONFIDENCE - 0.05


def test_pairs_are_drawn_whole() -> None:
    """Both of a pair slow or fast: the gain is the same in each, so no chance is left in it."""
    slow = np.linspace(1, 10, 20)
    low, high = gain_interval(np.column_stack([slow, 1.5 * slow]))
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(0.5)


def test_metrics_have_a_row_for_each_size_and_no_finding() -> None:
    found = [seen("gain", pair(1.0, 1.5, size)) for size in (5000, 1000) for _ in range(7)]
    found += [seen("gain", pair(1.0, 1.5, 5000, usual_moved_bytes=700))]
    facts = Gain().metrics(found)
    assert [(row["size_bytes"], row["pairs"]) for row in facts["gain"]] == [(1000, 7), (5000, 8)]
    assert facts["ports"] == [{"usual": 80, "free": 26_880}]
    assert facts["arrived_in_another_size"] == 1
    assert facts["confidence"] == CONFIDENCE
    assert Gain().examine(found) == ()


def test_nothing_measured_has_no_facts() -> None:
    assert Gain().metrics([]) == {}
    assert Gain().metrics([seen("gain", pair(0.0, 1.0))]) == {}


@pytest.mark.parametrize("name", ["size_bytes", "first", "usual_total_s", "usual_port", "usual_moved_bytes"])
def test_values_that_make_no_sense_are_refused(name: str) -> None:
    values: list[Any] = [None, [], {"a": 1}, float("1e999")]
    for value in values:
        with pytest.raises(ArchiveError):
            Gain().metrics([seen("gain", {**pair(1.0, 1.0), name: value})])


def test_a_row_points_to_the_nearest_simulated_cell() -> None:
    row = gain_row(1_000_000, [(4.0, 5.0)] * LEAST_PAIRS)
    simulated = row["simulated"]
    assert simulated["access"] == "satellite"
    assert simulated["size_bytes"] == 1_000_000
    assert simulated["gain_low"] <= simulated["gain"] <= simulated["gain_high"]
    assert "1 MB over a satellite" in simulated["reading"]
