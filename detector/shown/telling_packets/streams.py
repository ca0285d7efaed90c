"""Packets that carry what differs, or is compared, between the streams at both ends: of content."""

from __future__ import annotations

from detector.pair import Vantage
from detector.shown.telling_packets.openings_and_ends import opened_by
from detector.shown.telling_packets.rows import data_rows, row_of_byte
from detector.shown.telling_packets.telling import Scene, Telling, counted
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, PayloadSample

_STREAM = {Direction.UP: "the client's stream", Direction.DOWN: "the server's stream"}


def first_bytes(scene: Scene) -> list[Telling]:
    """The packets that begin the streams at both ends: request and answer, or what stands in their place."""
    directions = DIRECTIONS if scene.direction is None else (scene.direction,)
    return [telling for direction in directions for telling in _carrying(scene, direction, 0)]


def first_answer(scene: Scene) -> list[Telling]:
    """The packets that begin the server's stream at both ends."""
    return _carrying(scene, Direction.DOWN, 0)


def first_request(scene: Scene) -> list[Telling]:
    """The packets that begin the client's stream at both ends."""
    return _carrying(scene, Direction.UP, 0)


def _carrying(scene: Scene, direction: Direction, offset: int) -> list[Telling]:
    made = []
    for vantage, what in ((scene.pair.sender(direction), "leaves"), (scene.pair.receiver(direction), "arrives")):
        if vantage is None:
            continue
        row = row_of_byte(vantage, direction, offset)
        if row is None:
            row = next(iter(vantage.derived(data_rows, direction).tolist()), None)
        if row is not None:
            size = counted(int(vantage.packets.payload_bytes[row]), "byte")
            begins = f"byte {offset:,} of {_STREAM[direction]}" if offset else f"the beginning of {_STREAM[direction]}"
            made.append(Telling(vantage, row, f"{what} with {begins}, in {size}"))
    return made


def differing_bytes(scene: Scene) -> list[Telling]:
    """The packets with the first bytes that differ between the streams at both ends."""
    client, server = scene.pair.client_side, scene.pair.server_side
    if client is None or server is None:
        return []
    made: list[Telling] = []
    for direction in DIRECTIONS:
        alignment = scene.pair.alignment.get(direction)
        if alignment is None or alignment.compared == 0 or alignment.matched >= 1:
            continue
        at = _first_difference(client.payload[direction], server.payload[direction], alignment.shift_bytes)
        if at is None:
            continue
        for vantage, offset in ((client, at), (server, at + alignment.shift_bytes)):
            row = row_of_byte(vantage, direction, offset)
            if row is not None:
                shows = f"carries byte {offset:,} of {_STREAM[direction]}, which differs at the other end"
                made.append(Telling(vantage, row, shows))
    return made or first_bytes(scene)


def _first_difference(client: PayloadSample, server: PayloadSample, shift: int) -> int | None:
    """The first byte of the client's side that differs where both samples hold it; None where none does."""
    others = sorted(zip(server.offsets.tolist(), server.pieces, strict=True))
    for offset, piece in sorted(zip(client.offsets.tolist(), client.pieces, strict=True)):
        for begin, other in others:
            low: int = max(offset, begin - shift)
            high = min(offset + len(piece), begin - shift + len(other))
            if low >= high:
                continue
            mine = piece[low - offset : high - offset]
            theirs = other[low + shift - begin : high + shift - begin]
            if mine != theirs:
                return low + next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b)
    return None


def request_and_answer(scene: Scene) -> list[Telling]:
    """The first request and its answer in the one capture that holds the connection."""
    made: list[Telling] = []
    for vantage in scene.pair.vantages:
        made += _asked_and_answered(vantage) or opened_by(vantage)
    return made


def _asked_and_answered(vantage: Vantage) -> list[Telling]:
    packets = vantage.packets
    answers = vantage.derived(data_rows, Direction.DOWN)
    asked = vantage.derived(data_rows, Direction.UP)
    asked = asked[asked < answers[0]] if len(answers) else asked[:0]
    if len(asked) == 0:
        return []
    took_ms = (int(packets.time_ns[answers[0]]) - int(packets.time_ns[asked[-1]])) / 1e6
    return [
        Telling(vantage, int(asked[-1]), "ends the first request"),
        Telling(vantage, int(answers[0]), f"begins the answer, {took_ms:.3g} ms after the request"),
    ]
