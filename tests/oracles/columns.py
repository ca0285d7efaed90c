"""One form for every decoder's output of a capture, and the comparison of ours with the others.

pepscope keeps stream offsets instead of raw sequence numbers. They agree if, flow by flow, raw number minus offset is
one constant modulo 2^32, and that constant is the byte after the initial sequence number where that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Mark, PacketColumns, SackBlocks, TcpFlag

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pepscope.captures.capture import Capture
    from pepscope.captures.connections import Connection

_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class OracleRow:
    """One TCP packet as another decoder reads it; `None` where it does not say."""

    time_ns: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: int
    window: int  # scaled if `window_is_scaled`
    payload_bytes: int
    ip_id: int
    ttl: int
    timestamps: tuple[int, int] | None
    sack_blocks: tuple[tuple[int, int], ...]  # edges as on the wire, ascending
    maximum_segment_size: int | None
    window_scale: int | None
    sack_permitted: bool
    stream: int | None = None
    window_is_scaled: bool = False
    round_trip_time_ns: int | None = None
    analysis: frozenset[str] = frozenset()


def grouped_by_connection(rows: Iterable[OracleRow], capture: Capture) -> list[list[OracleRow]]:
    """Rows of each of our connections: by the oracle's own streams where it has them, else by four-tuple and time."""
    rows = list(rows)
    if all(row.stream is not None for row in rows):
        streams: dict[int, list[OracleRow]] = {}
        for row in rows:
            streams.setdefault(row.stream or 0, []).append(row)
        return [streams[number] for number in sorted(streams)]
    by_tuple: dict[frozenset[tuple[str, int]], list[OracleRow]] = {}
    for row in rows:
        ends = frozenset([(row.source, row.source_port), (row.destination, row.destination_port)])
        by_tuple.setdefault(ends, []).append(row)
    groups = []
    for connection in capture.connections:
        waiting = by_tuple[_ends(connection)]
        groups.append(waiting[: connection.packets])
        del waiting[: connection.packets]
    assert not any(by_tuple.values()), "the oracle has packets that we do not have"
    return groups


def _ends(connection: Connection) -> frozenset[tuple[str, int]]:
    return frozenset(
        [(connection.client_address, connection.client_port), (connection.server_address, connection.server_port)]
    )


def assert_same_packets(capture: Capture, rows: Iterable[OracleRow]) -> None:
    """Every field of every packet agrees."""
    groups = grouped_by_connection(rows, capture)
    assert len(capture.connections) == len(groups)
    for connection, group in zip(capture.connections, groups, strict=True):
        ours = capture.packets(connection.id)
        _assert_same_connection(connection, ours, group)
        _assert_sack_blocks_agree(ours, capture.sack_blocks(connection.id), group)


def _assert_same_connection(connection: Connection, ours: PacketColumns, rows: list[OracleRow]) -> None:
    assert len(ours) == len(rows) == connection.packets
    client = (connection.client_address, connection.client_port)
    server = (connection.server_address, connection.server_port)
    ends = [(client, server) if direction == 0 else (server, client) for direction in ours.direction.tolist()]
    assert ends == [((r.source, r.source_port), (r.destination, r.destination_port)) for r in rows]
    _same(ours.time_ns, [row.time_ns for row in rows])
    _same(ours.flags, [row.flags for row in rows])
    _same(ours.payload_bytes, [row.payload_bytes for row in rows])
    _same(ours.ip_id, [row.ip_id for row in rows])
    _same(ours.ttl, [row.ttl for row in rows])
    _assert_numbers_agree(connection, ours, rows)
    _assert_windows_agree(connection, ours, rows)
    _assert_options_agree(connection, ours, rows)


def _same(ours: npt.NDArray[np.generic], theirs: list[int]) -> None:
    np.testing.assert_array_equal(ours.astype(np.int64), np.array(theirs, np.int64))


def _assert_numbers_agree(connection: Connection, ours: PacketColumns, rows: list[OracleRow]) -> None:
    sequence = np.array([row.sequence for row in rows], np.int64)
    acknowledgement = np.array([row.acknowledgement for row in rows], np.int64)
    acknowledges = (ours.flags & TcpFlag.ACK) > 0
    np.testing.assert_array_equal(ours.acknowledgement_offset == NO_ACKNOWLEDGEMENT, ~acknowledges)
    for direction, flow in enumerate((connection.up, connection.down)):
        mine = ours.direction == direction
        reply = ~mine & acknowledges & ((ours.flags & TcpFlag.RST) == 0)
        bases = (sequence[mine] - ours.sequence_offset[mine]) % _WRAP
        reply_bases = (acknowledgement[reply] - ours.acknowledgement_offset[reply]) % _WRAP
        found = set(bases.tolist()) | set(reply_bases.tolist())
        assert len(found) <= 1, f"offsets of flow {direction} do not follow the sequence numbers: {found}"
        if flow.initial_sequence_number is not None:
            assert found == {(flow.initial_sequence_number + 1) % _WRAP}


def _assert_windows_agree(connection: Connection, ours: PacketColumns, rows: list[OracleRow]) -> None:
    shifts = _window_shifts(connection, rows)
    expected = []
    for row, direction in zip(rows, ours.direction.tolist(), strict=True):
        shift = 0 if row.flags & TcpFlag.SYN or row.window_is_scaled else shifts[direction]
        expected.append(row.window << shift)
    _same(ours.window_bytes, expected)


def _window_shifts(connection: Connection, rows: list[OracleRow]) -> tuple[int, int]:
    """How far each flow's windows are shifted (RFC 7323): if both SYNs say so, or a SYN-ACK, which needs the other."""
    up, down = connection.up.window_scale, connection.down.window_scale
    if any(flow.options_captured and flow.window_scale is None for flow in (connection.up, connection.down)):
        return 0, 0
    answered = any(row.flags & (TcpFlag.SYN | TcpFlag.ACK) == TcpFlag.SYN | TcpFlag.ACK for row in rows)
    return (min(up or 0, 14), min(down or 0, 14)) if answered else (0, 0)


def _assert_sack_blocks_agree(ours: PacketColumns, blocks: SackBlocks, rows: list[OracleRow]) -> None:
    """Edges lie as far from the acknowledgement as on the wire."""
    found: dict[int, list[tuple[int, int]]] = {}
    for packet, left, right in zip(blocks.packet.tolist(), blocks.left.tolist(), blocks.right.tolist(), strict=True):
        base = rows[packet].acknowledgement - int(ours.acknowledgement_offset[packet])
        found.setdefault(packet, []).append(((base + left) % _WRAP, (base + right) % _WRAP))
    whole = (ours.marks & Mark.HEADER_TRUNCATED) == 0
    acknowledges = (ours.flags & TcpFlag.ACK) > 0
    theirs = {index: row.sack_blocks for index, row in enumerate(rows) if row.sack_blocks}
    wanted = {index: list(theirs.get(index, ())) for index in theirs.keys() | found.keys()}
    for index in wanted:
        if whole[index] and acknowledges[index]:
            assert sorted(found.get(index, [])) == wanted[index]


def _assert_options_agree(connection: Connection, ours: PacketColumns, rows: list[OracleRow]) -> None:
    stamped = (ours.marks & Mark.HAS_TIMESTAMPS) > 0
    whole = (ours.marks & Mark.HEADER_TRUNCATED) == 0  # of options that were cut, decoders keep what they like
    theirs = [row.timestamps for row in rows]
    np.testing.assert_array_equal(stamped[whole], np.array([stamp is not None for stamp in theirs], bool)[whole])
    for index in np.flatnonzero(stamped & whole).tolist():
        assert theirs[index] == (int(ours.tsval[index]), int(ours.tsecr[index]))
    sacked = ((ours.marks & Mark.HAS_SACK) > 0)[whole]
    np.testing.assert_array_equal(sacked, np.array([bool(row.sack_blocks) for row in rows], bool)[whole])
    for direction, flow in enumerate((connection.up, connection.down)):
        syns = [
            row
            for row, packet_direction in zip(rows, ours.direction.tolist(), strict=True)
            if packet_direction == direction and row.flags & TcpFlag.SYN
        ]
        of_copies = (
            (ours.direction == direction) & ((ours.flags & TcpFlag.SYN) > 0) & ((ours.marks & Mark.DUPLICATE) > 0)
        )
        assert flow.syn_count == len(syns) - np.count_nonzero(of_copies)
        if syns:
            assert flow.maximum_segment_size == syns[0].maximum_segment_size
            assert flow.window_scale == syns[0].window_scale
            assert flow.sack_permitted == syns[0].sack_permitted
