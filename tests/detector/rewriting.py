"""What middleboxes on the way and capturing hosts do to packets, applied to packet columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from detector.pair import Pair
from pepscope.captures.packets import Direction, Mark, PacketColumns, TcpFlag

Change = Callable[[PacketColumns], PacketColumns]


def changed(pair: Pair, at_client: Change | None = None, at_server: Change | None = None) -> Pair:
    client, server = pair.client_side, pair.server_side
    if client is not None and at_client is not None:
        client = replace(client, packets=at_client(client.packets))
    if server is not None and at_server is not None:
        server = replace(server, packets=at_server(server.packets))
    return replace(pair, client_side=client, server_side=server)


def keep(packets: PacketColumns, which: np.ndarray | slice) -> PacketColumns:
    return PacketColumns(*(getattr(packets, name)[which] for name in PacketColumns.COLUMNS))


def in_sequence(*changes: Change) -> Change:
    def all_of_them(packets: PacketColumns) -> PacketColumns:
        for change in changes:
            packets = change(packets)
        return packets

    return all_of_them


def without_timestamps(packets: PacketColumns) -> PacketColumns:
    nothing = np.zeros_like(packets.tsval)
    return packets.replaced(tsval=nothing, tsecr=nothing, marks=packets.marks & ~np.uint16(Mark.HAS_TIMESTAMPS))


def without_ip_id(packets: PacketColumns) -> PacketColumns:
    return packets.replaced(ip_id=np.zeros_like(packets.ip_id))


def scrambled_ip_id(packets: PacketColumns) -> PacketColumns:
    ids = np.random.default_rng(1).integers(0, 1 << 16, len(packets)).astype(np.uint16)
    return packets.replaced(ip_id=ids)


def own_ip_id(packets: PacketColumns) -> PacketColumns:
    """A NAT counts each direction's packets itself."""
    ids = np.zeros_like(packets.ip_id)
    for direction in Direction:
        chosen = packets.direction == direction
        ids[chosen] = (40_000 + np.arange(np.count_nonzero(chosen))).astype(np.uint16)
    return packets.replaced(ip_id=ids)


def modulated_timestamps(packets: PacketColumns) -> PacketColumns:
    """A firewall between client and this (server's) capture adds a constant to the client's clock."""
    up, constant = packets.direction == Direction.UP, np.uint32(0x9ABCDEF1)
    return packets.replaced(
        tsval=np.where(up, packets.tsval + constant, packets.tsval),
        tsecr=np.where(up, packets.tsecr, packets.tsecr + constant),
    )


def narrowed_windows(packets: PacketColumns) -> PacketColumns:
    up = packets.direction == Direction.UP
    return packets.replaced(window_bytes=np.where(up, np.minimum(packets.window_bytes, 20_000), packets.window_bytes))


def losing(share: float, seed: int) -> Change:
    return lambda packets: keep(packets, np.random.default_rng(seed).random(len(packets)) >= share)


def losing_a_burst(packets: PacketColumns) -> PacketColumns:
    kept = np.ones(len(packets), dtype=bool)
    kept[len(packets) // 3 : len(packets) // 2] = False
    return keep(packets, kept)


def thinned_acknowledgements(packets: PacketColumns) -> PacketColumns:
    pure = (packets.direction == Direction.UP) & (packets.payload_bytes == 0)
    pure &= (packets.flags & (TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)) == 0
    return keep(packets, ~pure | (np.cumsum(pure) % 4 == 0))


def offloaded(direction: Direction) -> Change:
    """Joins neighbouring segments of `direction` into super-packets, as a capture above an offload shows them."""

    def join(packets: PacketColumns) -> PacketColumns:
        kept = np.ones(len(packets), dtype=bool)
        length, flags = packets.payload_bytes.astype(np.int64), packets.flags.copy()
        head = -1
        for at in np.flatnonzero(packets.direction == direction).tolist():
            if packets.payload_bytes[at] == 0:
                head = -1
                continue
            same = head >= 0 and all(
                getattr(packets, name)[head] == getattr(packets, name)[at]
                for name in ("tsval", "tsecr", "acknowledgement_offset")
            )
            follows = head >= 0 and packets.sequence_offset[head] + length[head] == packets.sequence_offset[at]
            soon = head >= 0 and packets.time_ns[at] - packets.time_ns[head] < 3_000_000
            if same and follows and soon and length[head] + length[at] < 64_000:
                kept[at] = False
                length[head] += length[at]
                flags[head] |= flags[at]
            else:
                head = at
        return keep(packets.replaced(payload_bytes=length.astype(np.uint32), flags=flags), kept)

    return join


def own_acknowledgements(packets: PacketColumns) -> PacketColumns:
    """A middlebox in front of this (server's) capture acknowledges every segment itself, with a clock of its own."""
    pure = (packets.direction == Direction.UP) & (packets.payload_bytes == 0)
    pure &= (packets.flags & (TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)) == 0
    return packets.replaced(
        acknowledgement_offset=np.where(pure, packets.acknowledgement_offset - 700, packets.acknowledgement_offset),
        tsval=np.where(pure, packets.tsval + np.uint32(77) * np.arange(len(packets), dtype=np.uint32), packets.tsval),
    )
