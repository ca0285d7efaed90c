"""What is learned of the slowest links of near legs: shares that are never nothing, and sum to one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.one_ended_learning.links import shares
from detector.one_capture.likelihoods.near.near_links import BYTES_EDGES, SPREAD_EDGES_S

SHAPE = (2, len(BYTES_EDGES) + 1, len(SPREAD_EDGES_S) + 1)


@given(arrays(np.float64, SHAPE, elements=st.integers(0, 1000).map(float)))
def test_shares_are_probabilities_and_leave_room_for_everything(counts: np.ndarray) -> None:
    learned = shares(counts)
    np.testing.assert_allclose(learned.sum(axis=-1), 1.0)
    assert (learned > 0).all()


def test_what_was_seen_often_is_likely_and_its_neighbours_more_than_others() -> None:
    counts = np.zeros(SHAPE)
    counts[0, 2, 5] = 100
    learned = shares(counts)[0, 2]
    assert learned[5] > learned[4] > learned[2]


def test_sizes_that_were_never_seen_borrow_from_the_others() -> None:
    counts = np.zeros(SHAPE)
    counts[1, 0, 3] = 50
    assert shares(counts)[1, 2].argmax() == 3
