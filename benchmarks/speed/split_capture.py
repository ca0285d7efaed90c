"""Split connections as captures: the example's two captures, copied many times with other client addresses.

Each copy starts a little later than the one before, so that a network's connections overlap in the files.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

EXAMPLE = Path(__file__).parents[2] / "examples" / "split"
SPLIT_CONNECTIONS = 300
START_INTERVAL_NS = 100_000_000

_FILE_HEADER = 24
_RECORD = 16
_CHUNK = 200_000
#: Source and destination address from the start of an IPv4 packet, and its checksum and TCP's.
_ADDRESSES = (12, 16)
_CHECKSUMS = (10, 20 + 16)


def make_split(directory: Path, connections: int = SPLIT_CONNECTIONS) -> tuple[Path, Path]:
    """Write `split.server.pcap` and `split.mobile.pcap`: 6,139 packets a connection in both together."""
    paths = []
    for side in ("server", "mobile"):
        source = gzip.decompress((EXAMPLE / f"{side}.pcap.gz").read_bytes())
        path = directory / f"split.{side}.pcap"
        _write_copies(path, source, connections)
        paths.append(path)
    return paths[0], paths[1]


def _write_copies(path: Path, source: bytes, connections: int) -> None:
    rows, held, time_ns = _records(source)
    client = _client(rows)
    start_ns = np.arange(connections) * START_INTERVAL_NS
    order = np.argsort((start_ns[:, None] + time_ns).ravel(), kind="stable")
    with path.open("wb") as file:
        file.write(source[:_FILE_HEADER])
        for begin in range(0, len(order), _CHUNK):
            copy, row = np.divmod(order[begin : begin + _CHUNK], len(rows))
            chunk = rows[row]
            when = time_ns[row] + start_ns[copy]
            chunk[:, :8] = np.stack([when // 10**9, when % 10**9], axis=1).astype("<u4").view(np.uint8)
            _readdress(chunk, client, copy)
            file.write(chunk[np.arange(chunk.shape[1]) < _RECORD + held[row][:, None]].tobytes())


def _records(source: bytes) -> tuple[Array, Array, Array]:
    """Records of a little-endian nanosecond capture of raw IP as rows of one width, what each holds, and its time."""
    magic, *_, snap_length, _link_type = struct.unpack_from("<IHHiIII", source)
    if magic != 0xA1B23C4D:
        raise ValueError("the example must be a little-endian nanosecond pcap")
    starts, at = [], _FILE_HEADER
    while at < len(source):
        starts.append(at)
        at += _RECORD + int.from_bytes(source[at + 8 : at + 12], "little")
    rows = np.zeros((len(starts), _RECORD + snap_length), np.uint8)
    for row, (start, end) in enumerate(zip(starts, [*starts[1:], at], strict=True)):
        rows[row, : end - start] = np.frombuffer(source, np.uint8, end - start, start)
    fields = rows[:, :_RECORD].view("<u4").astype(np.int64)
    return rows, fields[:, 2], fields[:, 0] * 10**9 + fields[:, 1]


def _client(rows: Array) -> bytes:
    """The address that sent the first packet, a SYN."""
    return bytes(rows[0, _RECORD + _ADDRESSES[0] : _RECORD + _ADDRESSES[0] + 4])


def _readdress(rows: Array, client: bytes, copy: Array) -> None:
    """Give the client of each copy an address of its own, and correct the checksums (RFC 1624)."""
    old = int.from_bytes(client)
    new = (10 << 24) + 1 + copy
    for at in _ADDRESSES:
        place = slice(_RECORD + at, _RECORD + at + 4)
        chosen = np.flatnonzero((rows[:, place] == np.frombuffer(client, np.uint8)).all(axis=1))
        rows[chosen, place] = new[chosen].astype(">u4").view(np.uint8).reshape(-1, 4)
        for checksum in _CHECKSUMS:
            field = slice(_RECORD + checksum, _RECORD + checksum + 2)
            before = rows[chosen, field].copy().view(">u2").ravel().astype(np.int64)
            total = (0xFFFF - before) + sum(0xFFFF - (old >> shift & 0xFFFF) for shift in (0, 16))
            total = total + (new[chosen] & 0xFFFF) + (new[chosen] >> 16)
            for _ in range(2):
                total = (total & 0xFFFF) + (total >> 16)
            rows[chosen, field] = (0xFFFF - total).astype(">u2").view(np.uint8).reshape(-1, 2)
