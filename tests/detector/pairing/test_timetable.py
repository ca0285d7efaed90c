"""Starts that repeat intervals, and those that do not."""

from __future__ import annotations

import random

import pytest

from detector.pairing.starts.timetable import repetition

_S = 1_000_000_000


def in_ns(starts_s: list[float]) -> list[int]:
    return [round(start * _S) for start in sorted(starts_s)]


@pytest.mark.parametrize("periods_s", [[60.0], [60.0, 45.0], [1.0]])
def test_timers_repeat_intervals(periods_s: list[float]) -> None:
    made = random.Random(1)
    starts = [period * number + made.uniform(0, 0.02) for period in periods_s for number in range(1, 20)]
    found = repetition(in_ns(starts), 0.05 * _S)
    assert found.nats > 5
    assert found.new <= 2 * len(periods_s)


@pytest.mark.parametrize(("count", "over_s"), [(20, 60), (100, 60), (700, 600)])
def test_starts_at_random_repeat_by_chance(count: int, over_s: float) -> None:
    made = random.Random(1)
    found = repetition(in_ns([made.uniform(0, over_s) for _ in range(count)]), 0.05 * _S)
    assert found.nats < -3


def test_two_starts_show_nothing() -> None:
    for starts in ([], [1.0], [1.0, 5.0]):
        assert repetition(in_ns(starts), 0.05 * _S) == repetition([], 0.0)
    assert repetition([], 0.0).nats == 0


def test_equal_times_are_told_without_a_division_by_zero() -> None:
    assert repetition([_S] * 16, 0.0).new == 14
