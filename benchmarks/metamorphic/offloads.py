"""What segmentation offloads make of the segments that a capture shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.metamorphic.losses import rank_in_runs
from benchmarks.metamorphic.records import ACK, FIN, PSH, Array, Records, with_length

#: A receiver's kernel hands merged segments on within a polling round; a sender's are one packet until the card.
MERGED_WITHIN_NS = 1_000_000

#: Largest payload of an ordinary segment (Ethernet), the least MSS that IPv4 asks for (RFC 9293, 3.7.1), and how often
#: a size must be seen to be that of full segments and not of an answer's end.
_LARGEST_SEGMENT = 1460
_SMALLEST_FULL = 536
_SEEN_OFTEN = 3

#: Linux merges at most so many segments of 1448 bytes (64 KiB).
MOST_MERGED = 44


def merged(records: Records, received: Array, most: int) -> Records:
    """Runs of up to `most` segments that follow each other in a connection, as one packet.

    As Linux does it: payload in sequence, the same acknowledgement, window and timestamps, no PSH or FIN before the
    last, nothing of the connection in between. What is `received` is stamped when the last one came, what was sent when
    the first one left. Of the payload only the first segment's stays captured.
    """
    order = np.argsort(records.connection, kind="stable")
    follows = np.r_[False, _follow(records.take(order))] if len(records) else np.zeros(0, bool)
    run = np.cumsum(~follows)
    rank = rank_in_runs(run)
    begins = ~follows | (rank % most == 0)
    group = np.cumsum(begins) - 1
    first = order[np.flatnonzero(begins)]
    last = order[np.flatnonzero(np.r_[begins[1:], True])] if len(records) else first
    payload = np.bincount(group, records.payload_bytes[order], minlength=len(first)).astype(np.int64)
    joins = first != last
    made = records.take(first)
    made = replace(
        made,
        wire=np.where(joins, made.header_bytes + payload, made.wire),
        time_ns=np.where(joins & received[first], records.time_ns[last], made.time_ns),
    )
    flags = made.flags | (records.flags[last] & PSH)
    made = with_length(made.put(made.tcp + 13, 1, flags, joins), joins)
    return made.take(np.argsort(np.where(received[first], last, first), kind="stable"))


def _follow(records: Records) -> Array:
    """For each record after the first, whether an offload joins it to the one before it."""
    earlier, later = records.take(slice(None, -1)), records.take(slice(1, None))
    plain = ACK | PSH

    def same(at: Array | int, size: int) -> Array:
        return np.asarray(earlier.get(at, size) == later.get(at, size))

    value, echo = earlier.timestamps + 2, earlier.timestamps + 6
    joins: Array = (
        (earlier.connection == later.connection)
        & (earlier.is_up == later.is_up)
        & (earlier.payload_bytes > 0)
        & (later.payload_bytes > 0)
        & ((earlier.sequence + earlier.payload_bytes) % 2**32 == later.sequence)
        & (earlier.flags == ACK)
        & (later.flags & ~plain == 0)
        & (earlier.tcp == later.tcp)
        & same(earlier.tcp + 8, 4)
        & same(earlier.tcp + 12, 1)
        & same(earlier.tcp + 14, 2)
        & (earlier.timestamps == later.timestamps)
        & ((earlier.timestamps == 0) | (same(value, 4) & same(echo, 4)))
        & (earlier.sack == 0)
        & (later.sack == 0)
        & (np.abs(later.time_ns - earlier.time_ns) <= MERGED_WITHIN_NS)
        & (earlier.payload_bytes <= _LARGEST_SEGMENT)
        & (later.payload_bytes <= earlier.payload_bytes)
    )
    # A segment shorter than those before it is the last.
    shorter = np.r_[False, (joins & (later.payload_bytes < earlier.payload_bytes))[:-1]]
    return np.asarray(joins & ~shorter)


def split(records: Records, apart_ns: int) -> Records:
    """Packets longer than any segment as those that the card makes of them, of the size of the connection's full ones.

    Where the capture shows no full segment of the same direction, packets stay whole. Each piece has the header of the
    whole, a sequence number and an IP identification of its own; PSH and FIN go with the last. Of the payload only the
    first piece's stays captured.
    """
    payload, full = records.payload_bytes, _full_segment_bytes(records)
    pieces = np.where((payload > _LARGEST_SEGMENT) & (full > 0), -(-payload // np.maximum(full, 1)), 1)
    made = records.take(np.repeat(np.arange(len(records)), pieces))
    largest = np.repeat(full, pieces)
    number = rank_in_runs(np.repeat(np.arange(len(records)), pieces))
    whole = np.repeat(payload, pieces)
    cut = np.repeat(pieces, pieces) > 1
    last = number == np.repeat(pieces, pieces) - 1
    length = np.where(last, whole - number * largest, largest)
    wire = np.where(cut, made.header_bytes + length, made.wire)
    held = np.where(cut, np.minimum(made.held, np.where(number > 0, made.header_bytes, wire)), made.held)
    made = replace(made, wire=wire, held=held, time_ns=made.time_ns + np.where(cut, number * apart_ns, 0))
    made = made.put(made.tcp + 4, 4, made.sequence + number * largest, cut)
    made = made.put(4, 2, made.get(4, 2) + number, cut & (made.version == 4))
    made = made.put(made.tcp + 13, 1, made.flags & ~(PSH | FIN), cut & ~last)
    return with_length(made, cut)


def _full_segment_bytes(records: Records) -> Array:
    """For each record the payload of full segments in its direction of its connection; 0 where none is seen."""
    group = records.connection * 2 + records.is_up
    payload = records.payload_bytes
    ordinary = (payload >= _SMALLEST_FULL) & (payload <= _LARGEST_SEGMENT)
    sizes, count = np.unique(group[ordinary] << 16 | payload[ordinary], return_counts=True)
    full = np.zeros(2 * records.connections, np.int64)
    often = sizes[count >= _SEEN_OFTEN]
    np.maximum.at(full, often >> 16, often & 0xFFFF)
    return np.asarray(full[group])
