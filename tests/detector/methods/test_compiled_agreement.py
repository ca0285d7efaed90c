"""The compiled counts of agreeing fields against their NumPy reference, on generated segments."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.methods.identity.agreement import compare_acknowledgements, compare_data, compare_parts_of_data
from detector.methods.identity.segments import Segments
from tests.detector.methods import reference_agreement

WRAP = 1 << 32
NOTHING = np.zeros(0, np.int64)

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(0, 120)
#: What a relay, a firewall, a capture and a receiving host do: other packets, stamps shifted, windows scaled, stamps or
#: identifications taken away, segments joined, stamps cut off by the snap length.
changes = st.sets(st.sampled_from(("relay", "shift", "scale", "strip", "zero-id", "join", "cut", "hop")))


def emitted_data(random: np.random.Generator, count: int) -> Segments:
    """Data in order, a tenth of it sent again, and now and then with another PSH or acknowledgement."""
    length = random.choice([1448, 1448, 1448, 700, 1], count)
    data = _segments(random, np.cumsum(length) - length, length)
    again = np.flatnonzero(random.random(count) < 0.1)
    later = data.take(again)
    return together(
        data,
        later.replaced(
            first_copy=np.zeros(len(again), np.bool_),
            tsval=later.tsval + random.integers(0, 3, len(again)),
            push=random.random(len(again)) < 0.5,
            acknowledgement=later.acknowledgement + random.integers(0, 2, len(again)),
        ),
    )


def emitted_acknowledgements(random: np.random.Generator, count: int) -> Segments:
    """Pure acknowledgements with runs of duplicates."""
    plain = _segments(random, np.zeros(count, np.int64), np.zeros(count, np.int64))
    return plain.replaced(acknowledgement=np.cumsum(random.integers(0, 3, count)) * 1448)


def arrived(random: np.random.Generator, emitted: Segments, how: set[str]) -> Segments:
    """What the other capture shows of these segments: some are lost, some disordered."""
    order = np.argsort(np.arange(len(emitted)) + random.choice([0, 0, 0, 3], len(emitted)), kind="stable")
    came = emitted.take(order[random.random(len(emitted)) < 0.9])
    count = len(came)
    if "relay" in how:
        other = _segments(random, came.start, came.length)
        came = other.replaced(acknowledgement=came.acknowledgement, push=came.push)
    if "shift" in how:
        came = came.replaced(tsval=(came.tsval + 4_000_000_000) % WRAP, tsecr=(came.tsecr + 77) % WRAP)
    if "scale" in how:
        came = came.replaced(window=came.window >> 3)
    if "strip" in how:
        gone = random.random(count) < 0.5
        kept = np.where(gone, 0, 1)
        came = came.replaced(has_timestamps=came.has_timestamps & ~gone, tsval=came.tsval * kept)
    if "zero-id" in how:
        came = came.replaced(ip_id=np.zeros(count, np.int64))
    if "join" in how:
        came = came.replaced(length=came.length * random.choice([1, 2], count))
    if "cut" in how:
        came = came.replaced(stamps_captured=random.random(count) < 0.5)
    if "hop" in how:
        came = came.replaced(ttl=came.ttl - 1)
    return came


def together(*parts: Segments) -> Segments:
    columns = (*Segments.NUMBERS, *Segments.FLAGS)
    return Segments.of(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns})


def _segments(random: np.random.Generator, start: np.ndarray, length: np.ndarray) -> Segments:
    count = len(start)
    return Segments.of(
        start=start,
        length=length,
        acknowledgement=np.cumsum(random.integers(0, 2, count)) * 100,
        window=random.choice([0, 512, 64_256, 65_536, 1 << 20], count),
        push=random.random(count) < 0.3,
        first_copy=np.ones(count, np.bool_),
        has_timestamps=np.full(count, bool(random.integers(0, 4))),
        stamps_captured=np.ones(count, np.bool_),
        tsval=(int(random.integers(WRAP)) + np.cumsum(random.integers(0, 3, count))) % WRAP,
        tsecr=(int(random.integers(WRAP)) + np.cumsum(random.integers(0, 2, count))) % WRAP,
        ip_id=(int(random.integers(1 << 16)) + np.arange(count)) % (1 << 16),
        ttl=np.full(count, 64),
    )


@settings(deadline=None)
@given(seeds, counts, changes, st.sampled_from([1460, 1000]), st.sampled_from([0.0, 0.1]))
def test_data_agree_as_in_the_reference(seed, count, how, largest_payload, lost_share):
    random = np.random.default_rng(seed)
    emitted = emitted_data(random, count)
    came = arrived(random, emitted, how)
    asked = (emitted, came, largest_payload, lost_share)
    assert compare_data(*asked) == reference_agreement.compare_data(*asked)


@settings(deadline=None)
@given(seeds, counts, changes, st.lists(st.integers(0, 200), min_size=2, max_size=6))
def test_parts_of_the_data_agree_as_if_alone(seed, count, how, places):
    random = np.random.default_rng(seed)
    emitted = emitted_data(random, count)
    came = arrived(random, emitted, how)
    cuts = sorted(min(place, len(came)) for place in places)
    parts = list(itertools.pairwise(cuts))
    alone = [reference_agreement.compare_data(emitted, came.take(np.arange(*part)), 1460) for part in parts]
    assert compare_parts_of_data(emitted, came, parts, 1460) == alone


@settings(deadline=None)
@given(seeds, counts, changes)
def test_acknowledgements_agree_as_in_the_reference(seed, count, how):
    random = np.random.default_rng(seed)
    emitted = emitted_acknowledgements(random, count)
    came = arrived(random, emitted, how)
    everything = np.array([-1, 1 << 40])
    found = compare_acknowledgements(emitted, came, 0.0, NOTHING, (NOTHING, NOTHING), everything)
    wanted = reference_agreement.compare_acknowledgements(emitted, came)
    if len(came):
        assert found == wanted


def test_generated_segments_are_the_same_packets_and_others():
    """Or the comparisons above would compare nothing."""
    random = np.random.default_rng(4)
    emitted = emitted_data(random, 120)
    same = compare_data(emitted, arrived(random, emitted, {"shift", "scale"}), 1460)
    assert (same.tsval_shift, same.tsecr_shift) == (4_000_000_000, 77)
    assert same.window_scale_shift == 3
    assert same.fields["ip-id"].nats > 10
    other = compare_data(emitted, arrived(random, emitted, {"relay"}), 1460)
    assert other.fields["timestamps"].nats < -10
