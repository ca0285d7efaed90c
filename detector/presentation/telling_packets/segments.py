"""Segments as they left and as they arrived, field by field: of packet identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from detector.pair import Pair, Vantage
from detector.presentation.telling_packets.rows import data_rows, pure_acknowledgements
from detector.presentation.telling_packets.telling import Scene, Telling, counted, spread
from pepscope import _core
from pepscope._core import Packet
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Mark
from pepscope.results.distinct import are_among

#: Arrived segments that are held against what left.
_LOOKED_AT = 256

_UP = int(Direction.UP)
_HAS_TIMESTAMPS = int(Mark.HAS_TIMESTAMPS)


def same(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """Data segments that arrive as they left, or, where a middlebox rewrites all of them, with fewest changes."""
    return _compared(scenes, _FEWEST_CHANGES)


def other(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """Data segments that arrive with other fields than those with which their bytes left."""
    return _compared(scenes, _MOST_OF_CHANGED)


def either(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """Data segments that arrive, those with most changes first."""
    return _compared(scenes, _MOST_CHANGES)


#: Which segments stand first: the orders of `pepscope._core.compared_segments`.
_FEWEST_CHANGES, _MOST_CHANGES, _MOST_OF_CHANGED = range(3)


def _compared(scenes: Sequence[Scene], order: int) -> list[list[Telling]]:
    """Arrived data segments, each beside the one that held its first byte when it left: of several copies the one with
    the fewest fields that changed. None where a vantage is missing."""
    made: list[list[Telling]] = [[] for _ in scenes]
    both = [
        (place, pair, client, server)
        for place, pair in enumerate(scene.pair for scene in scenes)
        if (client := pair.client_side) is not None and (server := pair.server_side) is not None
    ]
    shifts = [[_shift(pair, way) for way in DIRECTIONS] for _, pair, _, _ in both]
    clients, servers = [client.packets for _, _, client, _ in both], [server.packets for *_, server in both]
    most = max([scene.most for scene in scenes], default=0)
    found = _core.compared_segments(clients, servers, shifts, order, _LOOKED_AT, most)
    for (place, _, client, server), shift, segments in zip(both, shifts, found, strict=True):
        for way, (left, sent), (row, came) in segments:
            emitter, receiver = (client, server) if way == _UP else (server, client)
            before, arrived = _in_words(sent, came, shift[way] or 0)
            made[place] += [Telling(emitter, left, before), Telling(receiver, row, arrived)]
    return made


def _shift(pair: Pair, direction: Direction) -> int | None:
    return pair.receiver_shift(direction) if direction in pair.alignment else None


def _in_words(sent: Packet, came: Packet, shift: int) -> tuple[str, str]:
    """A segment as it left and as it arrived."""
    first = came.sequence_offset + shift
    begin = f"bytes {first:,} to {first + came.payload_bytes:,}"
    changes = _differences(sent, came, shift)
    if changes:
        return (
            f"leaves with byte {first:,} and {', '.join([was for was, _ in changes])}",
            f"arrives with {begin} and {', '.join([now for _, now in changes])}",
        )
    return f"leaves with {begin}", f"arrives as it left, with {begin}: {_fields(came)}"


def _differences(sent: Packet, came: Packet, shift: int) -> list[tuple[str, str]]:
    """Fields of two segments that differ, each as it left and as it arrived."""
    found = []
    if (sent.sequence_offset, sent.payload_bytes) != (came.sequence_offset + shift, came.payload_bytes):
        found.append((f"length {sent.payload_bytes}", f"length {came.payload_bytes}"))
    if sent.ip_id != came.ip_id:
        found.append((f"IP ID {sent.ip_id}", f"IP ID {came.ip_id}"))
    stamped, still = bool(sent.marks & _HAS_TIMESTAMPS), bool(came.marks & _HAS_TIMESTAMPS)
    if stamped != still:
        found.append((_IF_STAMPED[stamped], _IF_STAMPED[still]))
    elif stamped and (sent.tsval, sent.tsecr) != (came.tsval, came.tsecr):
        found.append((_stamps(sent), _stamps(came)))
    if sent.window_bytes != came.window_bytes:
        found.append((f"window {sent.window_bytes}", f"window {came.window_bytes}"))
    return found


_IF_STAMPED = "no timestamps", "timestamps"


def _stamps(packet: Packet) -> str:
    return f"TSval {packet.tsval}, TSecr {packet.tsecr}"


def _fields(packet: Packet) -> str:
    ip_id = f"IP ID {packet.ip_id}, " if packet.ip_id else ""
    stamps = f"{_stamps(packet)}, " if packet.marks & _HAS_TIMESTAMPS else ""
    return f"{ip_id}{stamps}window {packet.window_bytes}"


def _in_aligned_directions(
    scene: Scene, told: Callable[[Vantage, Vantage, Direction, int, int], list[Telling]]
) -> list[Telling]:
    """Packets that `told` chooses of the sender and the receiver, by direction whose offsets both captures relate."""
    found: list[Telling] = []
    for direction in DIRECTIONS:
        sender, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
        if sender is not None and receiver is not None and direction in scene.pair.alignment:
            found += told(sender, receiver, direction, scene.pair.receiver_shift(direction), scene.most)
    return found[: 2 * scene.most]


def made_acknowledgements(scene: Scene) -> list[Telling]:
    """Acknowledgements that arrive at a place in the stream at which the receiver never sent one."""
    return _in_aligned_directions(scene, _made)


def _made(sender: Vantage, receiver: Vantage, direction: Direction, shift: int, most: int) -> list[Telling]:
    came, sent = (pure_acknowledgements(each.packets, direction.reverse) for each in (sender, receiver))
    values = sender.packets.acknowledgement_offset[came]
    own = receiver.packets.acknowledgement_offset[sent] + shift
    unknown = came[~are_among(values, own) & (values > 0)]
    made = []
    for row in spread(unknown, most).tolist():
        value = int(sender.packets.acknowledgement_offset[row])
        total = counted(value, "byte")
        made.append(Telling(sender, row, f"acknowledges {total}, at which the receiver sent no acknowledgement"))
        beyond = np.flatnonzero(receiver.packets.acknowledgement_offset[sent] + shift > value)
        if len(beyond):
            next_row = int(sent[beyond[0]])
            reached = counted(int(receiver.packets.acknowledgement_offset[next_row]) + shift, "byte")
            made.append(Telling(receiver, next_row, f"is the receiver's first acknowledgement beyond: of {reached}"))
    return made


def acknowledgements_ahead(scene: Scene) -> list[Telling]:
    """Acknowledgements that arrive, each beside one of the receiver's own: of less, with a later TSval."""
    return _in_aligned_directions(scene, _ahead)


def _ahead(sender: Vantage, receiver: Vantage, direction: Direction, shift: int, most: int) -> list[Telling]:
    came = pure_acknowledgements(sender.packets, direction.reverse)
    sent = pure_acknowledgements(receiver.packets, direction.reverse)
    came, sent = (
        rows[(each.packets.marks[rows] & _HAS_TIMESTAMPS) != 0] for each, rows in ((sender, came), (receiver, sent))
    )
    if len(sent) == 0:
        return []
    first = receiver.packets.tsval[sent[0]]
    # Modulo 2^32, later and earlier (RFC 7323, section 5.2).
    came_at, sent_at = (
        (each.packets.tsval[rows] - first).astype(np.int32) for each, rows in ((sender, came), (receiver, sent))
    )
    order = np.argsort(sent_at, kind="stable")
    own = receiver.packets.acknowledgement_offset[sent[order]] + shift
    later = np.searchsorted(sent_at[order], came_at, side="right")
    least = np.append(np.minimum.accumulate(own[::-1])[::-1], np.iinfo(np.int64).max)
    values = sender.packets.acknowledgement_offset[came]
    told = []
    for place in spread(np.flatnonzero(least[later] < values), most).tolist():
        begin, row = later[place], int(came[place])
        own_row = int(sent[order[begin + np.argmin(own[begin:])]])
        of_own = counted(int(least[begin]), "byte")
        told += [
            Telling(sender, row, f"acknowledges {counted(int(values[place]), 'byte')} with {_tsval(sender, row)}"),
            Telling(
                receiver, own_row, f"is the receiver's own: it acknowledges {of_own} with {_tsval(receiver, own_row)}"
            ),
        ]
    return told


def _tsval(vantage: Vantage, row: int) -> str:
    return f"TSval {int(vantage.packets.tsval[row])}"


def around_change(scene: Scene) -> list[Telling]:
    """Segments before and behind the byte at which they change their maker."""
    direction, byte = scene.direction, scene.evidence.numbers.get("from_byte")
    if direction is None or not isinstance(byte, int):
        return []
    emitter, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    if emitter is None or receiver is None or direction not in scene.pair.alignment:
        return []
    shift = scene.pair.receiver_shift(direction)
    looked_at = spread(receiver.derived(data_rows, direction), _LOOKED_AT)
    arrived, left, _ = _core.least_changed(direction, emitter.packets, receiver.packets, shift, looked_at)
    is_behind = receiver.packets.sequence_offset[arrived] + shift >= byte
    before, behind = np.flatnonzero(~is_behind)[-1:], np.flatnonzero(is_behind)[: scene.most - 1]
    made = []
    for place in (*before.tolist(), *behind.tolist()):
        sent_row, row = int(left[place]), int(arrived[place])
        sent, came = _in_words(emitter.packets.packet(sent_row), receiver.packets.packet(row), shift)
        made += [Telling(emitter, sent_row, sent), Telling(receiver, row, came)]
    return made
