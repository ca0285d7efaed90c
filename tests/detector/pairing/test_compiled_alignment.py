"""The compiled comparison of payload, and of packets in common, against their references in NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.pairing import alignment
from detector.streams import payload_fingerprints
from pepscope.captures.packets import Direction
from tests.detector.generated_streams import moved, packets_of, sample_of, stream_of
from tests.detector.pairing import reference_alignment
from tests.detector.streams import reference_fingerprints

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(seeds, st.sampled_from([0, 1, -700, 5000]), st.sampled_from([0, 0, 90, -3]))
def test_payload_agrees_as_in_the_reference(seed, shift, off):
    random = np.random.default_rng(seed)
    stream = stream_of(random)
    left, right = sample_of(random, stream, 0), sample_of(random, stream, shift)
    asked = left, right, shift + off
    assert alignment.compare(*asked) == reference_alignment.compare(*asked)


@settings(deadline=None)
@given(seeds, st.sampled_from([0, 1, -700]), st.sampled_from([5, 256]))
def test_shifts_are_voted_for_as_in_the_reference(seed, shift, most):
    random = np.random.default_rng(seed)
    stream = stream_of(random)
    left, right = sample_of(random, stream, 0), sample_of(random, stream, shift)
    votes = reference_fingerprints.vote(
        payload_fingerprints.gather([left], most), payload_fingerprints.gather([right], most)
    )
    assert payload_fingerprints.voted_shifts(left, right, most, 4) == reference_alignment.voted_shifts(votes, 4)


@settings(deadline=None)
@given(seeds, st.integers(0, 60), st.sampled_from(Direction))
def test_packets_in_common_are_those_of_the_reference(seed, count, direction):
    random = np.random.default_rng(seed)
    left = packets_of(random, count)
    asked = left, moved(random, left, 300), direction
    assert alignment.packet_alignment(*asked) == reference_alignment.packet_alignment(*asked)
