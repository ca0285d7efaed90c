"""Packets that a capture holds twice, as `-i any` and mirror ports give them, were sent once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from detector.clocks.handshake_path import handshake_round_trips_ns
from detector.method import Observation
from detector.methods.identity import METHOD
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from detector.streams.sides import Sides
from pepscope.captures.capture import open_capture
from pepscope.captures.direction import DIRECTIONS
from tests.captures.containers import read_capture, write_pcap
from tests.detector.methods.alone import alone
from tests.fresh.test_fresh_captures import FRESH

ENDS = ("mobile", "server")


def recorded(run: str, times: int, directory: Path) -> list[Pair]:
    """The pairs of a run whose captures hold each packet so many times, 16 us apart."""
    mobile, server = (open_capture(str(path)) for path in written(run, times, directory))
    return list(pair_captures(mobile, server))


def written(run: str, times: int, directory: Path) -> Iterator[Path]:
    """Its captures with each packet so many times."""
    for end in ENDS:
        capture = read_capture(FRESH / f"{run}.{end}.pcap.gz")
        copies = [
            replace(frame, time_ns=frame.time_ns + 16_000 * copy) for frame in capture.frames for copy in range(times)
        ]
        path = directory / f"{end}-{times}.pcap"
        path.write_bytes(write_pcap(sorted(copies, key=lambda frame: frame.time_ns), capture.link_type))
        yield path


@pytest.mark.parametrize("run", ["reg-local", "reg-same-object", "spl-localack-short", "reg-forwarded-port"])
def test_copies_change_neither_what_is_compared_nor_the_path(run: str, tmp_path: Path) -> None:
    once, twice = (recorded(run, times, tmp_path) for times in (1, 2))
    assert len(once) == len(twice) > 1
    for pair, copied in zip(once, twice, strict=True):
        assert alone(METHOD, Observation(copied)).finding == alone(METHOD, Observation(pair)).finding
        for direction in DIRECTIONS:
            paths = [
                handshake_round_trips_ns(Sides.of([each]), direction, np.array([0])).tolist() for each in (pair, copied)
            ]
            assert paths[0] == paths[1]
