"""Starts by a timetable that two captures show late together, and those of strangers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detector.pairing.starts.lateness import lateness_nats
from pepscope.captures.packets import Int64Array
from pepscope.results.verdicts import FloatArray

_S = 1_000_000_000


def in_ns(ones_s: FloatArray, twos_s: FloatArray) -> Int64Array:
    return (np.stack([ones_s, twos_s], axis=1) * _S).round().astype(np.int64)


def shown(ones_s: FloatArray, twos_s: FloatArray) -> float:
    """What starts of one program show."""
    return lateness_nats(in_ns(ones_s, twos_s), np.zeros(len(ones_s), np.int64))


def late(made: np.random.Generator, count: int, mean_s: float) -> FloatArray:
    return np.asarray(made.exponential(mean_s, count))


def timetable(count: int, cycle_s: tuple[float, ...] = (0.0,), period_s: float = 5.0) -> FloatArray:
    numbers = np.arange(count)
    return np.asarray(numbers // len(cycle_s) * period_s + np.array(cycle_s)[numbers % len(cycle_s)])


@pytest.mark.parametrize("ahead_s", [0.0, -7.0])
def test_transfers_are_late_by_what_their_clients_are(ahead_s: float) -> None:
    made = np.random.default_rng(1)
    ones = timetable(30) + late(made, 30, 0.01)
    twos = ones + 0.03 + ahead_s + late(made, 30, 0.001)
    assert shown(ones, twos) > math.log(1000)
    assert shown(twos, ones) > math.log(1000)


@pytest.mark.parametrize("cycle_s", [(0.0,), (0.0, 1.7, 3.1), (0.0, 1.66, 3.33)])
@pytest.mark.parametrize("count", [6, 30, 200])
def test_strangers_of_one_timetable_are_late_each_by_itself(count: int, cycle_s: tuple[float, ...]) -> None:
    """A likelihood ratio exceeds x under the other hypothesis once in x at most (Markov)."""
    made = np.random.default_rng(2)
    due = timetable(count, cycle_s)
    found = [shown(*(due + late(made, count, 0.01) for _ in range(2))) for _ in range(400)]
    assert np.exp(found).mean() < 2
    assert (np.array(found) > math.log(100)).mean() <= 0.01


def test_what_both_captures_repeat_is_no_agreement() -> None:
    """Each second cycle of the timetable is 20 ms longer: as many intervals as are alike say it once."""
    made = np.random.default_rng(3)
    due = timetable(60, (0.0, 5.02), 10.0)
    ones, twos = (due + late(made, 60, 0.001) for _ in range(2))
    assert shown(ones, twos) < 1


def test_one_start_that_both_hosts_delay_is_one_order_of_many() -> None:
    made = np.random.default_rng(4)
    due = timetable(30)
    due[17] += 0.08
    ones, twos = (due + late(made, 30, 0.001) for _ in range(2))
    assert shown(ones, twos) < 2


def test_paths_that_vary_more_than_clients_show_nothing() -> None:
    made = np.random.default_rng(5)
    ones = timetable(30) + late(made, 30, 0.0001)
    assert shown(ones, ones + late(made, 30, 0.01)) == 0


def test_exact_or_few_starts_show_nothing() -> None:
    for count in (0, 1, 3, 4, 40):
        assert shown(timetable(count), timetable(count) + 1) == 0
    made = np.random.default_rng(6)
    ones = timetable(4) + late(made, 4, 0.01)
    assert shown(ones, ones) < 1


def test_no_more_than_all_orders_is_shown() -> None:
    made = np.random.default_rng(7)
    ones = timetable(8) + late(made, 8, 0.01)
    assert 0 < shown(ones, ones) < math.lgamma(8)
