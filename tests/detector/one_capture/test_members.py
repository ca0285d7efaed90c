"""Numbers of connections as those of members."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.members import codes, most_frequent, numbered, pooled_quantiles, quantiles, seconds, shares


def test_numbers_by_member() -> None:
    member = np.asarray([1, 1, -1, 1, 0])
    values = np.asarray([3.0, 1.0, 9.0, np.nan, np.nan])
    assert np.nan_to_num(quantiles(values, member, 3, 0.5), nan=-1).tolist() == [-1, 1, -1]
    assert np.nan_to_num(quantiles(values, member, 3, 1.0), nan=-1).tolist() == [-1, 3, -1]
    happens, known = np.asarray([True, False, True, True, True]), np.asarray([True, True, True, False, True])
    assert np.nan_to_num(shares(happens, known, member, 3), nan=-1).tolist() == [1, 0.5, -1]
    assert most_frequent(np.asarray([7, 5, 9, -1, -1]), member, 3).tolist() == [-1, 5, -1]
    assert most_frequent(np.asarray([7, 5, 9, 7, 2]), member, 3).tolist() == [2, 7, -1]
    assert most_frequent(np.asarray([-1]), np.asarray([0]), 1).tolist() == [-1]
    assert np.isnan(seconds(np.asarray([-1]))).all()


@given(st.lists(st.tuples(st.floats(-1e3, 1e3) | st.just(math.nan), st.integers(-1, 3))), st.floats(0, 1))
def test_quantiles_are_those_of_each_member(rows: list[tuple[float, int]], share: float) -> None:
    values, group = np.asarray([row[0] for row in rows]), np.asarray([row[1] for row in rows], np.int64)
    found = quantiles(values, group, 4, share)
    for number in range(4):
        known = sorted(value for value, of in rows if of == number and not math.isnan(value))
        np.testing.assert_equal(found[number], known[int((len(known) - 1) * share)] if known else math.nan)


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3) | st.just(math.nan), st.integers(0, 5), st.integers(-1, 3))),
    st.floats(0, 1),
)
def test_a_value_counts_as_often_as_it_has_samples(rows: list[tuple[float, int, int]], share: float) -> None:
    values, count, group = (np.asarray([row[place] for row in rows]) for place in range(3))
    count, group = count.astype(np.int64), group.astype(np.int64)
    found = pooled_quantiles(values, count.astype(np.float64), group, 4, share)
    np.testing.assert_array_equal(found, quantiles(values.repeat(count), group.repeat(count), 4, share))


@given(st.lists(st.tuples(st.integers(-3, 2**40), st.floats(0, 2) | st.just(0.5), st.integers(0, 2)), max_size=20))
def test_rows_have_one_code_where_they_are_equal(rows: list[tuple[int, float, int]]) -> None:
    columns = [np.asarray([row[place] for row in rows]) for place in range(3)]
    found = codes(columns)
    assert len(found) == (len(rows) if rows else 0)
    _, first = numbered(columns)
    assert [rows[row] for row in first.tolist()] == sorted(set(rows))
    assert all(rows.index(rows[row]) == row for row in first.tolist())
    for one, row in zip(found, rows, strict=True):
        for other, other_row in zip(found, rows, strict=True):
            assert (one == other) == (row == other_row)


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 3)), max_size=30))
def test_the_most_frequent_value_is_the_lowest_of_equally_frequent_ones(rows: list[tuple[int, int]]) -> None:
    found = most_frequent(
        np.asarray([row[0] for row in rows], np.int64), np.asarray([row[1] for row in rows], np.int64), 4
    )
    for member in range(4):
        own = [value for value, of in rows if of == member and value >= 0]
        assert found[member] == (min(own, key=lambda value: (-own.count(value), value)) if own else -1)
