"""Packets that carry what differs, or is compared, between the streams at both ends: of content."""

from __future__ import annotations

from collections.abc import Sequence

from detector.pair import Vantage
from detector.presentation.telling_packets.openings_and_ends import opened_by
from detector.presentation.telling_packets.rows import data_rows, row_of_byte, rows_of_flows
from detector.presentation.telling_packets.telling import Scene, Telling, counted
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, PayloadSample

_STREAM = {Direction.UP: "the client's stream", Direction.DOWN: "the server's stream"}


def first_bytes(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """The packets that begin the streams at both ends: request and answer, or what stands in their place."""
    return _beginnings(scenes, [DIRECTIONS if scene.direction is None else (scene.direction,) for scene in scenes])


def first_answer(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """The packets that begin the server's stream at both ends."""
    return _beginnings(scenes, [(Direction.DOWN,)] * len(scenes))


def first_request(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """The packets that begin the client's stream at both ends."""
    return _beginnings(scenes, [(Direction.UP,)] * len(scenes))


def _beginnings(scenes: Sequence[Scene], asked: Sequence[Sequence[Direction]]) -> list[list[Telling]]:
    """The packets that begin the asked streams of each connection."""
    made: list[list[Telling]] = [[] for _ in scenes]
    for direction in DIRECTIONS:
        pairs = [scene.pair if direction in ways else None for scene, ways in zip(scenes, asked, strict=True)]
        for seen, what in (
            ([None if pair is None else pair.sender(direction) for pair in pairs], "leaves"),
            ([None if pair is None else pair.receiver(direction) for pair in pairs], "arrives"),
        ):
            begins = f"{what} with the beginning of {_STREAM[direction]}, in "
            openings = rows_of_flows(_core.stream_openings, seen, [direction] * len(seen))
            for place, vantage, (row, payload_bytes) in openings:
                made[place].append(Telling(vantage, row, begins + counted(payload_bytes, "byte")))
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
    return made or first_bytes([scene])[0]


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
