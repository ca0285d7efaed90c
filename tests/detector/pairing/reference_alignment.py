"""Comparison of payload under a shift, and alignment by packets, in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

import numpy as np

from detector.pair import StreamAlignment
from detector.pairing.alignment import COMPARED_PIECES, OVERLAP_BYTES
from detector.streams.payload_fingerprints import Votes
from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, PayloadSample


def compare(left: PayloadSample, right: PayloadSample, shift: int) -> tuple[int, float]:
    """How many spread pieces could be compared under `shift`, and the share of them that agree."""
    if len(left.pieces) == 0 or len(right.pieces) == 0:
        return 0, 0.0
    order = np.argsort(right.offsets, kind="stable")
    starts = right.offsets[order]
    begins = left.offsets + shift
    sizes = np.array([len(piece) for piece in left.pieces], np.int64)
    place = np.searchsorted(starts, begins + sizes - OVERLAP_BYTES, side="right") - 1
    reach = starts + np.array([len(right.pieces[index]) for index in order.tolist()], np.int64)
    near = np.flatnonzero((place >= 0) & (reach[np.maximum(place, 0)] - begins >= OVERLAP_BYTES))
    chosen = near[np.linspace(0, len(near) - 1, min(len(near), COMPARED_PIECES)).astype(np.int64)]
    agreed = sum(
        _agrees(left.pieces[index], int(begins[index]), right.pieces[order[place[index]]], int(starts[place[index]]))
        for index in chosen.tolist()
    )
    return len(chosen), agreed / len(chosen) if len(chosen) else 0.0


def _agrees(piece: bytes, begin: int, other: bytes, start: int) -> bool:
    """Whether two pieces agree where they overlap."""
    low, high = max(begin, start), min(begin + len(piece), start + len(other))
    return piece[low - begin : high - begin] == other[low - start : high - start]


def voted_shifts(votes: Votes, most: int) -> list[int]:
    """The shifts, right offset minus left offset, on which most fingerprints agree, best first."""
    best = np.argsort(-votes.count, kind="stable")[:most]
    return [-int(votes.shift[index]) for index in best]


def packet_alignment(left: PacketColumns, right: PacketColumns, direction: Direction) -> StreamAlignment:
    """Align by packets that have a twin by timestamps (or IP ID) and length, counted as the pieces compared."""
    best = StreamAlignment(0, 0, 0.0)
    for stamped in (True, False):
        one, two = (_packet_keys(side, direction, stamped=stamped) for side in (left, right))
        common, i, j = np.intersect1d(one[0], two[0], assume_unique=True, return_indices=True)
        if len(common) == 0:
            continue
        values, counts = np.unique(two[1][j] - one[1][i], return_counts=True)
        found = StreamAlignment(int(values[counts.argmax()]), len(common), float(counts.max()) / len(common))
        if found.compared * found.matched > best.compared * best.matched:
            best = found
    return best


def _packet_keys(packets: PacketColumns, direction: Direction, *, stamped: bool) -> tuple[Int64Array, Int64Array]:
    """Keys of data packets that occur once, ascending, and their stream offsets; a packet recorded twice is one."""
    chosen = packets.going(direction) & (packets.payload_bytes > 0)
    if stamped:
        chosen &= packets.marked(Mark.HAS_TIMESTAMPS)
        stamp = packets.tsval[chosen].astype(np.int64) << 24
    else:
        stamp = packets.ip_id[chosen].astype(np.int64) << 24
    key = stamp + (packets.payload_bytes[chosen].astype(np.int64) & 0xFFFFFF)
    offset = packets.sequence_offset[chosen]
    order = np.lexsort((offset, key))
    key, offset = key[order], offset[order]
    fresh = np.ones(len(key), np.bool_)
    fresh[1:] = (key[1:] != key[:-1]) | (offset[1:] != offset[:-1])
    key, offset = key[fresh], offset[fresh]
    value, first, counts = np.unique(key, return_index=True, return_counts=True)
    return value[counts == 1], offset[first[counts == 1]]
