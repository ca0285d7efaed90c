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
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray

#: Application gateways (FTP, SIP behind NAT) replace an address in a control stream and shift what follows: by so much
#: at most, all in all.
GATEWAY_BYTES = 64

#: So many pieces that differ may be a rewritten head, and are too few to mislead.
FEW_PIECES = 2


def are_moved_within(sides: Sides, direction: Direction) -> BoolArray:
    """Of which connections no shift lays a stream over itself, since it is longer or shorter at the other end by so
    little as a gateway changes it, and more than a head differs or payload was not compared.

    Asked only where payload does not show that all of it lies as it lay.
    """
    aligned = sides.aligned(direction)
    moved = np.zeros(len(sides), np.bool_)
    other = (1.0 - aligned.matched) * aligned.compared
    asked = np.flatnonzero(aligned.is_known & ((aligned.compared == 0) | (other > FEW_PIECES)))
    if len(asked):
        grown = size_changes(sides.at(sides.rows[asked]))[direction]
        moved[asked] = are_known(grown) & (grown != 0) & (np.abs(grown) <= GATEWAY_BYTES)
    return moved


def size_changes(sides: Sides) -> Int64Array:
    """Bytes by which streams up and down (rows) grew on the way, from their SYNs to their FINs; `UNKNOWN` unless both
    captures saw both, and each the acknowledgement of the FIN."""
    at_client, at_server = _ends(sides.clients, sides.client), _ends(sides.servers, sides.server)
    grown = np.where(are_known(at_client, at_server), at_server - at_client, UNKNOWN)
    for way, row in np.argwhere(are_known(grown) & (grown != 0)).tolist():
        seen = (sides.clients[row], int(at_client[way, row])), (sides.servers[row], int(at_server[way, row]))
        if not all(_is_acknowledged(vantage, DIRECTIONS[way], end) for vantage, end in seen):
            grown[way, row] = UNKNOWN
    down = grown[Direction.DOWN]
    grown[Direction.DOWN] = np.where(down == UNKNOWN, UNKNOWN, -down)
    return grown


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
