"""Captures of several files are read as one: connections that cross them are whole."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.errors import CaptureError, UsageError
from tests.captures import containers
from tests.captures.containers import Compression, Frame, Interface

CORPUS = Path(__file__).parents[2] / "corpus"
WHOLE = CORPUS / "reg_dl_par20.srv.pcap.gz"
SOURCE = containers.read_capture(WHOLE)


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pepscope", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def pieces(count: int) -> list[list[Frame]]:
    frames = SOURCE.frames
    bounds = [len(frames) * number // count for number in range(count + 1)]
    return [frames[begin:end] for begin, end in itertools.pairwise(bounds)]


def divided(directory: Path, names: list[str]) -> list[Path]:
    """The capture in parts of these names, of different formats and wrappings."""
    directory.mkdir(exist_ok=True)
    paths = [directory / name for name in names]
    for number, (path, frames) in enumerate(zip(paths, pieces(len(names)), strict=True)):
        if number % 2:
            data = containers.write_pcapng(frames, [Interface(SOURCE.link_type, 9)])
        else:
            data = containers.write_pcap(frames, SOURCE.link_type)
        path.write_bytes(containers.compress(data, list(Compression)[number % len(Compression)]))
    return paths


def assert_same(one: Capture, other: Capture) -> None:
    assert one.packet_count == other.packet_count
    assert one.time_span_ns == other.time_span_ns
    assert len(one.connections) == len(other.connections) > 0
    for mine, theirs in zip(one.connections, other.connections, strict=True):
        assert mine == theirs
    before, after = one.connection_columns(), other.connection_columns()
    assert all(before[name].tolist() == after[name].tolist() for name in before)
    assert one.packets(3).time_ns.tolist() == other.packets(3).time_ns.tolist()


def test_parts_in_any_order_are_the_whole(tmp_path: Path) -> None:
    paths = [str(path) for path in divided(tmp_path, [f"trace.pcap{number}" for number in range(12)])]
    random.Random(5).shuffle(paths)
    whole = open_capture(str(WHOLE))
    assert_same(open_capture(paths), whole)
    assert_same(open_capture(str(tmp_path)), whole)
    # Through temporary files, for which the parts are read a second time.
    assert_same(open_capture(paths, memory_bytes=1 << 20), whole)


def test_a_directory_holds_what_begins_like_a_capture(tmp_path: Path) -> None:
    divided(tmp_path, ["first", "second.bin", "third.pcap"])
    (tmp_path / "notes.txt").write_text("taken at the server\n")
    (tmp_path / "fourth.pcap").touch()
    (tmp_path / ".hidden.pcap").write_text("nothing")
    (tmp_path / "below").mkdir()
    assert_same(open_capture(str(tmp_path)), open_capture(str(WHOLE)))
    (tmp_path / "fifth.pcap").write_text("not a capture at all")
    with pytest.raises(CaptureError, match=r"fifth\.pcap is neither pcap nor pcapng"):
        open_capture(str(tmp_path))
    with pytest.raises(CaptureError, match="must hold a capture, got none"):
        open_capture(str(tmp_path / "below"))


def test_a_damaged_part_ends_nothing_but_itself(tmp_path: Path) -> None:
    first, second = divided(tmp_path, ["one.pcap", "two.pcap"])
    first.write_bytes(first.read_bytes()[:-3])
    capture = open_capture([str(first), str(second)])
    assert capture.packet_count == len(SOURCE.frames) - 1
    (sentence,) = capture.warnings
    assert sentence.startswith(f"{first} is damaged at byte ")
    assert sentence.endswith("; what follows in other files was read")


def test_parts_that_ran_at_the_same_time_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "eth0.pcap", tmp_path / "eth1.pcap"]
    frames = [Frame(frame.time_ns + number * 10**9, frame.data) for number, frame in enumerate(SOURCE.frames[:20])]
    for path, of_path in zip(paths, (frames[::2], frames[1::2]), strict=True):
        path.write_bytes(containers.write_pcap(of_path, SOURCE.link_type))
    with pytest.raises(CaptureError, match=r"eth1\.pcap begins 17\.0 s before .*eth0\.pcap ends: give captures that"):
        open_capture(str(tmp_path))
    with pytest.raises(UsageError, match="standard input must be the only part"):
        open_capture([str(paths[0]), "-"])


def test_commands_take_directories(tmp_path: Path) -> None:
    parts = divided(tmp_path / "server", ["a.pcap", "b.pcap", "c.pcap"])
    one, several, directory = (
        json.loads(run("inspect", "--json", *given).stdout) for given in ([WHOLE], parts, [tmp_path / "server"])
    )
    assert one["connections"] == several["connections"] == directory["connections"] != []
    assert (several["path"], directory["path"]) == (f"{parts[0]} and 2 more", str(tmp_path / "server"))
    mobile = CORPUS / "reg_dl_par20.mob.pcap.gz"
    of_files, of_directory = (
        json.loads(run("detect", "--json", server, mobile).stdout)["pairs"] for server in (WHOLE, tmp_path / "server")
    )
    assert len(of_files) == 20
    assert [pair["verdict"] for pair in of_files] == [pair["verdict"] for pair in of_directory]
    assert [pair["probability"] for pair in of_files] == [pair["probability"] for pair in of_directory]
    failed = run("inspect", tmp_path)
    assert (failed.returncode, failed.stdout) == (2, b"")
    assert failed.stderr.decode().strip() == (
        f"pepscope: the directory {tmp_path} must hold a capture, got none that can be read"
    )
