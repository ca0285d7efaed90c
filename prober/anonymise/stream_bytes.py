"""Payload to keyed hashes, a byte for a byte, whatever the segments.

Each byte becomes a keyed hash of itself and the seven bytes that follow it in its stream. So streams with the same
content in some place are the same there afterwards, at any offset, in any segmentation, in both captures, and streams
that differ stay different; the payload cannot be found without the key, except that equal stretches of at least
eight bytes are equal afterwards.

What follows a byte may not have been captured (snap length, losses). Then its hash is not known, and the capture ends
there: up to seven bytes fewer of such a segment are kept. At the end of a stream the hash is of fewer bytes. Where a
retransmission brings other bytes than the first copy, its own count, and those that follow it come from the first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from prober.anonymise.keys import BLOCK_BYTES, SecretKey

#: How many bytes make one of the result.
WINDOW_BYTES = 8

#: Bytes hashed at a time, which need 16 times as much memory.
_AT_ONCE = 1 << 18

#: Segments before a place in which it is looked for: how far retransmissions may reach back.
_LOOK_BACK = 16


@dataclass(slots=True)
class Stream:
    """One direction of a connection, as far as it was captured."""

    has_beginning: bool
    starts: list[int] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    end: int = 0  # of what was sent, captured or not
    _is_sorted: bool = True

    def add(self, offset: int, captured: bytes, sent_bytes: int) -> None:
        """A segment; of copies the first counts. One without payload is ignored: a FIN has a sequence number, too."""
        if sent_bytes <= 0:
            return
        self.end = max(self.end, offset + sent_bytes)
        if captured:
            self._is_sorted &= not self.starts or self.starts[-1] <= offset
            self.starts.append(offset)
            self.pieces.append(captured)

    def from_offset(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on, as many as were captured without a gap."""
        self._sort()
        found = b""
        while len(found) < length:
            piece = self._at(offset + len(found))
            if not piece:
                break
            found += piece[: length - len(found)]
        return found

    def _at(self, offset: int) -> bytes:
        place = bisect_right(self.starts, offset) - 1
        for number in range(place, max(-1, place - _LOOK_BACK), -1):
            held = self.pieces[number][offset - self.starts[number] :]
            if held:
                return held
        return b""

    def _sort(self) -> None:
        if not self._is_sorted:
            order = sorted(range(len(self.starts)), key=lambda number: self.starts[number])
            self.starts = [self.starts[number] for number in order]
            self.pieces = [self.pieces[number] for number in order]
            self._is_sorted = True


@dataclass(frozen=True, slots=True)
class Hashable:
    """Bytes to be hashed, and those that follow them; fewer than seven only at an end."""

    data: bytes
    following: bytes


def with_following(stream: Stream, offset: int, captured: bytes) -> Hashable:
    """The part of a segment whose hashes can be known."""
    after = offset + len(captured)
    following = stream.from_offset(after, WINDOW_BYTES - 1)
    missing = min(WINDOW_BYTES - 1, stream.end - after) - len(following)
    return shortened(captured, following, missing)


def shortened(data: bytes, following: bytes, missing: int) -> Hashable:
    """The bytes without the last `missing` ones, which then follow."""
    if missing <= 0:
        return Hashable(data, following)
    everything = data + following
    kept = max(0, len(everything) - (WINDOW_BYTES - 1))
    kept = min(kept, len(data))
    return Hashable(everything[:kept], everything[kept : kept + WINDOW_BYTES - 1])


def hash_all(key: SecretKey, parts: list[Hashable]) -> list[bytes]:
    """The hashes of each part, as long as its data."""
    made = []
    batch: list[Hashable] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part.data)
        if size >= _AT_ONCE:
            made += _hash_batch(key, batch)
            batch, size = [], 0
    return made + _hash_batch(key, batch)


def _hash_batch(key: SecretKey, parts: list[Hashable]) -> list[bytes]:
    text = b"".join(part.data + part.following + bytes(WINDOW_BYTES) for part in parts)
    if not text:
        return [b"" for _ in parts]
    lengths = np.array([len(part.data) for part in parts], np.int64)
    spans = lengths + np.array([len(part.following) for part in parts], np.int64)
    begins = np.cumsum(spans + WINDOW_BYTES) - spans - WINDOW_BYTES
    at = np.repeat(begins, lengths) + _counting(lengths)
    left = np.minimum(np.repeat(begins + spans, lengths) - at, WINDOW_BYTES)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(text, np.uint8), WINDOW_BYTES)
    blocks = np.zeros((len(at), BLOCK_BYTES), np.uint8)
    blocks[:, :WINDOW_BYTES] = windows[at]
    # Zeros behind the end are no zeros of the stream.
    blocks[:, WINDOW_BYTES] = left
    hashed = np.frombuffer(key.blocks("payload", blocks.tobytes()), np.uint8)[::BLOCK_BYTES].tobytes()
    ends = np.cumsum(lengths).tolist()
    return [hashed[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _counting(lengths: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """0, 1, ... for each length, one behind the other."""
    counted = np.arange(int(lengths.sum()), dtype=np.int64)
    return counted - np.repeat(np.cumsum(lengths) - lengths, lengths)
