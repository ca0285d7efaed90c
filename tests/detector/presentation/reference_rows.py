"""Rows of packets by what they carry, packet by packet: what `telling_packets.rows` must agree with."""

from __future__ import annotations

from pepscope.captures.packets import Direction, PacketColumns


def data_rows(packets: PacketColumns, direction: Direction) -> list[int]:
    """Packets with payload in a direction."""
    rows = range(len(packets))
    return [row for row in rows if packets.direction[row] == direction and packets.payload_bytes[row] > 0]


def flag_rows(packets: PacketColumns, direction: Direction, flags: int) -> list[int]:
    """Packets of a direction that bear any of these flags."""
    rows = range(len(packets))
    return [row for row in rows if packets.direction[row] == direction and int(packets.flags[row]) & flags]


def acknowledging_rows(packets: PacketColumns, direction: Direction) -> list[int]:
    """Packets that acknowledge more of `direction`'s data than any before."""
    found, most = list[int](), 0
    for row in range(len(packets)):
        acknowledged = int(packets.acknowledgement_offset[row])
        if packets.direction[row] == direction.reverse and acknowledged > most:
            found.append(row)
            most = acknowledged
    return found
