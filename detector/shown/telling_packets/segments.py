"""Segments as they left and as they arrived, field by field: of packet identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from detector.pair import Vantage
from detector.shown.telling_packets.rows import data_rows, pure_acknowledgements
from detector.shown.telling_packets.telling import Scene, Telling, counted, spread
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Mark, PacketColumns

#: Arrived segments that are held against what left.
_COMPARED = 256


def same(scene: Scene) -> list[Telling]:
    """Data segments that arrive as they left, or, where a middlebox rewrites all of them, with fewest changes."""
    return _pointed(scene, sorted(_compared(scene), key=lambda each: each[0]))


def other(scene: Scene) -> list[Telling]:
    """Data segments that arrive with other fields than those with which their bytes left."""
    return _pointed(scene, sorted((each for each in _compared(scene) if each[0]), key=lambda each: -each[0]))


def either(scene: Scene) -> list[Telling]:
    """Data segments that arrive, those with most changes first."""
    return _pointed(scene, sorted(_compared(scene), key=lambda each: -each[0]))


#: How many fields of a segment changed, the segment as it arrived, and as it left.
_Compared = tuple[int, Telling, Telling]


def _compared(scene: Scene) -> list[_Compared]:
    return [
        (len(changes), arrived, left)
        for direction in DIRECTIONS
        for arrived, left, changes in _segments(scene, direction)
    ]


def _pointed(scene: Scene, compared: Sequence[_Compared]) -> list[Telling]:
    return [telling for _, arrived, left in compared[: scene.most] for telling in (left, arrived)]


def _segments(scene: Scene, direction: Direction) -> Iterator[tuple[Telling, Telling, list[str]]]:
    """Arrived data segments with those that held their first byte when they left, and the fields that differ."""
    emitter, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    if emitter is None or receiver is None or direction not in scene.pair.alignment:
        return
    shift = scene.pair.receiver_shift(direction)
    sent, came = emitter.packets, receiver.packets
    emitted = data_rows(sent, direction)
    start = sent.sequence_offset[emitted]
    end = start + sent.payload_bytes[emitted]
    for row in spread(data_rows(came, direction), _COMPARED).tolist():
        first = int(came.sequence_offset[row]) + shift
        holding = emitted[(start <= first) & (first < end)]
        if len(holding) == 0:
            continue
        differences = [(_differences(sent, int(each), came, row, shift), int(each)) for each in holding.tolist()]
        changes, left = min(differences, key=lambda each: len(each[0]))
        place = f"bytes {first:,} to {first + int(came.payload_bytes[row]):,}"
        if changes:
            arrived = f"arrives with {place} and {', '.join(now for _, now in changes)}"
            before = f"leaves with byte {first:,} and {', '.join(was for was, _ in changes)}"
        else:
            arrived, before = f"arrives as it left, with {place}: {_fields(came, row)}", f"leaves with {place}"
        names = [was.split(" ")[0] for was, _ in changes]
        yield Telling(receiver, row, arrived), Telling(emitter, left, before), names


def _differences(
    sent: PacketColumns, left: int, came: PacketColumns, arrived: int, shift: int
) -> list[tuple[str, str]]:
    """Fields of two segments that differ, each as it left and as it arrived."""
    found = []
    if int(sent.sequence_offset[left]) != int(came.sequence_offset[arrived]) + shift or int(
        sent.payload_bytes[left]
    ) != int(came.payload_bytes[arrived]):
        found.append((_length(sent, left), _length(came, arrived)))
    if sent.ip_id[left] != came.ip_id[arrived]:
        found.append((f"IP ID {int(sent.ip_id[left])}", f"IP ID {int(came.ip_id[arrived])}"))
    stamps = [bool(packets.marks[row] & Mark.HAS_TIMESTAMPS) for packets, row in ((sent, left), (came, arrived))]
    if stamps != [True, True]:
        if stamps[0] != stamps[1]:
            found.append(tuple("timestamps" if has else "no timestamps" for has in stamps))  # type: ignore[arg-type]
    elif (sent.tsval[left], sent.tsecr[left]) != (came.tsval[arrived], came.tsecr[arrived]):
        found.append((_stamps(sent, left), _stamps(came, arrived)))
    if sent.window_bytes[left] != came.window_bytes[arrived]:
        found.append((f"window {int(sent.window_bytes[left])}", f"window {int(came.window_bytes[arrived])}"))
    return found


def _length(packets: PacketColumns, row: int) -> str:
    return f"length {int(packets.payload_bytes[row])}"


def _stamps(packets: PacketColumns, row: int) -> str:
    return f"TSval {int(packets.tsval[row])}, TSecr {int(packets.tsecr[row])}"


def _fields(packets: PacketColumns, row: int) -> str:
    shown = [f"IP ID {int(packets.ip_id[row])}"] if packets.ip_id[row] else []
    if packets.marks[row] & Mark.HAS_TIMESTAMPS:
        shown.append(_stamps(packets, row))
    return ", ".join([*shown, f"window {int(packets.window_bytes[row])}"])


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
    segments = list(_segments(scene, direction))
    receiver = scene.pair.receiver(direction)
    if receiver is None:
        return []
    shift = scene.pair.receiver_shift(direction)
    at = [int(receiver.packets.sequence_offset[arrived.row]) + shift for arrived, _, _ in segments]
    before = [each for each, start in zip(segments, at, strict=True) if start < byte][-1:]
    behind = [each for each, start in zip(segments, at, strict=True) if start >= byte][: scene.most - 1]
    return [telling for arrived, left, _ in (*before, *behind) for telling in (left, arrived)]
