"""The parts of a rotated series as one capture, so that connections that cross files are whole."""

from __future__ import annotations

import gzip
import lzma
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

#: A classic pcap file's header: magic number, version, time zone, accuracy, snapshot length, link type.
_HEADER_BYTES = 24
_SNAP_LENGTH = slice(16, 20)
_PCAPNG = b"\x0a\x0d\x0d\x0a"


def joined(paths: Sequence[Path], target: Path) -> Path | None:
    """Write files one after the other into `target`; None where they do not fit together, or cannot be unpacked here.

    Sections of pcapng may follow each other in one file. Of classic pcap files the magic number (order of bytes, unit
    of time) and the link type must be one. Raises OSError.
    """
    if len(paths) == 1:
        return paths[0]
    with target.open("wb") as output:
        kind: bytes | None = None
        for path in paths:
            with unpacked(path) as stream:
                header = stream.read(_HEADER_BYTES)
                own = _kind(header)
                if own is None or (kind is not None and own != kind):
                    return None
                if kind is None or own == _PCAPNG:
                    output.write(header)
                kind = own
                shutil.copyfileobj(stream, output)
    return target


def _kind(header: bytes) -> bytes | None:
    """What must be equal for files to be joined."""
    if header[:4] == _PCAPNG:
        return _PCAPNG
    if len(header) < _HEADER_BYTES or header[:1] in (b"\x1f", b"\xfd", b"\x28"):
        return None
    return header[: _SNAP_LENGTH.start] + header[_SNAP_LENGTH.stop :]


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """A file as it is, or what gzip or xz made it of. Raises OSError, and what these raise for damage."""
    with path.open("rb") as stream:
        start = stream.read(2)
        stream.seek(0)
        if start == b"\x1f\x8b":
            with gzip.open(stream) as content:
                yield cast("IO[bytes]", content)
        elif start == b"\xfd7":
            with lzma.open(stream) as content:
                yield content
        else:
            yield stream
