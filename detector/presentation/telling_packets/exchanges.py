"""Questions and answers in one capture: of groups and connections that are judged by exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from detector.presentation.telling_packets.telling import duration, spread
from pepscope.captures.capture import NO_FRAME, Capture
from pepscope.captures.exchanges import EXCHANGE_KINDS, ExchangeKind, Exchanges
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import GroupSide

#: The direction of the questions that the far end answers.
_FAR_ANSWERS = {GroupSide.CLIENT: Direction.UP, GroupSide.SERVER: Direction.DOWN}

#: Exchanges that declare a proxy.
_DECLARING = (
    ExchangeKind.PROXY_CONNECT, ExchangeKind.PROXY_REQUEST, ExchangeKind.SOCKS_REQUEST, ExchangeKind.PROXY_HEADER
)  # fmt: skip

#: Handshakes that are looked at in one group.
_HANDSHAKES = 512


def fastest_exchanges(capture: Capture, connections: Sequence[int], side: GroupSide, most: int) -> list[EvidencePacket]:
    """The exchanges with the far end whose answers came soonest, one a connection; those first that no person delays.

    `side` is where the capture was taken: the client's side times answers of servers, the server's those of clients.
    """
    exchanges = capture.exchanges()
    rows = _soonest(exchanges, connections, side)[:most]
    return [packet for packets in _packets(capture, exchanges, rows) for packet in packets]


def declaring_exchanges(
    capture: Capture, connections: Sequence[int], side: GroupSide, most: int
) -> list[EvidencePacket]:
    """The exchanges in which clients ask for a proxy, or begin as one, one a connection, on either side."""
    del side
    exchanges = capture.exchanges()
    rows = _soonest(exchanges, connections, GroupSide.CLIENT)
    rows = rows[np.isin(exchanges.kind[rows], _DECLARING)][:most]
    return [packet for packets in _packets(capture, exchanges, rows) for packet in packets]


def exchanges_by_connection(
    capture: Capture, connections: Sequence[int], side: GroupSide
) -> Mapping[int, tuple[EvidencePacket, ...]]:
    """Of each connection that has any the exchange that `fastest_exchanges` names of it alone."""
    exchanges = capture.exchanges()
    rows = _soonest(exchanges, connections, side)
    rows = rows[np.argsort(exchanges.connection[rows], kind="stable")]
    return dict(zip(exchanges.connection[rows].tolist(), _packets(capture, exchanges, rows), strict=True))


def _soonest(exchanges: Exchanges, connections: Sequence[int], side: GroupSide) -> Int64Array:
    """The row of the exchange of each connection whose answer came soonest, strict ones first and before these what
    declares a proxy; soonest first."""
    ascending = np.sort(np.asarray(connections, np.int64))
    numbers = ascending[np.diff(ascending, prepend=-1) > 0]
    # Of another type they would make the search copy the whole column.
    sought = numbers.astype(exchanges.connection.dtype)
    begin, end = (np.searchsorted(exchanges.connection, sought + each) for each in (0, 1))
    counts = end - begin
    every = np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    rows = every[(exchanges.asked[every] == _FAR_ANSWERS[side]) & ~exchanges.repeated[every]]
    took_ns = exchanges.answered_ns[rows] - exchanges.question_ns[rows]
    rows = rows[np.lexsort((took_ns, ~exchanges.strict[rows], ~np.isin(exchanges.kind[rows], _DECLARING)))]
    _, first = np.unique(exchanges.connection[rows], return_index=True)
    soonest: Int64Array = rows[np.sort(first)]
    return soonest


def _packets(capture: Capture, exchanges: Exchanges, rows: Int64Array) -> list[tuple[EvidencePacket, ...]]:
    """Question, acknowledgement and answer of some exchanges."""
    asked = exchanges.asked[rows]
    times_ns: Int64Array = np.stack(
        [exchanges.question_ns[rows], exchanges.acknowledged_ns[rows], exchanges.answered_ns[rows]], 1
    )
    frames = capture.frames_at(
        np.repeat(exchanges.connection[rows].astype(np.int64), len(_CARRYING)),
        np.stack([asked, 1 - asked, 1 - asked], 1).ravel(),
        times_ns.ravel(),
        np.tile(_CARRYING, len(rows)),
    )
    times: list[list[int]] = times_ns.tolist()
    of_exchanges: list[list[int]] = frames.reshape(len(rows), len(_CARRYING)).tolist()
    return [
        tuple(
            EvidencePacket(*capture.located(frame), time_ns, shows)
            for frame, time_ns, shows in _moments(EXCHANGE_KINDS[kind], moments, found)
            if frame != NO_FRAME
        )
        for kind, moments, found in zip(exchanges.kind[rows].tolist(), times, of_exchanges, strict=True)
    ]


#: Whether question, acknowledgement and answer are packets that carry payload.
_CARRYING = (True, False, True)


def _moments(kind: str, times_ns: Sequence[int], frames: Sequence[int]) -> list[tuple[int, int, str]]:
    """Frame, time and what it shows of the packets of an exchange."""
    question_ns, acknowledged_ns, answered_ns = times_ns
    question, acknowledgement, answer = frames
    asks = (question, question_ns, f"ends a question ({kind})")
    answers = f"begins the answer, {duration((answered_ns - question_ns) / 1e9)} after the question"
    if acknowledged_ns == answered_ns:
        return [asks, (answer, answered_ns, f"{answers}, and acknowledges it")]
    later = duration((acknowledged_ns - question_ns) / 1e9)
    acknowledges = f"is the transport's acknowledgement, {later} after the question"
    return [asks, (acknowledgement, acknowledged_ns, acknowledges), (answer, answered_ns, answers)]


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
