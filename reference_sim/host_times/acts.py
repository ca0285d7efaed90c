"""Acts of a machine in a capture that was made at the machine: what arrives, and how soon the answer leaves.

A capture at the machine itself shows a packet as its kernel gets it, and the answer as the kernel hands it to the
device, so that the path has no part in the time between. Only answers that nothing but the machine can have delayed
count, each by what it takes: the kernel alone, or a program that wakes up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from pepscope.captures.capture import Capture
from pepscope.captures.packets import PacketColumns, TcpFlag
from pepscope.errors import UsageError

Int64s = npt.NDArray[np.int64]

_SYN, _FIN, _RST, _PSH = (int(flag) for flag in (TcpFlag.SYN, TcpFlag.FIN, TcpFlag.RST, TcpFlag.PSH))
#: Longer is a timer of TCP's or a person.
_MOST_ANSWER_NS = 30_000_000
#: Longer waits for more data out of order (TCP_COMP_SACK_DELAY of Linux is a twentieth of a round trip).
_MOST_AT_ONCE_NS = 100_000
#: ACKs that a kernel sends at once at the start of a connection (TCP_MAX_QUICKACKS of Linux).
_QUICK = 16
#: At one end of a path the other end's answers take this many times as long as one's own.
_CLEARLY = 3.0


class End(StrEnum):
    """The side of its connections that a captured machine is."""

    CLIENT = "client"
    SERVER = "server"


class Act(StrEnum):
    """What a machine does."""

    #: The kernel answers a SYN or a SYN-ACK.
    OPENING = "opening"
    #: An ACK arrives and the next data leave, of what the program wrote before.
    RELEASE = "release"
    #: The next data arrive and an ACK of them leaves: the kernel's at once, or one after the program has read.
    ACKNOWLEDGEMENT = "acknowledgement"
    #: The same at the start of a connection, where kernels acknowledge single segments and no program has a part in it.
    QUICK_ACKNOWLEDGEMENT = "quick_acknowledgement"
    #: The same of the first data of a connection.
    FIRST_ACKNOWLEDGEMENT = "first_acknowledgement"
    #: Data arrive behind a gap, of which no program learns, and an ACK of what is before the gap leaves at once.
    OUT_OF_ORDER = "out_of_order"
    #: One packet leaves and the next one: of another act, and of the same burst, its second packet and later ones.
    SENDING = "sending"
    SENDING_SECOND = "sending_second"
    SENDING_IN_BURST = "sending_in_burst"
    #: A program's first data on a connection that it opened, that it accepted.
    CONNECTED = "connected"
    ACCEPTED = "accepted"
    #: A server answers a request; a client closes when it has read an answer, before the other side does.
    WAKING = "waking"
    #: A program closes after the other side has.
    CLOSING = "closing"


@dataclass(slots=True)
class Samples:
    """Times of acts, and how long before nothing had arrived at the machine (-1: nothing before)."""

    time_ns: list[int] = field(default_factory=list)
    pause_ns: list[int] = field(default_factory=list)

    def arrays(self) -> tuple[Int64s, Int64s]:
        """Both as arrays."""
        return np.array(self.time_ns, np.int64), np.array(self.pause_ns, np.int64)


Acts = dict[Act, Samples]


def captured_end(capture: Capture, place: str) -> End:
    """The end at which `capture` was made: there answers to handshakes take the machine's time and not the path's.

    Raises UsageError, which names `place`, where no handshake decides.
    """
    quicker = []
    for connection in capture.connections:
        server_ns, client_ns = connection.handshake_syn_ack_ns, connection.handshake_ack_ns
        if server_ns and client_ns:
            quicker.append(np.log(client_ns / server_ns))
    typical = float(np.median(quicker)) if quicker else 0.0
    if abs(typical) < np.log(_CLEARLY):
        raise UsageError(
            f"{place} must be captured at an end of its connections, and no handshake shows which: give --end"
        )
    return End.SERVER if typical > 0 else End.CLIENT


@dataclass(slots=True)
class _Connection:
    """What has happened so far on a connection, as the machine sees it."""

    sent_offset: int = -1
    acknowledged_offset: int = 0
    has_sent_data: bool = False
    #: Its handshake was captured.
    begins_here: bool = False
    established_ns: int | None = None
    established_pause_ns: int = -1
    #: The last data that arrived and were not answered with data.
    asked_ns: int | None = None
    asked_pause_ns: int = -1
    arrived_data_packets: int = 0
    unacknowledged_packets: int = 0
    sent_acknowledgements: int = 0
    #: The last packet that left followed on another one in a burst.
    is_in_burst: bool = False
    finished_ns: int | None = None
    finished_pause_ns: int = -1


@dataclass(frozen=True, slots=True)
class _Packet:
    time_ns: int
    connection: int
    leaves: bool
    flags: int
    payload_bytes: int
    sequence_offset: int
    acknowledgement_offset: int


def acts_of(capture: Capture, end: End) -> Acts:
    """The acts of the machine at `end` of all connections of a capture."""
    acts: Acts = {act: Samples() for act in Act}
    states: dict[int, _Connection] = {}
    last: _Packet | None = None
    arrived_ns: int | None = None
    pause_ns = -1
    for packet in _packets(capture, end):
        state = states.setdefault(packet.connection, _Connection())
        if packet.leaves:
            if last is not None:
                _answer(acts, state, last, packet, pause_ns)
            _leave(acts, end, state, packet)
        else:
            pause_ns = -1 if arrived_ns is None else packet.time_ns - arrived_ns
            arrived_ns = packet.time_ns
            _arrive(state, packet, pause_ns)
        last = packet
    return acts


def _add(acts: Acts, act: Act, time_ns: int, pause_ns: int) -> None:
    if 0 < time_ns < _MOST_ANSWER_NS:
        acts[act].time_ns.append(time_ns)
        acts[act].pause_ns.append(pause_ns)


def _arrive(state: _Connection, packet: _Packet, pause_ns: int) -> None:
    is_opening = bool(packet.flags & _SYN)
    if state.established_ns is None and (not is_opening or packet.acknowledgement_offset >= 0):
        state.established_ns, state.established_pause_ns = packet.time_ns, pause_ns
    if is_opening:
        state.begins_here = True
        return
    state.acknowledged_offset = max(state.acknowledged_offset, packet.acknowledgement_offset)
    if packet.payload_bytes:
        state.arrived_data_packets += 1
        state.unacknowledged_packets += 1
        has_all = state.sent_offset <= state.acknowledged_offset
        state.asked_ns = packet.time_ns if has_all else None
        state.asked_pause_ns = pause_ns
    if packet.flags & _FIN and state.finished_ns is None:
        state.finished_ns, state.finished_pause_ns = packet.time_ns, pause_ns


def _answer(acts: Acts, state: _Connection, last: _Packet, packet: _Packet, pause_ns: int) -> None:
    """What leaves directly after another packet: one that arrived on the same connection, or one that left."""
    time_ns = packet.time_ns - last.time_ns
    if last.leaves:
        is_next = packet.connection == last.connection and packet.sequence_offset == _end_of(last)
        is_burst = is_next and packet.payload_bytes > 0 and last.payload_bytes > 0 and not last.flags & _PSH
        in_burst = Act.SENDING_IN_BURST if state.is_in_burst else Act.SENDING_SECOND
        _add(acts, in_burst if is_burst else Act.SENDING, time_ns, pause_ns)
        state.is_in_burst = is_burst
        return
    state.is_in_burst = False
    if packet.connection == last.connection and not packet.flags & _RST:
        if last.flags & _SYN:
            if not packet.payload_bytes:
                _add(acts, Act.OPENING, time_ns, pause_ns)
        elif packet.payload_bytes and not last.payload_bytes and state.has_sent_data:
            # Where all was acknowledged, the program may only now write.
            if state.acknowledged_offset < state.sent_offset and not (last.flags | packet.flags) & _FIN:
                _add(acts, Act.RELEASE, time_ns, pause_ns)
        elif last.payload_bytes and not packet.payload_bytes and not (last.flags | packet.flags) & _FIN:
            act = _acknowledgement(state, last, packet, time_ns)
            if act is not None:
                _add(acts, act, time_ns, pause_ns)


def _acknowledgement(state: _Connection, last: _Packet, packet: _Packet, time_ns: int) -> Act | None:
    """What an ACK that leaves after data is, if it is known what it waited for."""
    if packet.acknowledgement_offset < last.sequence_offset:
        return Act.OUT_OF_ORDER if time_ns < _MOST_AT_ONCE_NS else None
    if packet.acknowledgement_offset != _end_of(last):
        return None
    if state.arrived_data_packets == 1 and state.begins_here:
        return Act.FIRST_ACKNOWLEDGEMENT
    if state.unacknowledged_packets >= 2:
        return Act.ACKNOWLEDGEMENT
    return Act.QUICK_ACKNOWLEDGEMENT if state.begins_here and state.sent_acknowledgements < _QUICK else None


def _leave(acts: Acts, end: End, state: _Connection, packet: _Packet) -> None:
    """What a program has done, whatever left in between, and what is known from now on."""
    state.unacknowledged_packets = 0
    state.sent_acknowledgements += packet.payload_bytes == 0
    if packet.payload_bytes and packet.sequence_offset >= state.sent_offset:
        if not state.has_sent_data:
            _first_data(acts, end, state, packet.time_ns)
        elif state.asked_ns is not None and end is End.SERVER:
            _add(acts, Act.WAKING, packet.time_ns - state.asked_ns, state.asked_pause_ns)
        state.has_sent_data, state.asked_ns = True, None
    if packet.flags & _FIN and end is End.CLIENT and state.finished_ns is None and state.asked_ns is not None:
        if state.has_sent_data and packet.sequence_offset >= state.sent_offset:
            _add(acts, Act.WAKING, packet.time_ns - state.asked_ns, state.asked_pause_ns)
        state.asked_ns = None
    if packet.flags & _FIN and state.finished_ns is not None and packet.sequence_offset >= state.sent_offset:
        _add(acts, Act.CLOSING, packet.time_ns - state.finished_ns, state.finished_pause_ns)
        state.finished_ns = None
    if not packet.flags & _SYN:
        state.sent_offset = max(state.sent_offset, _end_of(packet))


def _first_data(acts: Acts, end: End, state: _Connection, now_ns: int) -> None:
    if state.established_ns is None or not state.begins_here:
        return
    taken_ns = now_ns - state.established_ns
    if end is End.CLIENT:
        if state.asked_ns is None:
            _add(acts, Act.CONNECTED, taken_ns, state.established_pause_ns)
        return
    if state.asked_ns is None or 2 * (state.asked_ns - state.established_ns) < taken_ns:
        # The request was there before the program knew of the connection, or the server speaks first.
        _add(acts, Act.ACCEPTED, taken_ns, state.established_pause_ns)


def _end_of(packet: _Packet) -> int:
    return packet.sequence_offset + packet.payload_bytes


def _packets(capture: Capture, end: End) -> Iterator[_Packet]:
    """Of all connections, in order of time."""
    tables: list[tuple[int, PacketColumns]] = []
    for connection in capture.connections:
        tables.append((connection.id, capture.packets(connection.id)))
    if not tables:
        return
    way = 1 if end is End.SERVER else 0
    times = np.concatenate([table.time_ns for _, table in tables])
    columns = [
        np.concatenate([np.full(len(table), number) for number, table in tables]),
        np.concatenate([table.direction == way for _, table in tables]),
        *(
            np.concatenate([getattr(table, name) for _, table in tables])
            for name in ("flags", "payload_bytes", "sequence_offset", "acknowledgement_offset")
        ),
    ]
    order = np.argsort(times, kind="stable")
    yield from map(_Packet, times[order].tolist(), *(column[order].tolist() for column in columns))
