"""Streams that are longer or shorter where they arrive than where they left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Vantage
from detector.streams.curves import acknowledgements
from detector.streams.known import UNKNOWN, are_known
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns
from pepscope.results.evidence.columns import BoolArray

#: Application gateways (FTP, SIP behind NAT) replace an address in a control stream and shift what follows: by so much
#: at most, all in all.
GATEWAY_BYTES = 64

#: So many pieces that differ may be a rewritten head, and are too few to mislead.
FEW_PIECES = 2

#: Fewer packets that kept their identity at another offset may do so by chance.
FEWEST_MOVED = 3

#: Lengths of packets count modulo this power of two, in a word beside 32 bits that identify them.
_LENGTH_BITS = 24
_HAS_TIMESTAMPS = int(Mark.HAS_TIMESTAMPS)


def are_moved_within(sides: Sides, direction: Direction) -> BoolArray:
    """Of which connections no shift lays a stream over itself, since it is longer or shorter at the other end by so
    little as a gateway changes it, and more than a head differs or payload was not compared.
    """
    moved = np.zeros(len(sides), np.bool_)
    asked = np.flatnonzero(_may_be_moved(sides, direction))
    if len(asked):
        grown = size_changes(sides.at(sides.rows[asked]))[direction]
        moved[asked] = are_known(grown) & (grown != 0) & (np.abs(grown) <= GATEWAY_BYTES)
    return moved


def size_changes(sides: Sides) -> Int64Array:
    """Bytes by which streams up and down (rows) grew on the way, from their SYNs to their FINs; `UNKNOWN` unless both
    captures saw both, and each the acknowledgement of the FIN.

    Where a capture does not show that end, packets that kept their identity tell of a gateway (`_moved_bytes`).
    """
    at_client, at_server = _ends(sides.clients, sides.client), _ends(sides.servers, sides.server)
    grown = np.where(are_known(at_client, at_server), at_server - at_client, UNKNOWN)
    for way, row in np.argwhere(are_known(grown) & (grown != 0)).tolist():
        seen = (sides.clients[row], int(at_client[way, row])), (sides.servers[row], int(at_server[way, row]))
        if not all(_is_acknowledged(vantage, DIRECTIONS[way], end) for vantage, end in seen):
            grown[way, row] = UNKNOWN
    for direction in DIRECTIONS:
        for row in np.flatnonzero((grown[direction] == UNKNOWN) & _may_be_moved(sides, direction)).tolist():
            grown[direction, row] = _moved_bytes(sides.clients[row].packets, sides.servers[row].packets, direction)
    down = grown[Direction.DOWN]
    grown[Direction.DOWN] = np.where(down == UNKNOWN, UNKNOWN, -down)
    return grown


def _may_be_moved(sides: Sides, direction: Direction) -> BoolArray:
    """Of which connections both captures hold the beginning of a stream, and neither its size nor payload shows that
    all of it lies as it lay."""
    aligned = sides.aligned(direction)
    sizes = (side.of_flow(direction, "stream_bytes") for side in (sides.client, sides.server))
    other = (1.0 - aligned.matched) * aligned.compared
    differs = (aligned.compared == 0) | (other > FEW_PIECES)
    may: BoolArray = aligned.is_known & differs & np.not_equal(*sizes) & np.logical_and(*sides.began(direction))
    return may


def _moved_bytes(client: PacketColumns, server: PacketColumns, direction: Direction) -> int:
    """How much farther from the SYN a stream's last packets lie at the server, where no shift lays it over itself:
    packets with the same length and TSval (or IP ID) lie apart, by as little as a gateway adds; else `UNKNOWN`."""
    (left, at_client), (right, at_server) = (_identified(packets, direction) for packets in (client, server))
    _, one, two = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    order = np.argsort(at_client[one])
    shifts = (at_server[two] - at_client[one])[order]
    moved = shifts[shifts != 0]
    is_gateway = len(moved) >= FEWEST_MOVED and np.abs(moved).max() <= GATEWAY_BYTES
    return int(moved[-1]) if is_gateway else UNKNOWN


def _identified(packets: PacketColumns, direction: Direction) -> tuple[Int64Array, Int64Array]:
    """What identifies the data packets of a direction that no other of the stream has in common, and their offsets.

    An IP ID of 0 identifies nothing.
    """
    number = np.where(packets.marks & _HAS_TIMESTAMPS, packets.tsval, packets.ip_id).astype(np.int64)
    chosen = (packets.direction == direction) & (packets.payload_bytes > 0) & (number != 0)
    length = packets.payload_bytes[chosen].astype(np.int64) % (1 << _LENGTH_BITS)
    packets_once = np.unique([number[chosen] << _LENGTH_BITS | length, packets.sequence_offset[chosen]], axis=1)
    identity, first, copies = np.unique(packets_once[0], return_index=True, return_counts=True)
    return identity[copies == 1], packets_once[1][first[copies == 1]]


def _is_acknowledged(vantage: Vantage, direction: Direction, end: int) -> bool:
    """Whether the last acknowledgement of a stream is that of a FIN at `end`: what a damaged packet shows is not, nor
    one that a tool cut shorter and gave another length."""
    acknowledged = vantage.derived(acknowledgements, direction).value
    return len(acknowledged) > 0 and int(acknowledged[-1]) == end + 1


def _ends(vantages: Sequence[Vantage], summaries: Summaries) -> Int64Array:
    """Where FINs stand in streams up and down (rows) of which the beginning is known."""
    offsets = _core.fin_offsets(packets_of(vantages))
    began = [summaries.of_flow(direction, "initial_sequence_number") != UNKNOWN for direction in DIRECTIONS]
    return np.where(began, offsets, UNKNOWN)
