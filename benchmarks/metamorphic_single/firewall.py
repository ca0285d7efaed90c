"""A firewall that collects what a client says first, to read the server's name in it, and ends no connection.

So do firewalls whose rules go by names with a ClientHello of several segments: they acknowledge it in the server's
name, with a window and a hop limit of their own, and forward it once it is whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.metamorphic.losses import rank_in_runs
from benchmarks.metamorphic.records import ACK, PSH, SYN, Array, Records, joined, with_length

_WINDOW, _HOP_LIMIT = 2048, 126


def collecting_first_flights(records: Records, after_ns: int) -> Records:
    """What clients say first comes in two segments, and is acknowledged `after_ns` later, where the capture shows the
    SYN-ACK and the server speaks later than that."""
    first, syn_ack = _first_words(records, after_ns)
    ended_ns = records.time_ns[first]
    flight_end = records.sequence[first] + records.payload_bytes[first]
    acks = records.take(syn_ack)
    acks = replace(
        acks, time_ns=ended_ns + after_ns, wire=acks.tcp + 20, held=acks.tcp + 20,
        timestamps=np.zeros_like(acks.timestamps), sack=np.zeros_like(acks.sack),
    )  # fmt: skip
    acks = acks.put(acks.tcp + 4, 4, acks.sequence + 1).put(acks.tcp + 8, 4, flight_end)
    acks = acks.put(acks.tcp + 12, 1, 5 << 4).put(acks.tcp + 13, 1, ACK).put(acks.tcp + 14, 2, _WINDOW)
    acks = with_length(acks.put(np.where(acks.version == 6, 7, 8), 1, _HOP_LIMIT), np.ones(len(acks), np.bool_))
    return joined(_in_two(records, first), acks, 0)


def _first_words(records: Records, after_ns: int) -> tuple[Array, Array]:
    """Records with clients' first words that may be collected, and those of their SYN-ACKs."""
    speaks = records.payload_bytes > 0
    words, answers = _first_of(records, speaks & records.is_up), _first_of(records, speaks & ~records.is_up)
    shaken = _first_of(records, (records.flags & (SYN | ACK) == SYN | ACK) & ~records.is_up)
    known = np.flatnonzero((words >= 0) & (answers >= 0) & (shaken >= 0))
    words, answers, shaken = words[known], answers[known], shaken[known]
    later = records.time_ns[answers] > records.time_ns[words] + after_ns
    may = later & (records.payload_bytes[words] > 1) & (records.flags[words] & SYN == 0)
    return words[may], shaken[may]


def _first_of(records: Records, where: Array) -> Array:
    """The first record of each connection in the mask; -1 of those without one."""
    found = np.full(records.connections, -1)
    rows = np.flatnonzero(where)[::-1]
    found[records.connection[rows]] = rows
    return found


def _in_two(records: Records, rows: Array) -> Records:
    """These rows as two segments each; of the second one's payload nothing stays captured."""
    pieces = np.ones(len(records), np.int64)
    pieces[rows] = 2
    source = np.repeat(np.arange(len(records)), pieces)
    made, number = records.take(source), rank_in_runs(source)
    is_cut = np.repeat(pieces, pieces) > 1
    whole, half = made.payload_bytes, made.payload_bytes // 2
    wire = np.where(is_cut, made.header_bytes + np.where(number > 0, whole - half, half), made.wire)
    held = np.where(is_cut, np.minimum(made.held, np.where(number > 0, made.header_bytes, wire)), made.held)
    made = replace(made, wire=wire, held=held)
    made = made.put(made.tcp + 4, 4, made.sequence + number * half, is_cut)
    made = made.put(made.tcp + 13, 1, made.flags & ~PSH, is_cut & (number == 0))
    return with_length(made, is_cut)
