"""The same initial sequence numbers at another time: captures that a tool made, or one transfer and a wrong clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pepscope
from detector.pairing.match import Ground
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import PairResult, Verdict
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS, Conversation, Endpoint, stream

SECOND = 1_000_000_000
TRANSFER_BYTES = 240_000
HOUR_NS = 3_600 * SECOND


def upload(segment_bytes: int, start_ns: int = START_NS) -> Conversation:
    """One long line, as a script writes it: round numbers, the same every time."""
    client = Endpoint("10.0.0.1", 40_002, 1000, timestamps=False)
    server = Endpoint("10.0.0.2", 514, 8000, timestamps=False)
    talk = Conversation(client, server, start_ns).handshake(1)
    for offset in range(0, TRANSFER_BYTES, segment_bytes):
        size = min(segment_bytes, TRANSFER_BYTES - offset)
        talk.send(Direction.UP, offset, 0, stream(offset, size), TcpFlag.PSH).wait(0.2)
    return talk.send(Direction.DOWN, 0, TRANSFER_BYTES).close(TRANSFER_BYTES, 0)


def delayed(talk: Conversation, behind_ns: int) -> list[Frame]:
    """What arrives at the server 20 ms away, by a clock that is behind."""
    ways = zip(talk.segments, talk.directions, strict=True)
    late = {Direction.UP: 20_000_000 - behind_ns, Direction.DOWN: -20_000_000 - behind_ns}
    moved = [replace(one, time_ns=one.time_ns + late[way], ttl=61 if way is Direction.UP else 64) for one, way in ways]
    return [Frame(one.time_ns, one.packet()) for one in sorted(moved, key=lambda one: one.time_ns)]


def judged(tmp_path: Path, near: list[Frame], far: list[Frame]) -> PairResult:
    for name, frames in (("near", near), ("far", far)):
        (tmp_path / f"{name}.pcap").write_bytes(write_pcap(frames, LINK_RAW))
    (pair,) = pepscope.detect(str(tmp_path / "near.pcap"), str(tmp_path / "far.pcap")).pairs
    return pair


def frames(talk: Conversation) -> list[Frame]:
    return [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]


def test_two_runs_of_a_script_that_makes_captures_are_not_judged(tmp_path: Path) -> None:
    pair = judged(tmp_path, frames(upload(1200)), frames(upload(1000, START_NS + 576 * SECOND)))
    assert pair.pairing_ground == Ground.SEQUENCE_NUMBERS_OTHER_TIME
    assert pair.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("behind_ns", [0, HOUR_NS, -HOUR_NS])
def test_the_same_packets_are_one_transfer_at_any_clock_offset(tmp_path: Path, behind_ns: int) -> None:
    talk = upload(1200)
    pair = judged(tmp_path, frames(talk), delayed(talk, behind_ns))
    assert (pair.pairing_ground == Ground.SEQUENCE_NUMBERS) is (behind_ns == 0)
    assert "The segments that arrive are the segments that left" in pair.reason
    assert pair.probability[Verdict.REGULAR] > 0.9
