"""Random conversations: our reader gives back the generator's truth, and a cut file gives back its prefix."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT
from pepscope.errors import CaptureError
from tests.captures import containers, layers
from tests.captures.containers import Compression, Interface
from tests.captures.conversation import Conversation
from tests.captures.scenarios import SCENARIOS
from tests.captures.strategies import conversations
from tests.oracles.columns import assert_same_packets
from tests.oracles.truth import frames_of, truth_rows, written

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEGMENTS = SCENARIOS["loss_before_the_capture"]().segments
FRAMES = frames_of(SEGMENTS, layers.ethernet)
FILES = {
    "pcap": containers.write_pcap(FRAMES, 1),
    "pcapng": containers.write_pcapng(FRAMES, [Interface(1, 9)], unknown_blocks=True),
}
WRAPPED = {
    (kind, compression): containers.compress(data, compression)
    for kind, data in FILES.items()
    for compression in Compression
}


@BOUNDED
@given(conversations())
def test_packets_and_offsets(talk: Conversation) -> None:
    with tempfile.TemporaryDirectory() as directory:
        capture = open_capture(str(written(Path(directory) / "capture", talk.segments)))
        assert_same_packets(capture, truth_rows(talk.segments))
        columns = capture.packets(0)
    np.testing.assert_array_equal(columns.sequence_offset, talk.sequence_offsets)
    wanted = [NO_ACKNOWLEDGEMENT if offset is None else offset for offset in talk.acknowledgement_offsets]
    np.testing.assert_array_equal(columns.acknowledgement_offset, wanted)


@BOUNDED
@given(conversations(with_syn=False).filter(lambda talk: len(talk.segments) > 0))
def test_packets_without_syn(talk: Conversation) -> None:
    with tempfile.TemporaryDirectory() as directory:
        capture = open_capture(str(written(Path(directory) / "capture", talk.segments)))
        assert_same_packets(capture, truth_rows(talk.segments))
        assert capture.connections[0].side_guessed


@BOUNDED
@given(st.sampled_from(sorted(WRAPPED)), st.data())
def test_a_truncated_file_gives_its_prefix_and_a_warning(which: tuple[str, Compression], data: st.DataObject) -> None:
    whole = WRAPPED[which]
    length = data.draw(st.integers(0, len(whole) - 1))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "capture"
        path.write_bytes(whole[:length])
        try:
            capture = open_capture(str(path))
        except CaptureError as error:
            _assert_one_sentence(str(error))
            return
        rows = truth_rows(SEGMENTS[: capture.tcp_packet_count])
        assert_same_packets(capture, rows)
    if which[1] is Compression.NONE:
        assert capture.tcp_packet_count == _whole_records(which[0], length)
    if length not in _boundaries(which):
        assert capture.warnings
        _assert_one_sentence(capture.warnings[0])


def _assert_one_sentence(text: str) -> None:
    assert text
    assert "\n" not in text
    assert "Traceback" not in text


def _records(kind: str) -> list[tuple[int, bool]]:
    """Where each record or block ends, and whether it is a packet."""
    data = FILES[kind]
    if kind == "pcap":
        ends, position = [(24, False)], 24
        for frame in FRAMES:
            position += 16 + len(frame.data)
            ends.append((position, True))
        return ends
    ends, position = [], 0
    while position < len(data):
        block_type = int.from_bytes(data[position : position + 4], "little")
        position += int.from_bytes(data[position + 4 : position + 8], "little")
        ends.append((position, block_type == 6))
    return ends


def _whole_records(kind: str, length: int) -> int:
    return sum(is_packet for end, is_packet in _records(kind) if end <= length)


def _boundaries(which: tuple[str, Compression]) -> set[int]:
    """Cuts that leave a file without damage."""
    return {end for end, _ in _records(which[0])} if which[1] is Compression.NONE else set()


@BOUNDED
@given(st.sampled_from(sorted(FILES)), st.data())
def test_flipped_bytes_never_crash(kind: str, data: st.DataObject) -> None:
    damaged = bytearray(FILES[kind])
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "capture"
        path.write_bytes(bytes(damaged))
        try:
            capture = open_capture(str(path))
        except CaptureError as error:
            _assert_one_sentence(str(error))
            return
        for connection in capture.connections:
            assert len(capture.packets(connection.id)) == connection.packets
