"""Correlations by ranks, and how many independent values they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from detector.pairing.starts.ranks import rank_correlation


def test_an_outlier_makes_no_correlation() -> None:
    made = np.random.default_rng(1)
    columns = made.integers(0, 1000, (50, 2))
    columns[7] = 10**9
    assert np.asarray(np.corrcoef(columns.T))[0, 1] > 0.99
    assert abs(rank_correlation(columns)[0]) < 0.3


def test_equal_series_correlate_whatever_their_scale() -> None:
    values = np.random.default_rng(2).integers(0, 10**9, 30)
    correlation, independent = rank_correlation(np.stack([values, values**2 + 5], axis=1))
    assert correlation == pytest.approx(1)
    assert independent > 20


@pytest.mark.parametrize("cycle", [2, 5, 8])
def test_a_cycle_counts_once(cycle: int) -> None:
    values = np.resize(np.random.default_rng(3).integers(0, 10**9, cycle), 20 * cycle)
    correlation, independent = rank_correlation(np.stack([values, values], axis=1))
    assert correlation == pytest.approx(1)
    assert independent < 2 * cycle + 2


def test_equal_values_and_series_without_anything_in_common_are_told_without_a_division_by_zero() -> None:
    assert rank_correlation(np.ones((10, 2), np.int64)) == (0, 0)
    correlation, independent = rank_correlation(np.array([[1, 1], [0, 1], [1, 0], [0, 0]]))
    assert abs(correlation) < 1e-9
    assert independent == 4
