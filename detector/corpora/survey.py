"""What each file of a corpus holds, before anything is judged: times, link types, connections, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from detector.corpora.sources import CaptureFile
from pepscope.captures.capture import open_capture

Words: TypeAlias = npt.NDArray[np.uint64]

#: Connections whose end points are remembered of each file: enough to see which files share some.
MOST_KEYS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """One file; `keys` are hashes of its connections' end points, in either direction, `exact` of end points and
    initial sequence numbers, which no other connection has by chance: both sorted."""

    file: CaptureFile
    digest: str
    size_bytes: int
    packets: int
    connections: int
    first_ns: int
    last_ns: int
    keys: Words = field(repr=False)
    exact: Words = field(repr=False)
    warnings: str


def survey(file: CaptureFile) -> Survey:
    """Read a file once without keeping packets. Raises CaptureError for what is no capture, OSError."""
    capture = open_capture(str(file.path), payload=False, columns=False, tcp_needed=False)
    columns = capture.connection_columns()
    first_ns, last_ns = capture.time_span_ns or (0, 0)
    ends = [_mixed(_end_points(columns, end)[:MOST_KEYS]) for end in ("client", "server")]
    numbers = [columns[f"{way}_initial_sequence_number"][:MOST_KEYS].astype(np.int64) for way in ("up", "down")]
    both_syns = np.minimum(*numbers) >= 0
    numbered = [
        _mixed(np.stack([end, number.view(np.uint64)], axis=1)) for end, number in zip(ends, numbers, strict=True)
    ]
    return Survey(
        file, _digest(file.path), file.path.stat().st_size, capture.packet_count, len(columns["first_time_ns"]),
        first_ns, last_ns, _keys(ends[0] + ends[1]), _keys((numbered[0] + numbered[1])[both_syns]),
        "; ".join(capture.warnings),
    )  # fmt: skip


def _end_points(columns: Mapping[str, npt.NDArray[Any]], end: str) -> Words:
    """Address and port of each connection as three words."""
    addresses = np.ascontiguousarray(columns[f"{end}_address"]).view(np.uint64).reshape(-1, 2)
    return np.concatenate([addresses, columns[f"{end}_port"].astype(np.uint64).reshape(-1, 1)], axis=1)


def _mixed(words: Words) -> Words:
    """A hash of each row, the same in every process: the finaliser of SplitMix64, once for each word."""
    mixed = np.zeros(len(words), np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _keys(sums: Words) -> Words:
    """Hashes of connections by the sum of their ends', whichever opened them; each once, in order."""
    return np.unique(_mixed(sums.reshape(-1, 1)))


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
