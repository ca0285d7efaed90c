"""SYN, SYN-ACK, FIN and RST at both vantage points: of handshakes, ends of streams and aborts."""

from __future__ import annotations

from collections.abc import Iterable

from detector.methods.teardown import find_abort
from detector.pair import Vantage
from detector.shown.telling_packets.rows import acknowledging_rows, first_flagged, flag_rows
from detector.shown.telling_packets.telling import Scene, Telling, counted
from pepscope._core import Packet
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Mark, TcpFlag

_SEGMENT = {Direction.UP: "SYN", Direction.DOWN: "SYN-ACK"}
_SYN, _ACK, _FIN, _RST = (int(flag) for flag in (TcpFlag.SYN, TcpFlag.ACK, TcpFlag.FIN, TcpFlag.RST))
_HAS_TIMESTAMPS = int(Mark.HAS_TIMESTAMPS)
_END = {Direction.UP: "client", Direction.DOWN: "server"}


def handshake(scene: Scene) -> list[Telling]:
    """SYN and SYN-ACK as they left and as they arrived."""
    return [telling for direction in DIRECTIONS for telling in _opening(scene, direction)]


def _opening(scene: Scene, direction: Direction) -> Iterable[Telling]:
    for vantage, what in ((scene.pair.sender(direction), "leaves"), (scene.pair.receiver(direction), "arrives")):
        if vantage is None:
            continue
        row = first_flagged(vantage.packets, direction, _SYN)
        if row is not None:
            shows = f"is the {_SEGMENT[direction]} as it {what}: {_fields(vantage.packets.packet(row))}"
            yield Telling(vantage, row, shows)


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


def ends_of_streams(scene: Scene) -> list[Telling]:
    """The FINs of the direction of which the finding speaks, or of both: where they left and where they arrived."""
    directions = DIRECTIONS if scene.direction is None else (scene.direction,)
    made = []
    for direction in directions:
        for vantage, what in (
            (scene.pair.receiver(direction), "is the first FIN of the {} that arrives"),
            (scene.pair.sender(direction), "is the first FIN that the {} sends"),
        ):
            row = None if vantage is None else first_flagged(vantage.packets, direction, _FIN)
            if vantage is not None and row is not None:
                fin = vantage.packets.packet(row)
                end = fin.sequence_offset + fin.payload_bytes
                behind = f", behind {counted(end, 'byte')}"
                made.append(Telling(vantage, row, what.format(_END[direction]) + behind))
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
