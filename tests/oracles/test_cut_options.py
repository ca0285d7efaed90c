"""Which TCP options exist in packets that were cut: as in the whole capture, as tshark reads them, or unknown."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.validation.variants import cut_behind_ip
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark
from tests.captures.containers import read_capture, write_pcap

CORPUS = Path(__file__).parents[1] / "corpus"
#: With losses, so that many acknowledgements carry SACK blocks behind their timestamps.
SOURCE = CORPUS / "reg_dl_cdma1x.mob.pcap.gz"
OPTIONS = {Mark.HAS_TIMESTAMPS: "tcp.options.timestamp.tsecr", Mark.HAS_SACK: "tcp.options.sack_re"}


def cut(length: int, directory: Path) -> Path:
    made = cut_behind_ip(read_capture(SOURCE), length)
    path = directory / f"{length}.pcap"
    path.write_bytes(write_pcap(made.frames, made.link_type))
    return path


def marks(capture: Capture) -> np.ndarray:
    assert len(capture.connections) == 1
    return capture.packets(0).marks


@pytest.mark.parametrize("length", [36, 39, 40, 41, 44, 48, 51, 52, 53, 56, 60, 62, 64, 70, 72, 80])
def test_what_the_snap_length_cut_off_is_unknown_and_never_absent(tmp_path: Path, length: int) -> None:
    whole, found = marks(open_capture(str(SOURCE))), marks(open_capture(str(cut(length, tmp_path))))
    assert (whole & Mark.HAS_SACK).any()
    unknown = (found & Mark.OPTIONS_TRUNCATED) != 0
    assert unknown.any() == (length < 80), "three blocks behind timestamps end at 80"
    for option in OPTIONS:
        had, has = (whole & option) != 0, (found & option) != 0
        assert not (has & ~had).any()
        assert (had[~unknown] == has[~unknown]).all()
        assert not (had & ~has & ~unknown).any()


@pytest.mark.parametrize("length", [44, 48, 52, 56, 64, 72])
def test_tshark_finds_the_same_options(tmp_path: Path, length: int) -> None:
    path = cut(length, tmp_path)
    found = marks(open_capture(str(path)))
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "occurrence=l", "-E", "separator=;"]
    for field in OPTIONS.values():
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    assert len(lines) == len(found)
    for column, option in enumerate(OPTIONS):
        theirs = np.array([bool(line.split(";")[column]) for line in lines])
        ours = (found & option) != 0
        whole = (found & Mark.OPTIONS_TRUNCATED) == 0
        # Of a list of blocks that was cut, tshark gives those that are left; we give none.
        assert (theirs[whole] == ours[whole]).all()
        assert not (ours & ~theirs).any()
