"""Legs of which one is encrypted: paired where the user vouches and nothing else fits, and named where not."""

from __future__ import annotations

import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pepscope
from detector.other_transport.encrypted_legs import Guise, guise
from pepscope.captures.packets import PayloadSample
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import DetectionResult, Mechanism, Verdict
from reports.detection.page import page_text
from tests.captures.containers import Frame
from tests.captures.conversation import Endpoint
from tests.captures.encrypted_leg import leg, packet_tunnel, stream_tunnel, tls
from tests.captures.udp_leg import REQUEST, capture_bytes, response

PROXY, ORIGIN = Endpoint("203.0.113.1", 8443, 77_000), Endpoint("203.0.113.80", 80, 88_000)


def mobile(number: int) -> Endpoint:
    return Endpoint("10.1.2.3", 40_000 + number, 1_000_000 + number)


def upstream(number: int) -> Endpoint:
    return Endpoint("203.0.113.1", 51_000 + number, 2_000_000 + number)


def plain_leg(number: int, size: int, start_s: float) -> list[Frame]:
    return leg(upstream(number), ORIGIN, REQUEST, response(size, number), start_s=start_s + 0.07, round_trip_ms=15)


def tls_leg(number: int, size: int, start_s: float) -> list[Frame]:
    up, down = tls(REQUEST, number, handshake_bytes=517), tls(response(size, number), 99 + number, handshake_bytes=2600)
    return leg(mobile(number), PROXY, up, down, start_s=start_s)


def detected(
    folder: Path, near: list[list[Frame]], far: list[list[Frame]], same_transfers: bool = False
) -> DetectionResult:
    paths = [folder / "mobile.pcap", folder / "server.pcap"]
    for path, legs in zip(paths, (near, far), strict=True):
        path.write_bytes(capture_bytes(*legs))
    return pepscope.detect(str(paths[0]), str(paths[1]), same_transfers=same_transfers)


def legs_of(sizes: list[int], gap_s: float) -> tuple[list[list[Frame]], list[list[Frame]]]:
    made = [(number, size, number * gap_s) for number, size in enumerate(sizes)]
    return [tls_leg(*each) for each in made], [plain_leg(*each) for each in made]


def test_tls_terminated_by_a_middlebox_is_a_split_with_same_transfers(tmp_path: Path) -> None:
    result = detected(tmp_path, *legs_of([300_000, 60_000, 6_000], 3.0), same_transfers=True)
    assert [pair.verdict for pair in result.pairs] == [Verdict.SPLIT_TCP] * 3
    assert {pair.mechanism for pair in result.pairs} == {Mechanism.TLS_INTERCEPTION}
    assert all(pair.probability[Verdict.REGULAR] > 0.001 for pair in result.pairs)  # no surer than a pairing by shape
    for number, pair in enumerate(result.pairs):
        assert [vantage.client for vantage in pair.vantages] == [mobile_name(number), upstream_name(number)]
    (group,) = result.groups
    assert (group.verdict, group.mechanism, len(group.pairs)) == (Verdict.SPLIT_TCP, Mechanism.TLS_INTERCEPTION, 3)
    jsonschema.validate(result.to_dict(), load_schema("detect-2"))
    assert "TLS ends there" in page_text(result)


def mobile_name(number: int) -> str:
    return f"10.1.2.3:{40_000 + number}"


def upstream_name(number: int) -> str:
    return f"203.0.113.1:{51_000 + number}"


def test_without_the_users_word_the_candidate_is_named(tmp_path: Path) -> None:
    result = detected(tmp_path, *legs_of([300_000], 3.0))
    assert [pair.verdict for pair in result.pairs] == [Verdict.INCONCLUSIVE] * 2
    near, far = sorted(result.pairs, key=lambda pair: pair.vantages[0].capture)
    assert f"{upstream_name(0)} to 203.0.113.80:80 is not encrypted" in near.reason
    assert f"{mobile_name(0)} to 203.0.113.1:8443 is TLS" in far.reason
    assert all("--same-transfers" in pair.reason for pair in result.pairs)


def test_a_tunnel_of_streams_is_distinguished_from_tls(tmp_path: Path) -> None:
    up, down = stream_tunnel(REQUEST, 5), stream_tunnel(response(300_000), 6)
    near = leg(mobile(0), PROXY, up, down)
    (pair,) = detected(tmp_path, [near], [plain_leg(0, 300_000, 0.0)], same_transfers=True).pairs
    assert (pair.verdict, pair.mechanism) == (Verdict.SPLIT_TCP, Mechanism.TUNNEL)


def test_equal_transfers_in_sequence_are_distinguished_by_time(tmp_path: Path) -> None:
    result = detected(tmp_path, *legs_of([80_000] * 5, 2.0), same_transfers=True)
    assert [len(pair.vantages) for pair in result.pairs] == [2] * 5
    for number, pair in enumerate(result.pairs):
        assert pair.vantages[1].client == upstream_name(number)


def test_equal_transfers_at_once_are_not_paired(tmp_path: Path) -> None:
    result = detected(tmp_path, *legs_of([80_000] * 3, 0.05), same_transfers=True)
    assert [len(pair.vantages) for pair in result.pairs] == [1] * 6
    assert all("2 others fit as well" in pair.reason for pair in result.pairs)


def test_small_transfers_alone_have_no_shape(tmp_path: Path) -> None:
    result = detected(tmp_path, *legs_of([2_000, 900], 3.0), same_transfers=True)
    assert [pair.verdict for pair in result.pairs] == [Verdict.INCONCLUSIVE] * 4


def test_a_tunnel_of_whole_packets_is_no_leg(tmp_path: Path) -> None:
    answer = response(60_000)
    segments = -(-len(answer) // 1400)
    up = packet_tunnel(4 + segments // 2, REQUEST, 5)
    near = leg(mobile(0), PROXY, up, packet_tunnel(3 + segments, answer, 6))
    result = detected(tmp_path, [near], [plain_leg(0, 60_000, 0.0)], same_transfers=True)
    assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    "other",
    [
        lambda: plain_leg(0, 300_000, 3600.0),  # at another time
        lambda: plain_leg(0, 280_000, 0.0),  # of another size
        lambda: plain_leg(0, 306_000, 0.0),  # larger than what is to carry it
        lambda: leg(
            upstream(0), ORIGIN, tls(REQUEST, 8, handshake_bytes=500), tls(response(299_000), 9, handshake_bytes=2500)
        ),
    ],
    ids=["time", "smaller", "larger", "both-tls"],
)
def test_other_shapes_are_no_legs(tmp_path: Path, other) -> None:
    result = detected(tmp_path, [tls_leg(0, 300_000, 0.0)], [other()], same_transfers=True)
    assert [len(pair.vantages) for pair in result.pairs] == [1, 1]
    assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}


def test_order_of_the_captures_does_not_matter(tmp_path: Path) -> None:
    near, far = legs_of([300_000, 60_000, 6_000], 3.0)
    one = detected(tmp_path, near, far, same_transfers=True)
    other = detected(tmp_path, far, near, same_transfers=True)
    names = [[(vantage.client, vantage.server) for vantage in pair.vantages] for pair in one.pairs]
    assert [[(vantage.client, vantage.server) for vantage in pair.vantages] for pair in other.pairs] == names


def sample(*pieces: bytes) -> PayloadSample:
    offsets = np.cumsum([0, *map(len, pieces[:-1])]) if pieces else np.zeros(0)
    return PayloadSample(offsets.astype(np.int64), pieces)


@given(st.binary(min_size=64, max_size=200), st.integers(0, 4), st.sampled_from((0x16, 0x17)))
def test_records_of_tls_are_known_whatever_they_hold(content: bytes, minor: int, kind: int) -> None:
    assert guise(sample(bytes((kind, 3, minor)) + content)) is Guise.TLS


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=8, max_size=300))
def test_text_is_never_taken_for_something_encrypted(text: str) -> None:
    assert guise(sample(text.encode())) is Guise.PLAIN


@given(st.integers(0, 2**32))
def test_random_bytes_look_random_in_pieces_too(seed: int) -> None:
    noise = random.Random(seed).randbytes(80).replace(b"\x16\x03", b"\x17\x17")
    assert guise(sample(noise[:30], noise[30:])) is Guise.RANDOM


@pytest.mark.parametrize("pieces", [(), (b"\x00\x01",), (bytes(range(40)),)])
def test_too_little_looks_like_nothing(pieces: tuple[bytes, ...]) -> None:
    assert guise(sample(*pieces)) is Guise.UNKNOWN
