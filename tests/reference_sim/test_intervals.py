"""Confidence intervals against a reference and against their own promise."""

from __future__ import annotations

import random

import pytest
import scipy

from reference_sim.intervals import mean_interval


def test_it_is_students() -> None:
    values = [4.1, 3.9, 5.0, 4.4, 4.6]
    interval = mean_interval(values)
    low, high = scipy.stats.t.interval(0.95, len(values) - 1, loc=interval.mean, scale=scipy.stats.sem(values))
    assert interval.mean - interval.half_width == pytest.approx(low)
    assert interval.mean + interval.half_width == pytest.approx(high)


def test_one_value_has_no_width_and_none_has_no_mean() -> None:
    assert mean_interval([3.0]).half_width is None
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])


def test_the_interval_covers_the_mean_at_its_confidence() -> None:
    source = random.Random(5)
    hits = 0
    for _ in range(2000):
        interval = mean_interval([source.gauss(7.0, 2.0) for _ in range(5)])
        assert interval.half_width is not None
        hits += abs(interval.mean - 7.0) <= interval.half_width
    assert 0.93 < hits / 2000 < 0.97
