"""Fragments of IP datagrams in anonymised captures: hidden as the datagrams that they make, at the same places."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from detector.detection import detect
from pepscope.captures.capture import open_capture
from pepscope.captures.files.frames import read_frames
from prober.anonymise.capture_rewriting import CaptureRewriter, RewritingCounts
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from tests.captures import containers, layers, scenarios
from tests.captures.containers import Frame
from tests.captures.segments import Segment, address_bytes, ipv4, ipv4_fragments, ipv6_fragments

KEY = SecretKey(b"s" * 32)
VERSIONS = {4: scenarios.plain_download().segments, 6: scenarios.ipv6().segments}
#: The first one does not hold a whole TCP header.
SIZES = [16, 240, 480]


def fragments(segment: Segment) -> list[bytes]:
    return (ipv4_fragments if segment.version == 4 else ipv6_fragments)(segment.packet(), SIZES)


#: How a segment's packet is cut into fragments, and what it is in one piece.
CUTS: dict[str, tuple[Callable[[Segment], list[bytes]], Callable[[Segment], bytes]]] = {
    "plain": (fragments, Segment.packet),
    "outer of a tunnel": (
        lambda segment: ipv4_fragments(layers.gtp_u(segment.packet(), tunnel=0x1234ABCD), SIZES),
        lambda segment: layers.gtp_u(segment.packet(), tunnel=0x1234ABCD),
    ),
    "inner of a tunnel": (
        lambda segment: [layers.vxlan(part, network=0x12AB34) for part in fragments(segment)],
        lambda segment: layers.vxlan(segment.packet(), network=0x12AB34),
    ),
}


def rewritten(frames: list[Frame], directory: Path, name: str = "capture") -> tuple[Path, Path, RewritingCounts]:
    """A capture of these frames, the anonymised one, and what came of its packets."""
    source, target = directory / name, directory / f"{name}-hidden"
    source.write_bytes(containers.write_pcap(frames, containers.LINK_ETHERNET))
    rewriter = CaptureRewriter(KEY, CryptoPan(KEY.derived("addresses")), HeadHider(KEY))
    rewriter.rewrite(source, target)
    return source, target, rewriter.counts


def assert_reads_alike(source: Path, target: Path) -> None:
    """The detector reads the same numbers off both: summaries, packets, warnings, and how much payload it has."""
    before, after = open_capture(str(source)), open_capture(str(target))
    assert after.warnings == before.warnings
    assert [after.counts[name] for name in ("fragments_held", "unfinished_datagrams", "malformed")] == [
        before.counts[name] for name in ("fragments_held", "unfinished_datagrams", "malformed")
    ]
    was, is_now = before.connection_columns(), after.connection_columns()
    for name in was.keys() - {"client_address", "server_address", "tunnel_up", "tunnel_down"}:
        np.testing.assert_array_equal(was[name], is_now[name], name)
    for index in range(len(before.connections)):
        for name in ("time_ns", "sequence_offset", "payload_bytes", "ip_id"):
            one, other = (getattr(capture.packets(index), name).tolist() for capture in (before, after))
            assert one == other, name


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cut", CUTS)
def test_fragments_become_those_of_the_hidden_datagram(cut: str, version: int, last_first: bool, tmp_path: Path):
    pieces, whole = CUTS[cut]
    step = -1 if last_first else 1
    frames = [Frame(s.time_ns, layers.ethernet(part)) for s in VERSIONS[version] for part in pieces(s)[::step]]
    source, target, counts = rewritten(frames, tmp_path)
    assert len(frames) > 2 * len(VERSIONS[version])
    assert (counts.kept, counts.left_out, counts.cut_bytes) == (len(frames), 0, 0)
    assert_reads_alike(source, target)
    in_one_piece = [Frame(s.time_ns, layers.ethernet(whole(s))) for s in VERSIONS[version]]
    _, hidden_whole, _ = rewritten(in_one_piece, tmp_path, "whole")
    made = [frame.datagram for frame in read_frames(str(target)) if frame.datagram is not None]
    assert len(made) == len(in_one_piece)
    for datagram, expected in zip(made, read_frames(str(hidden_whole)), strict=True):
        payload = datagram.frame.data[datagram.payload_start :]
        assert expected.data.endswith(payload)
        assert len(payload) >= 20
    data = target.read_bytes()
    sent = b"".join(segment.payload for segment in VERSIONS[version])
    assert not any(sent[at : at + 8] in data for at in range(len(sent) - 8))
    ends = {address_bytes(end) for s in VERSIONS[version] for end in (s.source, s.destination)}
    assert not [end for end in ends if end in data]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_datagram_of_which_a_fragment_is_missing_keeps_no_payload(version: int, tmp_path: Path):
    whole, lost = VERSIONS[version][:5], VERSIONS[version][5]
    assert len(lost.payload) > 900
    frames = [Frame(s.time_ns, layers.ethernet(part)) for s in whole for part in fragments(s)]
    left = [part for number, part in enumerate(fragments(lost)) if number != 1]
    frames += [Frame(lost.time_ns, layers.ethernet(part)) for part in left]
    source, target, counts = rewritten(frames, tmp_path)
    assert (counts.kept, counts.left_out) == (len(frames), 0)
    assert_reads_alike(source, target)
    assert open_capture(str(target)).counts["unfinished_datagrams"] == 1
    kept = list(read_frames(str(target)))[-len(left) :]
    assert all(frame.fragment is not None and not any(frame.data[frame.headers_end :]) for frame in kept)
    assert [len(frame.data) for frame in kept] == [len(frame.data) for frame in frames[-len(left) :]]
    assert [frame.fragment.offset for frame in kept] == [0, 256, 736]


@pytest.mark.parametrize("snap_bytes", [90, 120, 300])
@pytest.mark.parametrize("version", VERSIONS)
def test_fragments_cut_by_the_snap_length(version: int, snap_bytes: int, tmp_path: Path):
    frames = []
    for segment in VERSIONS[version]:
        cut = ipv4_fragments if version == 4 else ipv6_fragments
        for part in map(layers.ethernet, cut(segment.packet(), [480])):
            frames.append(Frame(segment.time_ns, part[:snap_bytes], original_length=len(part)))
    source, target, counts = rewritten(frames, tmp_path)
    assert (counts.kept, counts.left_out) == (len(frames), 0)
    # What was captured of second fragments is behind a hole; of first ones seven bytes of each have no hash.
    assert counts.cut_bytes > 0
    assert_reads_alike(source, target)
    before, after = (
        [frame.datagram for frame in read_frames(str(path)) if frame.datagram is not None] for path in (source, target)
    )
    kept = [(len(one.frame.data), len(other.frame.data)) for one, other in zip(before, after, strict=True)]
    assert all(captured - 7 <= hidden <= captured for captured, hidden in kept)


def test_headers_keep_what_putting_together_takes(tmp_path: Path):
    frames = [Frame(s.time_ns, layers.ethernet(part)) for s in VERSIONS[6] for part in fragments(s)]
    source, target, _ = rewritten(frames, tmp_path)
    for before, after in zip(read_frames(str(source)), read_frames(str(target)), strict=True):
        end = before.headers_end
        assert after.data[end - 8 : end] == before.data[end - 8 : end]
        assert after.data[14:22] == before.data[14:22]


def test_fragments_of_other_protocols_are_left_out(tmp_path: Path):
    echo = ipv4("10.1.2.3", "192.0.2.1", 1, struct.pack(">BBHHH", 8, 0, 0, 1, 1) + b"SECRET-ECHO-DATA" * 4)
    _, target, counts = rewritten([Frame(1, layers.ethernet(part)) for part in ipv4_fragments(echo, [32])], tmp_path)
    assert (counts.kept, counts.left_out) == (0, 2)
    assert b"SECRET" not in target.read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pair_of_fragmented_captures_keeps_its_verdict(version: int, tmp_path: Path):
    """The client's capture in one piece; the server's behind a link that fragments, 10 ms away."""
    here = VERSIONS[version]
    client = here[0].source
    there = [replace(s, time_ns=s.time_ns + 10_000_000 * (1 if s.source == client else -1)) for s in here]
    whole = [Frame(s.time_ns, layers.ethernet(s.packet())) for s in here]
    cut = [
        Frame(s.time_ns, layers.ethernet(part)) for s in sorted(there, key=lambda s: s.time_ns) for part in fragments(s)
    ]
    (near, near_hidden, _), (far, far_hidden, _) = rewritten(whole, tmp_path, "near"), rewritten(cut, tmp_path, "far")
    (before,), (after,) = (
        detect(str(one), str(other)).pairs for one, other in ((near, far), (near_hidden, far_hidden))
    )
    assert len(before.vantages) == len(after.vantages) == 2
    assert (after.verdict, after.probability, after.pairing_ground) == (
        before.verdict,
        before.probability,
        before.pairing_ground,
    )
    assert [(item.method, item.outcome) for item in after.evidence] == [
        (item.method, item.outcome) for item in before.evidence
    ]
