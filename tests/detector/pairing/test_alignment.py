"""Alignment of the streams of two captures where a middlebox rewrote their beginning."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from detector.detection import detect
from detector.options import DetectOptions
from detector.pairing.captures import pair_captures
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.errors import UsageError
from tests.captures import containers
from tests.captures.containers import Frame
from tests.captures.conversation import Conversation, Endpoint

SEGMENT_BYTES = 1440
REQUEST = b"GET /picture HTTP/1.1\r\nHost: server.example\r\n\r\n"


def mosaic(length: int, seed: int = 5) -> bytes:
    """A few pieces over and over in any order, as pictures made of ready-made squares."""
    chance = random.Random(seed)
    pieces = [chance.randbytes(90) for _ in range(6)]
    return b"".join(chance.choice(pieces) for _ in range(length // 90 + 1))[:length]


def nearly_repeated(segments: int, seed: int = 7) -> tuple[bytes, bytes]:
    """A stream in two halves; of every five segments the second half has two at the same places as the first."""
    chance = random.Random(seed)
    first = [chance.randbytes(SEGMENT_BYTES) for _ in range(segments)]
    second = [piece if number % 5 < 2 else chance.randbytes(SEGMENT_BYTES) for number, piece in enumerate(first)]
    return b"".join(first), b"".join(second)


def capture(
    path: Path,
    head: bytes,
    body: bytes,
    *,
    segment: int,
    client: str,
    closed: bool = True,
    larger_from: int | None = None,
    seen_from: int = 0,
    copies: int = 1,
    ip_ids: random.Random | None = None,
):
    """A download as captured: from byte `larger_from` in segments seven times as large, as offloads make them, and from
    byte `seen_from` of the answer on, each packet so many times; with `ip_ids` without timestamps, and with
    IP IDs of 11 bits that it draws.
    """
    stamped = ip_ids is None
    talk = Conversation(
        Endpoint(client, 40_000, len(head), timestamps=stamped),
        Endpoint("192.0.2.80", 80, 7 * len(head), timestamps=stamped),
    ).handshake(20)
    talk.send(Direction.UP, 0, 0, REQUEST)
    content = head + body
    offset, unseen = 0, 0
    while offset < len(content):
        if offset < seen_from:
            unseen = len(talk.segments) + 2
        length = segment if larger_from is None or offset < larger_from else 7 * segment
        talk.wait(1).send(Direction.DOWN, offset, len(REQUEST), content[offset : offset + length])
        offset += length
        talk.wait(1).send(Direction.UP, len(REQUEST), min(offset, len(content)))
    if closed:
        talk.close(len(REQUEST), len(content))
    frames = [
        Frame(item.time_ns, _identified(item.packet(), ip_ids))
        for item in talk.segments[unseen:]
        for _ in range(copies)
    ]
    path.write_bytes(containers.write_pcap(frames, containers.LINK_RAW, snap_length=160))
    return open_capture(str(path))


def _identified(packet: bytes, ip_ids: random.Random | None) -> bytes:
    return packet if ip_ids is None else packet[:4] + ip_ids.randrange(1 << 11).to_bytes(2, "big") + packet[6:]


@pytest.mark.parametrize("closed", [True, False])
def test_a_rewritten_head_before_repetitive_content(tmp_path: Path, closed: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"
    body = mosaic(200_000)
    longer = head[:-2] + b"Via: 1.1 somebody\r\n\r\n"
    server = capture(tmp_path / "server", head, body, segment=1460, client="198.51.100.1", closed=closed)
    mobile = capture(tmp_path / "mobile", longer, body, segment=1400, client="10.0.0.1", closed=closed)
    (pair,) = pair_captures(mobile, server, DetectOptions(first_at_client=True))
    down = pair.alignment[Direction.DOWN]
    assert down.shift_bytes == len(head) - len(longer)
    assert down.matched > 0.9
    assert down.compared > 5


def test_a_shift_that_most_pieces_contradict_is_none(tmp_path: Path) -> None:
    """However many of a late capture's pieces agree with an earlier part of the stream."""
    first, second = nearly_repeated(70)
    body, half = first + second, len(first)
    mobile = capture(tmp_path / "mobile", b"", body, segment=SEGMENT_BYTES, client="10.0.0.1", larger_from=half)
    server = capture(tmp_path / "server", b"", body, segment=SEGMENT_BYTES, client="10.0.0.1", seen_from=half)
    (pair,) = pair_captures(mobile, server, DetectOptions(first_at_client=True))
    assert pair.alignment[Direction.DOWN].shift_bytes == -half
    assert pair.alignment[Direction.DOWN].matched > 0.9
    (judged,) = detect(str(tmp_path / "mobile"), str(tmp_path / "server")).pairs
    assert "other-bytes" not in {item.finding for item in judged.evidence}


@pytest.mark.parametrize("copies", [1, 2])
def test_packets_lay_late_captures_over_each_other_where_content_is_monotonous(tmp_path: Path, copies: int) -> None:
    body = b"\0" * 70 * SEGMENT_BYTES
    mobile = capture(tmp_path / "mobile", b"", body, segment=SEGMENT_BYTES, client="10.0.0.1", copies=copies)
    server = capture(
        tmp_path / "server", b"", body, segment=SEGMENT_BYTES, client="10.0.0.1", seen_from=35 * SEGMENT_BYTES
    )
    (pair,) = pair_captures(mobile, server, DetectOptions(first_at_client=True))
    assert pair.alignment[Direction.DOWN].shift_bytes == -35 * SEGMENT_BYTES


@pytest.mark.parametrize("seed", range(4))
def test_a_packet_or_two_that_look_alike_by_chance_lay_nothing(tmp_path: Path, seed: int) -> None:
    body = b"\0" * 70 * SEGMENT_BYTES
    ids = random.Random(seed)
    mobile, server = (
        capture(
            tmp_path / place,
            b"",
            body,
            segment=SEGMENT_BYTES,
            client="10.0.0.1",
            seen_from=late * SEGMENT_BYTES,
            ip_ids=ids,
        )
        for place, late in (("mobile", 20), ("server", 35))
    )
    for pair in pair_captures(mobile, server, DetectOptions(first_at_client=True)):
        assert pair.alignment[Direction.DOWN].compared == 0


def test_other_content_of_another_size_stays_unaligned(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    chance = random.Random(9)
    server = capture(tmp_path / "server", head, chance.randbytes(150_000), segment=1460, client="10.0.0.1")
    mobile = capture(tmp_path / "mobile", head, chance.randbytes(120_000), segment=1460, client="10.0.0.1")
    (pair,) = pair_captures(mobile, server, DetectOptions(first_at_client=True))
    assert pair.alignment[Direction.DOWN].matched < 0.1


@pytest.mark.parametrize("first_at_client", [True, False])
def test_where_a_capture_was_taken_need_not_be_found_out(tmp_path: Path, first_at_client: bool) -> None:
    one = capture(tmp_path / "one", b"", b"x" * 3000, segment=1460, client="10.0.0.1")
    two = capture(tmp_path / "two", b"", b"x" * 3000, segment=1460, client="10.0.0.1")
    options = DetectOptions(first_at_client=first_at_client)
    (pair,) = pair_captures(one, two, options)
    assert [vantage.capture for vantage in pair.vantages] == [
        capture.path for capture in ((one, two) if first_at_client else (two, one))
    ]
    (alone,) = pair_captures(one, None, options)
    assert (alone.client_side is not None) == first_at_client


def test_a_capture_is_taken_at_an_end(tmp_path: Path) -> None:
    path = tmp_path / "one"
    capture(path, b"", b"x" * 3000, segment=1460, client="10.0.0.1")
    with pytest.raises(UsageError, match="taken_at must be one of client, server, got 'router'"):
        detect(str(path), taken_at="router")
    for taken_at in ("server", "client"):
        assert [group.side.value for group in detect(str(path), taken_at=taken_at).groups] == [taken_at]
