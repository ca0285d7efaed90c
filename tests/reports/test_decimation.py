from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reports.figures.decimation import FloatArray, envelope_indices, lowest, step_indices
from reports.figures.packing import pack, unpack

values = arrays(np.float64, st.integers(1, 400), elements=st.floats(-1e6, 1e6) | st.just(float("nan")))
finite = arrays(np.float64, st.integers(1, 400), elements=st.floats(-1e12, 1e12))


@given(values, st.integers(4, 60), st.lists(st.integers(0, 10**6), max_size=5))
def test_extremes_ends_and_kept_points_survive(value: FloatArray, limit: int, wanted: list[int]) -> None:
    keep = np.array([index % len(value) for index in wanted], dtype=np.int64)
    chosen = envelope_indices(value, limit, keep)
    assert np.all(np.diff(chosen) > 0)
    assert len(chosen) <= max(limit, 4) + len(keep)
    assert set(keep.tolist()) <= set(chosen.tolist())
    assert chosen[0] == 0
    assert chosen[-1] == len(value) - 1
    if not np.all(np.isnan(value)):
        assert np.nanmin(value[chosen]) == np.nanmin(value)
        assert np.nanmax(value[chosen]) == np.nanmax(value)


@given(finite, st.integers(4, 60))
def test_every_bucket_keeps_its_own_extremes(value: FloatArray, limit: int) -> None:
    chosen = envelope_indices(value, limit)
    size = -(-len(value) // max(1, (limit - 1) // 3)) if len(value) > limit else 1
    for start in range(0, len(value), size):
        inside = chosen[(chosen >= start) & (chosen < start + size)]
        assert value[inside].min() == value[start : start + size].min()
        assert value[inside].max() == value[start : start + size].max()


@given(arrays(np.float64, st.integers(1, 300), elements=st.sampled_from([0.0, 1.0, 2.0])))
def test_a_staircase_with_all_its_corners_is_the_same_curve(value: FloatArray) -> None:
    chosen = step_indices(value, 10_000)
    held = value[chosen[np.searchsorted(chosen, np.arange(len(value)), side="right") - 1]]
    assert np.array_equal(held, value)


@given(finite, st.integers(1, 50))
def test_lowest_are_the_lowest(value: FloatArray, count: int) -> None:
    chosen = lowest(value, count)
    assert len(chosen) == min(count, len(value))
    assert np.array_equal(np.sort(value[chosen]), np.sort(value)[: len(chosen)])


@given(values)
def test_packing_loses_less_than_a_part_in_a_billion(value: FloatArray) -> None:
    again = unpack(pack(value))
    assert np.array_equal(np.isnan(again), np.isnan(value))
    spread = np.nanmax(value) - np.nanmin(value) if not np.all(np.isnan(value)) else 0.0
    assert np.all(np.abs(again - value)[~np.isnan(value)] <= spread * 1e-9 + 1e-9)
