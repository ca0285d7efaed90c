"""What one capture shows, or two captures of one place: handshakes, held acknowledgements, packets in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from detector.pair import Vantage
from detector.presentation.telling_packets.acknowledgements import round_trips
from detector.presentation.telling_packets.openings_and_ends import opened_by
from detector.presentation.telling_packets.rows import row_of_byte, rows_of_flows
from detector.presentation.telling_packets.telling import Scene, Telling, duration, spread
from detector.streams.window_course import bulk_direction
from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns

_DATA_ENDS = partial(_core.data_ends, only_new=False)


def hints(scene: Scene) -> list[Telling]:
    """The handshake, and the least round trips of the data that leave beside the capture."""
    made: list[Telling] = []
    for vantage in scene.pair.vantages:
        near = Direction.UP if vantage is scene.pair.client_side else Direction.DOWN
        made += opened_by(vantage)
        made += round_trips(vantage, near, 1, "data")
    return made


def held_acknowledgements(scene: Scene) -> list[Telling]:
    """The sender's least round trips, against the delay that the receiver put on its acknowledgements."""
    direction = scene.direction
    sender = None if direction is None else scene.pair.sender(direction)
    if direction is None or sender is None:
        return []
    made = round_trips(sender, direction, scene.most, "data", only_plain=True)
    receiver = scene.pair.receiver(direction)
    if receiver is not None:
        made += _delayed(receiver, direction)
    return made


def _delayed(receiver: Vantage, direction: Direction) -> list[Telling]:
    """Data and the receiver's own acknowledgement of them, where it waited least."""
    packets = receiver.packets
    timed = np.flatnonzero((packets.direction == direction.reverse) & (packets.round_trip_time_ns >= 0))
    if len(timed) == 0:
        return []
    row = int(timed[packets.round_trip_time_ns[timed].argmin()])
    took = duration(int(packets.round_trip_time_ns[row]) / 1e9)
    brought = row_of_byte(receiver, direction, int(packets.acknowledgement_offset[row]) - 1)
    made = [] if brought is None else [Telling(receiver, brought, "brings data to the receiver")]
    return [*made, Telling(receiver, row, f"is the receiver's acknowledgement, {took} after the data came")]


def in_common(scene: Scene) -> list[Telling]:
    """Packets that both captures of one place hold."""
    client, server = scene.pair.client_side, scene.pair.server_side
    if client is None or server is None:
        return [telling for vantage in scene.pair.vantages for telling in opened_by(vantage)]
    shift = {direction: alignment.shift_bytes for direction, alignment in scene.pair.alignment.items()}
    theirs = _signatures(server.packets, dict.fromkeys(Direction, 0))
    place = {signature: row for row, signature in reversed(list(enumerate(theirs)))}
    own = _signatures(client.packets, shift)
    both = np.array([row for row, signature in enumerate(own) if signature in place], np.int64)
    made = []
    for row in spread(both, scene.most).tolist():
        made += [
            Telling(client, row, "is in both captures, with the same fields"),
            Telling(server, place[own[row]], "is the same packet in the other capture"),
        ]
    return made


def _signatures(packets: PacketColumns, shift: dict[Direction, int]) -> list[tuple[int, ...]]:
    offsets = packets.sequence_offset + np.where(
        packets.direction == Direction.UP, shift.get(Direction.UP, 0), shift.get(Direction.DOWN, 0)
    )
    columns = (
        packets.direction, offsets, packets.payload_bytes, packets.flags, packets.ip_id, packets.ttl, packets.tsval,
        packets.tsecr,
    )  # fmt: skip
    return list(zip(*(column.tolist() for column in columns), strict=True))


def bulk(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """The first and the last data of the larger direction, at each vantage point."""
    made: list[list[Telling]] = [[] for _ in scenes]
    for side in (0, 1):
        seen = [vantages[side] if side < len(vantages := scene.pair.vantages) else None for scene in scenes]
        directions = [bulk_direction(scene.pair) for scene in scenes]
        for place, vantage, (first, last) in rows_of_flows(_DATA_ENDS, seen, directions):
            made[place].append(Telling(vantage, first, "carries the first data of the larger stream"))
            if last != first:
                made[place].append(Telling(vantage, last, "carries the last data of the larger stream"))
    return made
