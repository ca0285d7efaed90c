"""Detections drawn at random: every kind of value that a result may hold."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    GroupResult,
    GroupSide,
    Mechanism,
    Outcome,
    PairResult,
    SplitPlace,
    Stretch,
    VantageName,
    Verdict,
)

COUNTS = st.integers(0, 2**40)
SHARES = st.floats(0.0, 1.0)
SENTENCES = st.text(min_size=1, max_size=40)
KEYS = st.sampled_from(["slack_s", "segments", "direction", "e-10", "ü", 'quo"te'])
NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=8),
    st.integers(-9, 9).map(np.int64),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(np.float32),
)
EVIDENCE = st.builds(
    Evidence,
    method=st.sampled_from(["identity", "ack_timing", "content"]),
    outcome=st.sampled_from(Outcome),
    finding=st.sampled_from(["same-packets", "acks-before-data", "too-short"]),
    strength=SHARES,
    summary=SENTENCES,
    numbers=st.dictionaries(KEYS, NUMBERS, max_size=4),
    caveats=st.lists(SENTENCES, max_size=2).map(tuple),
)
VANTAGES = st.builds(
    VantageName,
    capture=st.sampled_from(["a.pcap", "b.pcap", "é/ö.pcap", "\udce9.pcap"]),
    client=st.sampled_from(["192.0.2.1:1024", "[2001:db8::1]:80"]),
    server=st.sampled_from(["203.0.113.1:443", "[2001:db8::2]:443"]),
    transport=st.sampled_from(["tcp", "udp"]),
)
PROBABILITIES = st.tuples(SHARES, SHARES).map(
    lambda shares: {
        Verdict.REGULAR: 1 - shares[0],
        Verdict.SPLIT_TCP: shares[0] * shares[1],
        Verdict.TCP_PROXY: shares[0] * (1 - shares[1]),
    }
)
HOPS = st.none() | st.integers(0, 255)
TIMES = st.none() | st.floats(0, 1e6)
PAIRS = st.builds(
    PairResult,
    vantages=st.lists(VANTAGES, min_size=1, max_size=2).map(tuple),
    verdict=st.sampled_from(Verdict),
    probability=PROBABILITIES | st.just({}),
    reason=SENTENCES,
    evidence=st.lists(EVIDENCE, max_size=4).map(tuple),
    packets=COUNTS,
    payload_bytes_up=COUNTS,
    payload_bytes_down=COUNTS,
    duration_s=st.floats(0, 1e9),
    pairing_confidence=SHARES,
    pairing_ground=st.sampled_from(["", "same packets"]),
    mechanism=st.none() | st.sampled_from(Mechanism),
    started_ns=st.none() | st.integers(0, 2**62),
    stretch=st.none() | st.builds(Stretch, st.booleans(), HOPS, HOPS, TIMES, TIMES, HOPS, TIMES),
)
GROUPS = st.builds(
    GroupResult,
    side=st.sampled_from(GroupSide),
    network=st.sampled_from(["192.0.2.0/24", "2001:db8::/48"]),
    port=st.integers(0, 65535),
    hosts=st.just(("203.0.113.1",)),
    pairs=st.lists(COUNTS, min_size=1, max_size=3).map(tuple),
    exchanges=st.none() | COUNTS,
    verdict=st.sampled_from(Verdict),
    probability=PROBABILITIES,
    mechanism=st.none() | st.sampled_from(Mechanism),
    where=st.none() | st.sampled_from(SplitPlace),
    near_round_trip_s=TIMES,
    hidden_round_trip_s=TIMES,
    hidden_round_trip_interval_s=st.none() | st.tuples(st.floats(0, 1), st.floats(1, 2)),
    reason=SENTENCES,
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
)
CAPTURES = st.builds(
    CaptureSummary, st.sampled_from(["a.pcap", "ü", "-"]), COUNTS, COUNTS, st.lists(SENTENCES, max_size=2).map(tuple)
)
DETECTIONS = st.builds(
    DetectionResult,
    captures=st.lists(CAPTURES, min_size=1, max_size=2).map(tuple),
    pairs=st.lists(PAIRS, max_size=5).map(tuple),
    groups=st.lists(GROUPS, max_size=3).map(tuple),
)


def comparable(pair: PairResult) -> object:
    """The pair with figures as they are written: NumPy's as Python's, and NaN equal to itself."""
    figures = [[(name, _plain(number)) for name, number in item.numbers.items()] for item in pair.evidence]
    others = [
        (item.method, item.outcome, item.finding, item.strength, item.summary, item.caveats) for item in pair.evidence
    ]
    return (
        pair.vantages, pair.verdict, pair.probability, pair.reason, figures, others, pair.packets,
        pair.payload_bytes_up, pair.payload_bytes_down, pair.duration_s, pair.pairing_confidence, pair.pairing_ground,
        pair.mechanism, pair.started_ns, pair.stretch, pair.series,
    )  # fmt: skip


def _plain(number: object) -> object:
    value = number.item() if isinstance(number, np.generic) else number
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return type(value).__name__, value
