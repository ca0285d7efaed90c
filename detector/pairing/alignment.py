"""Alignment of the two streams of a matched connection: the shift, and how well the payload agrees."""

from __future__ import annotations

import msgspec
import numpy as np

from detector.pair import StreamAlignment, Vantage
from detector.streams.loaded import payload_of
from detector.streams.payload_fingerprints import DISTINCT_BYTES, MOST_FINGERPRINTS, SKETCH_SIZE, voted_shifts
from detector.streams.sides import AlignmentColumns, Sides
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, PacketColumns, PayloadSample

#: Payload pieces compared of one direction, spread over the stream.
COMPARED_PIECES = 64

#: Shifts that are tried, those on which most payload fingerprints agree.
SHIFTS_TRIED = 4

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
    at_client, at_server = client_side.flow(direction), server_side.flow(direction)
    both_start = at_client.initial_sequence_number is not None and at_server.initial_sequence_number is not None
    compared, matched = compare(left, right, 0)
    if both_start and (compared == 0 or matched > NEARLY_ALL):
        return StreamAlignment(0, compared, matched)
    twins = StreamAlignment(0, 0, 0.0)
    if not both_start:
        twins = packet_alignment(client_side.packets, server_side.packets, direction)
        if _is_sure(twins, left, right):
            return twins
    # Of streams whose beginning is unknown, a shift that most pieces contradict is known by nothing, and content that
    # agrees with itself anywhere agrees by chance.
    least = 0.0 if both_start else MOSTLY
    is_known = matched >= least and (both_start or _varies(left))
    best = StreamAlignment(0, compared, matched) if is_known else StreamAlignment(0, 0, 0.0)
    # Content that repeats itself has few fingerprints, and misleading ones.
    ends = [at_server.stream_bytes - at_client.stream_bytes] if both_start else []
    for shift in [*ends, *voted_shifts(left, right, SKETCH_SIZE, SHIFTS_TRIED)]:
        best = _better(best, left, right, shift, least)
    if best.matched == 0.0:
        # Sketches of captures that hold different parts of the stream have nothing in common.
        for shift in voted_shifts(left, right, MOST_FINGERPRINTS, SHIFTS_TRIED):
            best = _better(best, left, right, shift, MOSTLY)
    if best.matched == 0.0 and not both_start:
        # Under a shift that nothing supports, bytes that differ say nothing; a twin or two are one by chance.
        return twins if _agree_enough(twins, MOSTLY) else StreamAlignment(0, 0, 0.0)
    return best


def align_all(sides: Sides) -> tuple[list[dict[Direction, StreamAlignment]], tuple[AlignmentColumns, AlignmentColumns]]:
    """The alignments of both directions of many connections, those that are equal as one, and the same as columns: most
    streams begin alike, and agree where they are compared."""
    up, down = (_align_direction(sides, direction) for direction in DIRECTIONS)
    codes, first = _core.row_codes(
        [column for each in (up, down) for column in (each.shift_bytes, each.compared, each.matched)]
    )
    alike = [
        {
            way: StreamAlignment(int(each.shift_bytes[row]), int(each.compared[row]), float(each.matched[row]))
            for way, each in zip(DIRECTIONS, (up, down), strict=True)
        }
        for row in first.tolist()
    ]
    return [alike[code] for code in codes.tolist()], (up, down)


def _align_direction(sides: Sides, direction: Direction) -> AlignmentColumns:
    left, right = (payload_of(side, direction) for side in (sides.clients, sides.servers))
    compared, agreed = _core.compare_payloads(left, right, COMPARED_PIECES, OVERLAP_BYTES)
    matched, shift_bytes = agreed / np.maximum(compared, 1), np.zeros(len(sides), np.int64)
    is_settled = np.logical_and(*sides.began(direction)) & ((compared == 0) | (matched > NEARLY_ALL))
    for place in np.flatnonzero(~is_settled).tolist():
        made = align(sides.clients[place], sides.servers[place], direction)
        shift_bytes[place], compared[place], matched[place] = msgspec.structs.astuple(made)
    return AlignmentColumns(np.ones(len(sides), np.bool_), shift_bytes, compared, matched)


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
    return sample.most_distinct_bytes >= DISTINCT_BYTES


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
    compared, agreed = _core.compare_payload(left, right, shift, COMPARED_PIECES, OVERLAP_BYTES)
    return compared, agreed / compared if compared else 0.0


def packet_alignment(left: PacketColumns, right: PacketColumns, direction: Direction) -> StreamAlignment:
    """Align by packets that have a twin by timestamps (or IP ID) and length, counted as the pieces compared.

    Packets that have these in common with another of their stream have none; a packet recorded twice is one.
    """
    best = StreamAlignment(0, 0, 0.0)
    for by_timestamp in (True, False):
        twins = _core.packet_twins(direction, left, right, by_timestamp)
        if twins is None:
            continue
        shift, count, agreeing = twins
        found = StreamAlignment(shift, count, agreeing / count)
        if found.compared * found.matched > best.compared * best.matched:
            best = found
    return best
