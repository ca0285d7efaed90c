"""Questions and answers in one capture: of groups and connections that are judged by exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from detector.shown.telling_packets.telling import duration, spread
from pepscope.captures.capture import Capture
from pepscope.captures.exchanges import EXCHANGE_KINDS, Exchanges
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Direction, Int64Array, PacketColumns
from pepscope.results.verdicts import GroupSide

#: The direction of the questions that the far end answers.
_FAR_ANSWERS = {GroupSide.CLIENT: Direction.UP, GroupSide.SERVER: Direction.DOWN}

#: Handshakes that are looked at in one group.
_HANDSHAKES = 512


def fastest_exchanges(capture: Capture, connections: Sequence[int], side: GroupSide, most: int) -> list[EvidencePacket]:
    """The exchanges with the far end whose answers came soonest, one a connection; those first that no person delays.

    `side` is where the capture was taken: the client's side times answers of servers, the server's those of clients.
    """
    exchanges = capture.exchanges()
    rows = _soonest(exchanges, connections, side)[:most].tolist()
    return [packet for row in rows for packet in _exchange(capture, exchanges, row)]


def exchanges_by_connection(
    capture: Capture, connections: Sequence[int], side: GroupSide
) -> Mapping[int, tuple[EvidencePacket, ...]]:
    """Of each connection that has any the exchange that `fastest_exchanges` names of it alone."""
    exchanges = capture.exchanges()
    rows = _soonest(exchanges, connections, side)
    rows = rows[np.argsort(exchanges.connection[rows], kind="stable")]
    numbers = exchanges.connection[rows].tolist()
    return {
        number: tuple(_exchange(capture, exchanges, row)) for number, row in zip(numbers, rows.tolist(), strict=True)
    }


def _soonest(exchanges: Exchanges, connections: Sequence[int], side: GroupSide) -> Int64Array:
    """The row of the exchange of each connection whose answer came soonest, strict ones first; soonest first."""
    numbers = np.unique(np.asarray(connections, np.int64))
    # Of another type they would make the search copy the whole column.
    sought = numbers.astype(exchanges.connection.dtype)
    begin, end = (np.searchsorted(exchanges.connection, sought + each) for each in (0, 1))
    counts = end - begin
    every = np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    rows = every[(exchanges.asked[every] == _FAR_ANSWERS[side]) & ~exchanges.repeated[every]]
    took_ns = exchanges.answered_ns[rows] - exchanges.question_ns[rows]
    rows = rows[np.lexsort((took_ns, ~exchanges.strict[rows]))]
    _, first = np.unique(exchanges.connection[rows], return_index=True)
    soonest: Int64Array = rows[np.sort(first)]
    return soonest


def _exchange(capture: Capture, exchanges: Exchanges, row: int) -> list[EvidencePacket]:
    """Question, acknowledgement and answer of one exchange."""
    connection = int(exchanges.connection[row])
    asked = Direction(int(exchanges.asked[row]))
    packets, frames = capture.packets(connection), capture.frame_numbers(connection)
    question_ns, acknowledged_ns, answered_ns = (
        int(column[row]) for column in (exchanges.question_ns, exchanges.acknowledged_ns, exchanges.answered_ns)
    )
    kind = EXCHANGE_KINDS[int(exchanges.kind[row])]
    moments = [
        (_at(packets, asked, question_ns, carrying=True), f"ends a question ({kind})"),
        (
            _at(packets, asked.reverse, acknowledged_ns, carrying=False),
            f"is the transport's acknowledgement, {duration((acknowledged_ns - question_ns) / 1e9)} after the question",
        ),
        (
            _at(packets, asked.reverse, answered_ns, carrying=True),
            f"begins the answer, {duration((answered_ns - question_ns) / 1e9)} after the question",
        ),
    ]
    if acknowledged_ns == answered_ns:
        moments = [moments[0], (moments[2][0], f"{moments[2][1]}, and acknowledges it")]
    return [
        EvidencePacket(*capture.located(int(frames[at])), int(packets.time_ns[at]), shows)
        for at, shows in moments
        if at is not None
    ]


def _at(packets: PacketColumns, direction: Direction, time_ns: int, *, carrying: bool) -> int | None:
    rows: Int64Array = np.flatnonzero((packets.time_ns == time_ns) & (packets.direction == direction))
    if carrying:
        rows = rows[packets.payload_bytes[rows] > 0]
    return int(rows[0]) if len(rows) else None


def fastest_handshakes(
    capture: Capture, connections: Sequence[int], side: GroupSide, most: int
) -> list[EvidencePacket]:
    """The fastest handshakes with far hosts, one a host, of some hundred of the connections."""
    fastest: dict[str, tuple[int, int]] = {}
    for number in spread(np.asarray(connections, np.int64), _HANDSHAKES).tolist():
        connection = capture.connections[number]
        took, host = (
            (connection.handshake_syn_ack_ns, connection.server_address)
            if side is GroupSide.CLIENT
            else (connection.handshake_ack_ns, connection.client_address)
        )
        if took is not None and (host not in fastest or took < fastest[host][0]):
            fastest[host] = took, number
    made: list[EvidencePacket] = []
    for host, (took, number) in sorted(fastest.items(), key=lambda each: each[1])[:most]:
        made += _handshake(capture, number, side, f"handshake with {host}, which takes {duration(took / 1e9)}")
    return made


def _handshake(capture: Capture, number: int, side: GroupSide, which: str) -> list[EvidencePacket]:
    packets, frames = capture.packets(number), capture.frame_numbers(number)
    asks = _FAR_ANSWERS[side]
    begun = np.flatnonzero(packets.direction == asks)[:1].tolist()
    answers = np.flatnonzero(packets.direction == asks.reverse).tolist()
    answered = [row for row in answers if begun and row > begun[0]][:1]
    shows = (f"begins the {which}", f"ends the {which}")
    return [
        EvidencePacket(*capture.located(int(frames[row])), int(packets.time_ns[row]), what)
        for row, what in zip([*begun, *answered], shows, strict=False)
    ]
