"""Captures cut into slices, as a rotation cuts them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.captures.containers import Frame, Interface, read_capture, write_pcap, write_pcapng

CAPTURES = Path(__file__).parents[3] / "one_ended"

#: A phone behind a split: 20 connections of 1,475 packets in 22 s, and pings beside them.
SPLIT = CAPTURES / "lte-split.mobile.pcap.gz"
WHOLE = CAPTURES / "lte-none.mobile.pcap.gz"

#: Old enough to be whole.
CHANGED_S = 1_700_000_000.0


def frames_of(path: Path) -> tuple[list[Frame], int]:
    """Frames and link type."""
    capture = read_capture(path)
    return capture.frames, capture.link_type


def write_slices(
    frames: Sequence[Frame], link_type: int, cuts: Sequence[int], directory: Path, *, pcapng: bool = False
) -> list[Path]:
    """A file for what is between each two cuts, in which frames are counted."""
    paths = []
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(frames)], strict=True)):
        path = directory / f"slice-{number:03}.{'pcapng' if pcapng else 'pcap'}"
        if pcapng:
            path.write_bytes(write_pcapng(frames[start:stop], [Interface(link_type, resolution=9)]))
        else:
            path.write_bytes(write_pcap(frames[start:stop], link_type))
        settle(path, number)
        paths.append(path)
    return paths


def settle(path: Path, number: int = 0) -> None:
    """Let a file look as if nobody wrote it any more, a second after the one before."""
    os.utime(path, (CHANGED_S + number, CHANGED_S + number))
