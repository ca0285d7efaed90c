"""Alignment of the two streams of a matched connection: the shift, and how well the payload agrees."""

from __future__ import annotations

import numpy as np

from detector.pair import StreamAlignment, Vantage
from detector.streams import payload_fingerprints
from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, PayloadSample

#: Payload pieces compared of one direction, spread over the stream.
COMPARED_PIECES = 64

#: Share of what could be compared that must agree where little could be.
MOSTLY = 0.5

#: Packets with a counterpart in the other capture at one common shift: by chance no three do, in streams of many
#: segments.
FEWEST_TWINS = 3
#: Share of the twins that agree on the shift, and of the payload that agrees under it.
NEARLY_ALL = 0.9

#: Overlaps shorter than this say nothing about identity.
OVERLAP_BYTES = 8


def align(client_side: Vantage, server_side: Vantage, direction: Direction) -> StreamAlignment:
    """Find the shift of `direction`'s streams, server offset minus client offset, and compare what was captured.

    Where both captures hold the SYN the streams begin alike, unless something rewrites the beginning (HTTP headers):
    then they still end alike. Else the shift is where packets have a twin and the payload agrees, or where most payload
    fingerprints agree, or, without payload, where most packets do.
    """
    left, right = client_side.payload[direction], server_side.payload[direction]
    both_start = all(v.flow(direction).initial_sequence_number is not None for v in (client_side, server_side))
    compared, matched = compare(left, right, 0)
    if both_start and (compared == 0 or matched > NEARLY_ALL):
        return StreamAlignment(0, compared, matched)
    twins = StreamAlignment(0, 0, 0.0)
    if not both_start:
        twins = _packet_alignment(client_side.packets, server_side.packets, direction)
        if _is_sure(twins, left, right):
            return twins
    # Of streams whose beginning is unknown, a shift that most pieces contradict is known by nothing, and content that
    # agrees with itself anywhere agrees by chance.
    least = 0.0 if both_start else MOSTLY
    is_known = matched >= least and (both_start or _varies(left))
    best = StreamAlignment(0, compared, matched) if is_known else StreamAlignment(0, 0, 0.0)
    # Content that repeats itself has few fingerprints, and misleading ones.
    ends = [server_side.flow(direction).stream_bytes - client_side.flow(direction).stream_bytes] if both_start else []
    for shift in [*ends, *_voted_shifts(left, right, payload_fingerprints.SKETCH_SIZE)]:
        best = _better(best, left, right, shift, least)
    if best.matched == 0.0:
        # Sketches of captures that hold different parts of the stream have nothing in common.
        for shift in _voted_shifts(left, right, payload_fingerprints.MOST_FINGERPRINTS):
            best = _better(best, left, right, shift, MOSTLY)
    if best.matched == 0.0 and not both_start:
        # Under a shift that nothing supports, bytes that differ say nothing; a twin or two are one by chance.
        return twins if _agree_enough(twins, MOSTLY) else StreamAlignment(0, 0, 0.0)
    return best


def _is_sure(twins: StreamAlignment, left: PayloadSample, right: PayloadSample) -> bool:
    """Whether packets in common settle the shift, and no payload contradicts them."""
    if not _agree_enough(twins, NEARLY_ALL):
        return False
    compared, matched = compare(left, right, twins.shift_bytes)
    return compared == 0 or matched >= NEARLY_ALL


def _agree_enough(twins: StreamAlignment, share: float) -> bool:
    """Whether this share of the twins agrees on the shift, and more of them than do by chance."""
    return twins.matched >= share and twins.compared * twins.matched >= FEWEST_TWINS


def _varies(sample: PayloadSample) -> bool:
    """Whether any piece has as many different bytes as a fingerprint needs."""
    return any(len(set(piece)) >= payload_fingerprints.DISTINCT_BYTES for piece in sample.pieces)


def _better(
    best: StreamAlignment, left: PayloadSample, right: PayloadSample, shift: int, least: float
) -> StreamAlignment:
    """The alignment by `shift` if more agrees with it than with the best so far, and at least this share does."""
    compared, matched = compare(left, right, shift)
    if matched >= least and compared * matched > best.compared * best.matched:
        return StreamAlignment(shift, compared, matched)
    return best


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


def _voted_shifts(left: PayloadSample, right: PayloadSample, most: int) -> list[int]:
    votes = payload_fingerprints.vote(
        payload_fingerprints.gather([left], most), payload_fingerprints.gather([right], most)
    )
    best = np.argsort(-votes.count, kind="stable")[:4]
    return [-int(votes.shift[index]) for index in best]


def _packet_alignment(left: PacketColumns, right: PacketColumns, direction: Direction) -> StreamAlignment:
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
