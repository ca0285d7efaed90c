"""Whether datagrams carry a TCP stream: its bytes behind a header of any form.

A datagram is located by fingerprints (`detector.streams.payload_fingerprints`) that it shares with the stream: all of
one datagram must agree on its place. Byte comparison then shows where in the datagrams the stream's bytes begin,
and whether all is the same.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.pair import CarriedStream
from detector.streams import payload_fingerprints
from pepscope.captures.datagrams import DatagramSample
from pepscope.captures.packets import BoolArray, Int64Array, PayloadSample

#: Bits of a fingerprint's offset that are its position in the datagram; the rest is the datagram.
POSITION_BITS = 16

#: Fingerprints that one datagram must have in common with the stream. Each is 16 bytes, at least 6 of them different,
#: and occurs once in the stream, so two at the same distance are no accident.
DATAGRAM_FINGERPRINTS = 2

#: Located datagrams that make a stream: fewer could be a certificate or a page that two protocols both deliver.
FEWEST_DATAGRAMS = 3

#: Share of compared bytes (behind the header) and of compared datagrams that must be the same.
SAME_SHARE = 0.95

#: Parts of the TCP payload sample, of which `coverage` is a share.
PARTS = 16

#: Shortest beginning of a short message (a request) that is looked for as it stands.
SHORT_BYTES = 16

#: Longest header in front of the stream's bytes.
LARGEST_HEADER_BYTES = 256


class _Located(Struct, frozen=True):
    """Datagrams by their places in the sample, and the stream offset at which each would begin without its header."""

    place: Int64Array
    begin: Int64Array


def as_stream(sample: DatagramSample) -> PayloadSample:
    """The datagrams as pieces of a stream whose offsets name the datagram and the position in it."""
    return PayloadSample(np.arange(len(sample.pieces), dtype=np.int64) << POSITION_BITS, sample.pieces)


def carried(
    stream: PayloadSample, datagrams: DatagramSample, initial_sequence_number: int | None
) -> CarriedStream | None:
    """How `datagrams` carry `stream`, or None where they do not."""
    located = _locate(stream, datagrams)
    if len(located.place) == 0:
        located = _locate_beginning(stream, datagrams)
    if len(located.place) == 0:
        return None
    same, compared = _compare(stream, datagrams, located)
    header_bytes = _frame_bytes(same, compared)
    if header_bytes is None:
        return None
    trailer_bytes = _leave_out_trailer(datagrams, located, same, compared)
    behind_same, behind_compared = same[:, header_bytes:].sum(axis=1), compared[:, header_bytes:].sum(axis=1)
    judged = behind_compared > 0
    agreeing = int((behind_same[judged] >= SAME_SHARE * behind_compared[judged]).sum())
    if agreeing < SAME_SHARE * int(judged.sum()):
        return None
    begin = located.begin + header_bytes
    end = located.begin + datagrams.payload_bytes[located.place] - trailer_bytes
    return CarriedStream(
        time_ns=datagrams.time_ns[located.place],
        stream_offset=begin,
        compared=int(judged.sum()),
        agreeing=agreeing,
        coverage=_coverage(stream, begin, end),
        offset_in_datagram=header_bytes,
        holds_segments=_holds_segments(datagrams, located, header_bytes, initial_sequence_number),
    )


def _locate(stream: PayloadSample, datagrams: DatagramSample) -> _Located:
    """Datagrams whose fingerprints agree on their place in the stream."""
    value, offset = payload_fingerprints.all_fingerprints(stream)
    value, first, counts = np.unique(value, return_index=True, return_counts=True)
    value, offset = value[counts == 1], offset[first[counts == 1]]
    theirs, where = payload_fingerprints.all_fingerprints(as_stream(datagrams))
    if len(value) == 0 or len(theirs) == 0:
        return _nowhere()
    at = np.minimum(np.searchsorted(value, theirs), len(value) - 1)
    common = value[at] == theirs
    place = where[common] >> POSITION_BITS
    begin = offset[at[common]] - (where[common] & ((1 << POSITION_BITS) - 1))
    rows, count = np.unique(np.stack([place, begin], axis=1).reshape(-1, 2), axis=0, return_counts=True)
    best: dict[int, tuple[int, int]] = {}
    total: dict[int, int] = {}
    for (number, start), agreed in zip(rows.tolist(), count.tolist(), strict=True):
        total[number] = total.get(number, 0) + agreed
        best[number] = max(best.get(number, (0, 0)), (agreed, start))
    chosen = [
        (number, start)
        for number, (agreed, start) in sorted(best.items())
        if agreed >= DATAGRAM_FINGERPRINTS and 2 * agreed > total[number]
    ]
    table = np.array(chosen, np.int64).reshape(-1, 2)
    return _Located(table[:, 0], table[:, 1])


def _locate_beginning(stream: PayloadSample, datagrams: DatagramSample) -> _Located:
    """The first datagram that holds the stream's first bytes as they stand: a message too short for fingerprints."""
    start = np.flatnonzero(stream.offsets == 0)
    piece = max((stream.pieces[index] for index in start.tolist()), key=len, default=b"")[:64]
    if len(piece) < SHORT_BYTES or len(set(piece)) < payload_fingerprints.DISTINCT_BYTES:
        return _nowhere()
    for place, held in enumerate(datagrams.pieces):
        position = held.find(piece)
        if 0 <= position <= LARGEST_HEADER_BYTES:
            return _Located(np.array([place], np.int64), np.array([-position], np.int64))
    return _nowhere()


def _nowhere() -> _Located:
    return _Located(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _compare(stream: PayloadSample, datagrams: DatagramSample, located: _Located) -> tuple[BoolArray, BoolArray]:
    """For each located datagram and position in it: is the byte the stream's, and could it be compared?"""
    width = max(len(datagrams.pieces[place]) for place in located.place.tolist())
    same = np.zeros((len(located.place), width), np.bool_)
    compared = np.zeros_like(same)
    order = np.argsort(stream.offsets, kind="stable")
    starts = stream.offsets[order]
    longest = max(len(piece) for piece in stream.pieces)
    for row, (place, begin) in enumerate(zip(located.place.tolist(), located.begin.tolist(), strict=True)):
        held = np.frombuffer(datagrams.pieces[place], np.uint8)
        first, last = np.searchsorted(starts, (begin - longest, begin + len(held))).tolist()
        for index in order[first:last].tolist():
            start, piece = int(stream.offsets[index]), np.frombuffer(stream.pieces[index], np.uint8)
            low, high = max(begin, start), min(begin + len(held), start + len(piece))
            if low < high:
                equal = held[low - begin : high - begin] == piece[low - start : high - start]
                same[row, low - begin : high - begin] = equal
                compared[row, low - begin : high - begin] = True
    return same, compared


def _frame_bytes(same: BoolArray, compared: BoolArray) -> int | None:
    """Bytes in front of the stream's: the position behind which equal bytes outnumber others by most.

    A byte of the header that equals the stream's by chance has unequal ones behind it; a trailer counts alike for all
    positions.
    """
    equal, total = same.sum(axis=0), compared.sum(axis=0)
    outnumber = (2 * equal - total)[::-1].cumsum()[::-1]
    found = len(outnumber) - 1 - int(outnumber[::-1].argmax())
    fits = outnumber[found] > 0 and equal[found] >= SAME_SHARE * total[found]
    return found if fits and found <= LARGEST_HEADER_BYTES else None


def _leave_out_trailer(datagrams: DatagramSample, located: _Located, same: BoolArray, compared: BoolArray) -> int:
    """Length of what stands behind the stream's bytes in every datagram; it is no longer compared."""
    ends = [len(datagrams.pieces[place]) for place in located.place.tolist()]
    whole = [
        row
        for row, (end, place) in enumerate(zip(ends, located.place.tolist(), strict=True))
        if end == datagrams.payload_bytes[place]
    ]
    tail = min((ends[row] for row in whole), default=0)
    if tail == 0:
        return 0
    from_end = [np.stack([mask[row, ends[row] - tail : ends[row]][::-1] for row in whole]) for mask in (same, compared)]
    trailer_bytes = _frame_bytes(*from_end) or 0
    for row in whole:
        for mask in (same, compared):
            mask[row, ends[row] - trailer_bytes : ends[row]] = False
    return trailer_bytes


def _coverage(stream: PayloadSample, begin: Int64Array, end: Int64Array) -> float:
    """Share of the equal parts of the stream's sample that a located datagram touches.

    Beyond the first regions, which both captures keep whole, what datagrams are kept of depends on their headers.
    """
    sizes = np.array([len(piece) for piece in stream.pieces], np.int64)
    early = stream.offsets < (7 << 16)
    low, high = stream.offsets[early], (stream.offsets + sizes)[early]
    order = np.argsort(low, kind="stable")
    parts = np.array_split(order, min(PARTS, len(order)))
    touched = [bool(((begin < high[part].max()) & (end > low[part].min())).any()) for part in parts if len(part)]
    return sum(touched) / len(touched) if touched else 0.0


def _holds_segments(
    datagrams: DatagramSample, located: _Located, header_bytes: int, initial_sequence_number: int | None
) -> bool:
    """Whether the headers hold the sequence number that the connection's own segment would have here (RFC 9293).

    Where the SYN was not captured, a field that advances with the stream is taken for one.
    """
    base = 1 if initial_sequence_number is None else initial_sequence_number + 1
    for position in range(max(0, header_bytes - 3)):
        fields = [
            (int.from_bytes(piece[position : position + 4], "big") - base - begin - header_bytes) & 0xFFFFFFFF
            for piece, begin in (
                (datagrams.pieces[place], begin)
                for place, begin in zip(located.place.tolist(), located.begin.tolist(), strict=True)
            )
            if len(piece) >= position + 4
        ]
        if len(fields) < FEWEST_DATAGRAMS:
            continue
        values, counts = np.unique(np.array(fields, np.uint32), return_counts=True)
        usual = int(values[counts.argmax()])
        if counts.max() >= SAME_SHARE * len(fields) and (initial_sequence_number is None or usual == 0):
            return True
    return False
