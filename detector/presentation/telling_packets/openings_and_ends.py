"""SYN, SYN-ACK, FIN and RST at both vantage points: of handshakes, ends of streams and aborts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from detector.methods.teardown import find_abort
from detector.pair import Vantage
from detector.presentation.telling_packets.rows import acknowledging_rows, first_flagged, flag_rows
from detector.presentation.telling_packets.telling import Scene, Telling, counted
from pepscope import _core
from pepscope._core import Packet
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Mark, TcpFlag

_SEGMENT = {Direction.UP: "SYN", Direction.DOWN: "SYN-ACK"}
_SYN, _ACK, _FIN, _RST = (int(flag) for flag in (TcpFlag.SYN, TcpFlag.ACK, TcpFlag.FIN, TcpFlag.RST))
_HAS_TIMESTAMPS = int(Mark.HAS_TIMESTAMPS)
_END = {Direction.UP: "client", Direction.DOWN: "server"}


def handshake(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """SYN and SYN-ACK as they left and as they arrived."""
    made: list[list[Telling]] = [[] for _ in scenes]
    for direction in DIRECTIONS:
        for vantages, what in (
            ([scene.pair.sender(direction) for scene in scenes], "leaves"),
            ([scene.pair.receiver(direction) for scene in scenes], "arrives"),
        ):
            begins = f"is the {_SEGMENT[direction]} as it {what}: "
            for place, vantage, row, syn in _first_flagged(vantages, direction, _SYN):
                made[place].append(Telling(vantage, row, begins + _fields(syn)))
    return made


def _first_flagged(
    vantages: Sequence[Vantage | None], direction: Direction, flags: int
) -> Iterator[tuple[int, Vantage, int, Packet]]:
    """The first packet of a direction that bears any of these flags, of each vantage that has one, with its place."""
    there = [(place, vantage) for place, vantage in enumerate(vantages) if vantage is not None]
    found = _core.first_flagged_packets([vantage.packets for _, vantage in there], direction, flags)
    for (place, vantage), first in zip(there, found, strict=True):
        if first is not None:
            yield place, vantage, *first


def _fields(packet: Packet) -> str:
    """What a stack chooses in the segment that opens a direction."""
    ip_id = f", IP ID {packet.ip_id}" if packet.ip_id else ""
    stamp = f", TSval {packet.tsval}" if packet.marks & _HAS_TIMESTAMPS else ""
    return f"window {packet.window_bytes}, TTL {packet.ttl}{ip_id}{stamp}"


def own_handshake(scene: Scene) -> list[Telling]:
    """The handshake as the one capture that holds the connection shows it, to the client's first ACK."""
    return [telling for vantage in scene.pair.vantages for telling in opened_by(vantage)]


def opened_by(vantage: Vantage) -> list[Telling]:
    """SYN, SYN-ACK and ACK in one capture."""
    packets, connection = vantage.packets, vantage.connection
    made = []
    for direction in DIRECTIONS:
        row = first_flagged(packets, direction, _SYN)
        if row is not None:
            after = connection.handshake_syn_ack_ns if direction is Direction.DOWN else None
            late = "" if after is None else f", {after / 1e6:.3g} ms after the SYN"
            made.append(Telling(vantage, row, f"is the {_SEGMENT[direction]}{late}"))
    if len(made) == len(DIRECTIONS) and connection.handshake_ack_ns is not None:
        answered = first_flagged(packets, Direction.UP, _ACK)
        if answered is not None:
            took = f"{connection.handshake_ack_ns / 1e6:.3g} ms after the SYN-ACK"
            made.append(Telling(vantage, answered, f"is the client's first ACK, {took}"))
    return made


def ends_of_streams(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """The FINs of the direction of which the finding speaks, or of both: where they left and where they arrived."""
    made: list[list[Telling]] = [[] for _ in scenes]
    for direction in DIRECTIONS:
        asked = [(place, scene.pair) for place, scene in enumerate(scenes) if scene.direction in (None, direction)]
        for vantages, what in (
            (
                [pair.receiver(direction) for _, pair in asked],
                f"is the first FIN of the {_END[direction]} that arrives",
            ),
            ([pair.sender(direction) for _, pair in asked], f"is the first FIN that the {_END[direction]} sends"),
        ):
            for place, vantage, row, fin in _first_flagged(vantages, direction, _FIN):
                before = counted(fin.sequence_offset + fin.payload_bytes, "byte")
                made[asked[place][0]].append(Telling(vantage, row, f"{what}, behind {before}"))
    return made


def abort(scene: Scene) -> list[Telling]:
    """The abort at the receiver, and at the sender the last acknowledgement and the abort where it came."""
    direction = scene.direction
    if direction is None:
        return []
    sender, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    if sender is None or receiver is None:
        return []
    made = []
    found = find_abort(receiver.packets, direction)
    if found is not None:
        rows = flag_rows(receiver.packets, direction.reverse, _RST | _FIN)
        at = rows[receiver.packets.time_ns[rows] >= found.time_ns]
        if len(at):
            got = counted(int(found.reached_bytes), "byte")
            made.append(Telling(receiver, int(at[0]), f"aborts the connection, of which the receiver has {got}"))
    acknowledging = sender.derived(acknowledging_rows, direction)
    if len(acknowledging):
        row = int(acknowledging[-1])
        most = counted(int(sender.packets.acknowledgement_offset[row]), "byte")
        made.append(Telling(sender, row, f"acknowledges most of all to the sender: {most}"))
    reset = first_flagged(sender.packets, direction.reverse, _RST)
    if reset is not None:
        made.append(Telling(sender, reset, "is the abort where it reaches the sender"))
    return made
