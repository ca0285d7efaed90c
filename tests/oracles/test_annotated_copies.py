"""Annotated copies are the capture and nothing but comments more, as tshark reads both."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from pepscope.captures.files.annotated import Comments, write_annotated
from pepscope.captures.files.digest import file_state
from pepscope.captures.files.frames import read_frames
from pepscope.errors import CaptureError, PepscopeError
from tests.captures import layers, scenarios
from tests.captures.containers import (
    LINK_ETHERNET,
    LINK_RAW,
    Compression,
    Frame,
    Interface,
    compress,
    write_pcap,
    write_pcapng,
)
from tests.oracles.tshark import tshark_fields

CORPUS = Path(__file__).parents[1] / "corpus"
FRAMES = [Frame(each.time_ns, layers.ethernet(each.packet())) for each in scenarios.plain_download().segments]
TEXTS = {2: "acknowledges 136,096 bytes – “early”", 5: "line\nand line", 6: "x" * 70_000}
COMMENTS = Comments("the verdict", "a vantage point", TEXTS)

FILES = {
    "nanoseconds": write_pcap(FRAMES, LINK_ETHERNET),
    "microseconds, big-endian": write_pcap(FRAMES, LINK_ETHERNET, order=">", nanoseconds=False),
    "cut frames": write_pcap(FRAMES, LINK_ETHERNET, snap_length=61),
    "raw IP": write_pcap([Frame(each.time_ns, each.data[14:]) for each in FRAMES], LINK_RAW),
    "pcapng": write_pcapng(FRAMES, [Interface(LINK_ETHERNET, 9)], unknown_blocks=True),
    "pcapng, big-endian, two sections": write_pcapng(FRAMES[:4], [Interface(LINK_ETHERNET, 6)], order=">")
    + write_pcapng(FRAMES[4:], [Interface(LINK_ETHERNET, 0x80 | 30, offset_s=1_000_000)]),
}


def _rows(path: Path) -> list[tuple[str, ...]]:
    """Time, length on the wire and bytes of every packet."""
    return tshark_fields(f"tshark -r '{path}'", "frame.number", "frame.time_epoch", "frame.len", "frame.cap_len")


def _hex(path: Path) -> str:
    return subprocess.run(["tshark", "-x", "-r", str(path)], capture_output=True, text=True, check=True).stdout


def _comments(path: Path) -> dict[int, str]:
    rows = tshark_fields(f"tshark -r '{path}' -Y frame.comment", "frame.number", "frame.comment")
    return {int(number): text for number, text in rows}


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
@pytest.mark.parametrize("name", FILES)
def test_packets_stay_as_they_are(name: str, compression: Compression, tmp_path: Path) -> None:
    source, target = tmp_path / "capture", tmp_path / "copy.pcapng"
    source.write_bytes(compress(FILES[name], compression))
    copied = write_annotated(str(source), target, COMMENTS, file_state(str(source)))
    assert (copied.frames, copied.without_room, copied.damage) == (len(FRAMES), (), None)
    assert _rows(source) == _rows(target)
    assert _hex(source) == _hex(target)
    before, after = (_comments(source) if "pcapng" in name else {}), _comments(target)
    for number in range(1, len(FRAMES) + 1):
        own = [before[number]] if number in before else []
        added = [TEXTS[number].replace("\n", "\\n")[:65_532]] if number in TEXTS else []
        assert after.get(number, "") == ",".join([*own, *added])


def test_file_and_interface_bear_comments(tmp_path: Path) -> None:
    for name, data in FILES.items():
        source, target = tmp_path / "capture", tmp_path / "copy.pcapng"
        source.write_bytes(data)
        write_annotated(str(source), target, COMMENTS, file_state(str(source)))
        content = target.read_bytes()
        sections = 2 if "two sections" in name else 1
        assert content.count(b"the verdict") == content.count(b"a vantage point") == sections


def test_every_other_block_is_kept(tmp_path: Path) -> None:
    record = struct.pack("<HH4s5s3x", 1, 9, bytes([127, 0, 0, 1]), b"host\0") + struct.pack("<HH", 0, 0)
    name_resolution = struct.pack("<II", 4, len(record) + 12) + record + struct.pack("<I", len(record) + 12)
    source, target = tmp_path / "capture.pcapng", tmp_path / "copy.pcapng"
    data = FILES["pcapng"]
    source.write_bytes(data + name_resolution)
    write_annotated(str(source), target, Comments("", "", {}), file_state(str(source)))
    assert target.read_bytes() == source.read_bytes()


def test_simple_packet_blocks_have_no_room(tmp_path: Path) -> None:
    source, target = tmp_path / "capture.pcapng", tmp_path / "copy.pcapng"
    source.write_bytes(write_pcapng(FRAMES, [Interface(LINK_ETHERNET)], simple_blocks=True))
    copied = write_annotated(str(source), target, COMMENTS, file_state(str(source)))
    assert copied.without_room == tuple(sorted(TEXTS))
    assert _rows(source) == _rows(target)


def test_a_damaged_capture_is_copied_up_to_the_damage(tmp_path: Path) -> None:
    for name in ("nanoseconds", "pcapng"):
        source, target = tmp_path / "capture", tmp_path / "copy.pcapng"
        source.write_bytes(FILES[name][:-7])
        copied = write_annotated(str(source), target, COMMENTS, file_state(str(source)))
        assert copied.frames == len(FRAMES) - 1
        assert copied.damage is not None
        assert "is damaged at byte" in copied.damage
        assert len(_rows(target)) == len(FRAMES) - 1


def test_a_capture_that_changed_leaves_no_copy(tmp_path: Path) -> None:
    source, target = tmp_path / "capture", tmp_path / "copy.pcapng"
    source.write_bytes(FILES["nanoseconds"])
    before = file_state(str(source))
    source.write_bytes(FILES["nanoseconds"] + b"more")
    with pytest.raises(CaptureError, match="changed since it was judged"):
        write_annotated(str(source), target, COMMENTS, before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture"]
    with pytest.raises(PepscopeError, match="cannot be written"):
        write_annotated(str(source), tmp_path / "nowhere" / "copy.pcapng", COMMENTS, file_state(str(source)))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=4),
    st.integers(0, 200),
)
def test_hostile_files_give_the_frames_that_are_read(name: str, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(FILES[name])
    for place, value in changes:
        data[place % len(data)] = value
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory) / "capture", Path(directory) / "copy.pcapng"
        source.write_bytes(data[: len(data) - cut])
        try:
            copied = write_annotated(str(source), target, COMMENTS, file_state(str(source)))
        except CaptureError:
            with pytest.raises(CaptureError):
                read_frames(str(source))
            return
        read, again = read_frames(str(source)), read_frames(str(target))
        assert copied.frames == len(read) == len(again)
        assert [frame.data for frame in read] == [frame.data for frame in again]
