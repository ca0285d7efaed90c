"""Segments as they left and as they arrived, one arrived segment after the other: the reference of what is named."""

from __future__ import annotations

from collections.abc import Iterator

from detector.pair import Vantage
from detector.presentation.telling_packets.rows import data_rows
from detector.presentation.telling_packets.telling import spread
from pepscope.captures.packets import Direction, Mark, PacketColumns

COMPARED = 256


def compared(emitter: Vantage, receiver: Vantage, direction: Direction, shift: int) -> Iterator[tuple[int, int, int]]:
    """How many fields of an arrived segment changed, its row, and the row of the segment that it left as."""
    sent, came = emitter.packets, receiver.packets
    emitted = data_rows(sent, direction)
    start = sent.sequence_offset[emitted]
    end = start + sent.payload_bytes[emitted]
    for row in spread(data_rows(came, direction), COMPARED).tolist():
        first = int(came.sequence_offset[row]) + shift
        holding = emitted[(start <= first) & (first < end)].tolist()
        if holding:
            changes, left = min((_changes(sent, each, came, row, shift), each) for each in holding)
            yield changes, row, left


def _changes(sent: PacketColumns, left: int, came: PacketColumns, row: int, shift: int) -> int:
    stamps = [bool(packets.marks[at] & Mark.HAS_TIMESTAMPS) for packets, at in ((sent, left), (came, row))]
    fields = [
        (int(sent.sequence_offset[left]), int(sent.payload_bytes[left]))
        != (int(came.sequence_offset[row]) + shift, int(came.payload_bytes[row])),
        sent.ip_id[left] != came.ip_id[row],
        (sent.tsval[left], sent.tsecr[left]) != (came.tsval[row], came.tsecr[row])
        if all(stamps)
        else stamps[0] != stamps[1],
        sent.window_bytes[left] != came.window_bytes[row],
    ]
    return sum(map(bool, fields))
