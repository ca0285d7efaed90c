"""The compiled counts of agreeing fields against their NumPy reference, on generated segments."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.methods.identity import midway
from detector.methods.identity.agreement import compare_data
from detector.methods.identity.examination import DECISIVE_NATS
from detector.methods.identity.midway import change_of_maker
from detector.methods.identity.segment_counts import field_counts
from pepscope.captures.packets import Direction
from tests.detector.methods import reference_agreement
from tests.detector.methods.generated_segments import (
    alone,
    arrived,
    changes,
    compared_acknowledgements,
    compared_data,
    counts,
    emitted_acknowledgements,
    emitted_data,
    laid_over,
    seeds,
    together,
)


@settings(deadline=None)
@given(seeds, counts, changes, st.sampled_from([1460, 1000]), st.sampled_from([0.0, 0.1]))
def test_data_agree_as_in_the_reference(seed, count, how, largest_payload, lost_share):
    random = np.random.default_rng(seed)
    emitted = emitted_data(random, count)
    came = arrived(random, emitted, how)
    asked = (emitted, came, largest_payload, lost_share)
    assert compared_data(*asked) == reference_agreement.compare_data(*asked)


@settings(deadline=None)
@given(seeds, counts, changes, st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 20))
def test_parts_of_the_data_agree_as_if_alone(seed, count, how, parts, fewest):
    random = np.random.default_rng(seed)
    emitted = emitted_data(random, count)
    came = arrived(random, emitted, how)
    ordered = came.take(np.argsort(came.start, kind="stable"))
    even = np.unique(np.linspace(0, len(came), parts + 1)[1:-1].astype(np.int64)).tolist()
    from_bytes, columns = laid_over(emitted, came).cut_data(Direction.UP, parts, fewest)
    places = [place for place in even if fewest <= place <= len(came) - fewest] if len(emitted) else []
    assert from_bytes == ordered.start[places].tolist()
    found = compare_data(field_counts(columns), 1460)
    for number, place in enumerate(places):
        for half, rows in enumerate((np.arange(place), np.arange(place, len(came)))):
            wanted = reference_agreement.compare_data(emitted, ordered.take(rows), 1460)
            assert alone(found, half, number) == wanted


@settings(deadline=None)
@given(seeds, counts, changes, changes)
def test_a_change_of_maker_is_found_as_if_all_parts_were_compared(seed, count, first, then):
    segments = _changing(seed, count, first, then)
    found = change_of_maker(segments, Direction.UP, 1460, DECISIVE_NATS)
    with patch.object(midway, "WITHOUT_LIKENESS_NATS", math.inf):
        assert found == change_of_maker(segments, Direction.UP, 1460, DECISIVE_NATS)


def test_parts_are_compared_where_one_of_them_may_be_the_same_packets():
    changed, other = _changing(2, 100, set(), {"relay"}), _changing(2, 100, {"relay"}, {"relay"})
    found = change_of_maker(changed, Direction.UP, 1460, DECISIVE_NATS)
    assert found is not None
    assert found.same_first
    cuts = [each.cut_data(Direction.UP, 16, 20, midway.LEAST_ALIKE)[0] for each in (changed, other)]
    assert [bool(each) for each in cuts] == [True, False]


def _changing(seed, count, first, then):
    """Data with one thing done to their first half and another to the rest, laid over those that were emitted."""
    random = np.random.default_rng(seed)
    emitted = emitted_data(random, count)
    is_early = emitted.start < np.median(emitted.start) if count else np.zeros(0, np.bool_)
    halves = (emitted.take(np.flatnonzero(rows)) for rows in (is_early, ~is_early))
    return laid_over(emitted, together(*map(arrived, (random, random), halves, (first, then))))


@settings(deadline=None)
@given(seeds, counts, changes)
def test_acknowledgements_agree_as_in_the_reference(seed, count, how):
    random = np.random.default_rng(seed)
    emitted = emitted_acknowledgements(random, count)
    came = arrived(random, emitted, how)
    if len(came):
        wanted = reference_agreement.compare_acknowledgements(emitted, came)
        assert compared_acknowledgements(emitted, came) == wanted


def test_generated_segments_are_the_same_packets_and_others():
    """Or the comparisons above would compare nothing."""
    random = np.random.default_rng(4)
    emitted = emitted_data(random, 120)
    same = compared_data(emitted, arrived(random, emitted, {"shift", "scale"}))
    assert (same.tsval_shift, same.tsecr_shift) == (4_000_000_000, 77)
    assert same.window_scale_shift == 3
    assert same.fields["ip-id"].nats > 10
    other = compared_data(emitted, arrived(random, emitted, {"relay"}))
    assert other.fields["timestamps"].nats < -10
