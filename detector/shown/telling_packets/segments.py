"""Segments as they left and as they arrived, field by field: of packet identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from detector.pair import Vantage
from detector.shown.telling_packets.rows import data_rows, pure_acknowledgements
from detector.shown.telling_packets.telling import Scene, Telling, counted, spread
from pepscope import _core
from pepscope._core import Packet
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import BoolArray, Direction, Int64Array, Mark

#: Arrived segments that are held against what left.
_COMPARED = 256

_HAS_TIMESTAMPS = int(Mark.HAS_TIMESTAMPS)


def same(scene: Scene) -> list[Telling]:
    """Data segments that arrive as they left, or, where a middlebox rewrites all of them, with fewest changes."""
    return _pointed(scene, _compared(scene), lambda changes: changes)


def other(scene: Scene) -> list[Telling]:
    """Data segments that arrive with other fields than those with which their bytes left."""
    compared = [each.of(each.changes > 0) for each in _compared(scene)]
    return _pointed(scene, compared, np.negative)


def either(scene: Scene) -> list[Telling]:
    """Data segments that arrive, those with most changes first."""
    return _pointed(scene, _compared(scene), np.negative)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Arrived data segments of one direction, each with the one that held its first byte when it left.

    `arrived` are rows at the receiver, ascending, `left` rows at the emitter: of several copies the one with the fewest
    fields that changed, and `changes` are so many.
    """

    emitter: Vantage
    receiver: Vantage
    shift: int
    arrived: Int64Array
    left: Int64Array
    changes: Int64Array

    def of(self, chosen: BoolArray) -> _Compared:
        """Some of them."""
        rows = self.arrived[chosen], self.left[chosen], self.changes[chosen]
        return _Compared(self.emitter, self.receiver, self.shift, *rows)

    def pointed(self, place: int) -> list[Telling]:
        """A segment as it left and as it arrived, in words."""
        left, row = int(self.left[place]), int(self.arrived[place])
        sent, came = self.emitter.packets.packet(left), self.receiver.packets.packet(row)
        first = came.sequence_offset + self.shift
        begin = f"bytes {first:,} to {first + came.payload_bytes:,}"
        changes = _differences(sent, came, self.shift)
        if changes:
            arrived = f"arrives with {begin} and {', '.join([now for _, now in changes])}"
            before = f"leaves with byte {first:,} and {', '.join([was for was, _ in changes])}"
        else:
            arrived, before = f"arrives as it left, with {begin}: {_fields(came)}", f"leaves with {begin}"
        return [Telling(self.emitter, left, before), Telling(self.receiver, row, arrived)]


def _compared(scene: Scene) -> list[_Compared]:
    compared = (_segments(scene, direction) for direction in DIRECTIONS)
    return [each for each in compared if each is not None]


def _pointed(scene: Scene, compared: Sequence[_Compared], rank: Callable[[Int64Array], Int64Array]) -> list[Telling]:
    """The first of the segments of all directions by the rank of their changes."""
    ranked = list[tuple[int, _Compared, int]]()
    for each in compared:
        ranks = rank(each.changes)
        first = np.argsort(ranks, kind="stable")[: scene.most]
        ranked += [(value, each, place) for value, place in zip(ranks[first].tolist(), first.tolist(), strict=True)]
    ranked.sort(key=itemgetter(0))
    return [telling for _, each, place in ranked[: scene.most] for telling in each.pointed(place)]


def _segments(scene: Scene, direction: Direction) -> _Compared | None:
    """Arrived data segments with those that held their first byte when they left; None where a vantage is missing."""
    emitter, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    if emitter is None or receiver is None or direction not in scene.pair.alignment:
        return None
    shift = scene.pair.receiver_shift(direction)
    places = spread(receiver.derived(data_rows, direction), _COMPARED)
    return _Compared(
        emitter, receiver, shift, *_core.least_changed(direction, emitter.packets, receiver.packets, shift, places)
    )


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


def made_acknowledgements(scene: Scene) -> list[Telling]:
    """Acknowledgements that arrive at a place in the stream at which the receiver never sent one."""
    made: list[Telling] = []
    for direction in DIRECTIONS:
        sender, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
        if sender is not None and receiver is not None and direction in scene.pair.alignment:
            made += _made(sender, receiver, direction, scene.pair.receiver_shift(direction), scene.most)
    return made[: 2 * scene.most]


def _made(sender: Vantage, receiver: Vantage, direction: Direction, shift: int, most: int) -> list[Telling]:
    came, sent = (pure_acknowledgements(each.packets, direction.reverse) for each in (sender, receiver))
    values = sender.packets.acknowledgement_offset[came]
    own = np.unique(receiver.packets.acknowledgement_offset[sent] + shift)
    unknown = came[~np.isin(values, own) & (values > 0)]
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


def around_change(scene: Scene) -> list[Telling]:
    """Segments before and behind the byte at which they change their maker."""
    direction, byte = scene.direction, scene.evidence.numbers.get("from_byte")
    if direction is None or not isinstance(byte, int):
        return []
    segments = _segments(scene, direction)
    if segments is None:
        return []
    is_behind = segments.receiver.packets.sequence_offset[segments.arrived] + segments.shift >= byte
    before, behind = np.flatnonzero(~is_behind)[-1:], np.flatnonzero(is_behind)[: scene.most - 1]
    return [telling for place in (*before.tolist(), *behind.tolist()) for telling in segments.pointed(place)]
