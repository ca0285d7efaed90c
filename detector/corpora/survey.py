"""What each file of a corpus holds, before anything is judged: times, link types, connections, and its digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detector.corpora.sources import CaptureFile
from pepscope.captures.capture import open_capture

#: Connections whose end points are remembered of each file: enough to see which files share some.
MOST_KEYS = 20_000


@dataclass(frozen=True, slots=True)
class Survey:
    """One file; `keys` are hashes of its connections' end points, in either direction, `exact` of end points and
    initial sequence numbers, which no other connection has by chance."""

    file: CaptureFile
    digest: str
    size_bytes: int
    packets: int
    connections: int
    first_ns: int
    last_ns: int
    keys: frozenset[int]
    exact: frozenset[int]
    warnings: str


def survey(file: CaptureFile) -> Survey:
    """Read a file once without keeping packets. Raises CaptureError for what is no capture, OSError."""
    capture = open_capture(str(file.path), payload=False, columns=False, tcp_needed=False)
    columns = capture.connection_columns()
    first_ns, last_ns = capture.time_span_ns or (0, 0)
    ends = [
        np.concatenate(
            [columns[f"{end}_address"], columns[f"{end}_port"].astype(">u2").view(np.uint8).reshape(-1, 2)], axis=1
        )[:MOST_KEYS]
        for end in ("client", "server")
    ]
    numbers = np.stack([columns[f"{way}_initial_sequence_number"] for way in ("up", "down")], axis=1)[:MOST_KEYS]
    pairs = [(client.tobytes(), server.tobytes()) for client, server in zip(*ends, strict=True)]
    exact = frozenset(
        _key(*pair, own.tobytes()) for pair, own in zip(pairs, numbers.astype(">i8"), strict=True) if own.min() >= 0
    )
    return Survey(
        file, _digest(file.path), file.path.stat().st_size, capture.packet_count, len(columns["first_time_ns"]),
        first_ns, last_ns, frozenset(_key(*pair) for pair in pairs), exact, "; ".join(capture.warnings),
    )  # fmt: skip


def _key(one: bytes, other: bytes, more: bytes = b"") -> int:
    """The same in every process, whichever end opened the connection."""
    return int.from_bytes(hashlib.blake2b(min(one, other) + max(one, other) + more, digest_size=8).digest())


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
