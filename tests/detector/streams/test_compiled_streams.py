"""Compiled ends of flows, payload samples and fingerprints against their references in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.streams import payload_fingerprints
from detector.streams.known import UNKNOWN
from detector.streams.payload_fingerprints import Votes
from pepscope import _core
from pepscope.captures.packets import Direction, PayloadSample
from tests.detector.generated_streams import packets_of, sample_of, stream_of
from tests.detector.streams import (
    reference_fingerprints,
    reference_flow_ends,
    reference_payload,
)

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(seeds, st.integers(0, 40), st.sampled_from(Direction))
def test_ends_of_flows_are_those_of_the_reference(seed, count, direction):
    random = np.random.default_rng(seed)
    near, far = packets_of(random, count), packets_of(random, count)
    left, came = (near, far) if direction is Direction.UP else (far, near)
    found = {name: column[direction, 0] for name, column in _core.openings([near], [far]).items()}
    for end, packets in (("left", left), ("arrived", came)):
        one = reference_flow_ends.opening(packets, direction)
        held = (one.copies, one.ttl, min(one.windows), max(one.ecn)) if one else (0, 0, 0, 0)
        assert tuple(found[f"{name}_{end}"] for name in ("copies", "ttl", "window", "ecn")) == held
    fin = reference_flow_ends.fin_offset(near, direction)
    assert _core.fin_offsets([near])[direction, 0] == (UNKNOWN if fin is None else fin)


@settings(deadline=None)
@given(seeds, st.sampled_from([0, -3, 1 << 40]))
def test_samples_tell_what_the_reference_reads(seed, start):
    random = np.random.default_rng(seed)
    sample = sample_of(random, stream_of(random), start)
    assert sample.opening == reference_payload.opening(sample)
    assert sample.is_one_byte_repeated == reference_payload.is_blanked(sample)
    for distinct in (1, 2, 6, 100):
        assert (sample.most_distinct_bytes >= distinct) == reference_payload.varies(sample, distinct)
    again = PayloadSample(sample.offsets, sample.pieces)
    np.testing.assert_array_equal(again.offsets, sample.offsets)
    assert (again.pieces, len(again)) == (sample.pieces, len(sample.pieces))
    assert sample.captured_bytes == sum(map(len, sample.pieces))


def test_as_many_offsets_as_pieces_make_a_sample():
    with pytest.raises(ValueError, match="differ in number"):
        PayloadSample([0, 1], [b"a"])


@settings(deadline=None)
@given(seeds, st.sampled_from([3, 256, 1 << 20]))
def test_fingerprints_are_those_of_the_reference(seed, most):
    random = np.random.default_rng(seed)
    sample = sample_of(random, stream_of(random), int(random.integers(-10, 1000)))
    for found, wanted in (
        (payload_fingerprints.all_fingerprints(sample), reference_fingerprints.all_fingerprints(sample)),
        (
            payload_fingerprints.stream_fingerprints(sample, most),
            reference_fingerprints.stream_fingerprints(sample, most),
        ),
    ):
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


@settings(deadline=None, max_examples=50)
@given(seeds)
def test_votes_are_those_of_the_reference(seed):
    random = np.random.default_rng(seed)
    streams = [stream_of(random) for _ in range(3)]
    left, right = (
        payload_fingerprints.gather([sample_of(random, stream, int(random.integers(0, 900))) for stream in made])
        for made in (streams, [streams[1], streams[0], streams[1]])
    )
    found, wanted = payload_fingerprints.vote(left, right), reference_fingerprints.vote(left, right)
    for name in Votes.__struct_fields__:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), strict=True)


@settings(deadline=None)
@given(seeds, st.integers(1, 30))
def test_hashes_in_many_pairs_of_streams_have_no_vote(seed, common_pairs):
    random = np.random.default_rng(seed)
    left, right = (
        payload_fingerprints.Fingerprints(
            random.integers(0, 6, count, np.uint64), random.integers(0, 3, count), random.integers(-9, 9, count)
        )
        for count in random.integers(0, 20, 2).tolist()
    )
    votes = Votes(*_core.vote(left, right, common_pairs, 4))
    pairs = [
        (int(left.stream[one]), int(right.stream[two]), int(left.offset[one] - right.offset[two]))
        for one in range(len(left.value))
        for two in range(len(right.value))
        if left.value[one] == right.value[two]
        and np.sum(left.value == left.value[one]) * np.sum(right.value == left.value[one]) <= common_pairs
    ]
    rows = list(zip(votes.left.tolist(), votes.right.tolist(), votes.shift.tolist(), strict=True))
    assert rows == sorted(set(pairs))
    assert votes.count.tolist() == [pairs.count(row) for row in rows]
