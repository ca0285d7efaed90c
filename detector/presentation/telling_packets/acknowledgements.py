"""Acknowledgements at the sender against what reached the receiver: of the acknowledgements' timing and of progress."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import ClockRelation
from detector.clocks.clouds import larger
from detector.clocks.sender_axis import SenderAxis, raised_ns, sender_axis
from detector.pair import Vantage
from detector.presentation.telling_packets.rows import acknowledging_rows, first_copies, row_of_byte
from detector.presentation.telling_packets.telling import Scene, Telling, counted, duration, strongest
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray


class _Held(Struct, frozen=True, dict=True):
    """Acknowledgements at the sender of one direction's data, held against the receiver's capture.

    Times are those of `SenderAxis`: on the sender's clock, with the clock relation that data allow and that is kindest
    to the acknowledgements.
    """

    direction: Direction
    sender: Vantage
    receiver: Vantage
    shift: int
    axis: SenderAxis

    @cached_property
    def rows(self) -> Int64Array:
        """Rows at the sender of acknowledgements that advance."""
        return self.sender.derived(acknowledging_rows, self.direction)

    @cached_property
    def acknowledged(self) -> Int64Array:
        """How far each of them acknowledges."""
        return self.sender.packets.acknowledgement_offset[self.rows]

    @cached_property
    def seen_s(self) -> FloatArray:
        """When each reached the sender."""
        return self.axis.sender_s(self.sender.packets.time_ns[self.rows])

    @cached_property
    def _against_arrivals(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        lines = None if self.axis.clock is None else self.axis.clock.lines
        place = self.axis.origin_ns, self.axis.start_ns, lines, self.axis.raise_ns
        return _core.held_acknowledgements(
            self.sender.packets, self.receiver.packets, self.direction, self.shift, *place
        )

    @property
    def early_s(self) -> FloatArray:
        """By how much each came before its data had arrived; negative where it came behind, NaN where it is not
        known."""
        return self._against_arrivals[0]

    @property
    def ahead(self) -> Int64Array:
        """Bytes that each acknowledges and that had not arrived."""
        return self._against_arrivals[1]

    def pointed(self, place: int, shows: str, arrival: str) -> list[Telling]:
        """The acknowledgement at a place, and the packet that brought the last of its bytes to the receiver."""
        made = [Telling(self.sender, int(self.rows[place]), shows)]
        brought = row_of_byte(self.receiver, self.direction, int(self._against_arrivals[2][place]))
        return made if brought is None else [*made, Telling(self.receiver, brought, arrival)]


def _held(scene: Scene) -> _Held | None:
    flow = _flow(scene)
    if flow is None:
        return None
    # Several findings on a connection ask for the same.
    kept = scene.observed.kept.get((_Held, flow.direction))
    if isinstance(kept, _Held):
        return kept
    axis = sender_axis(flow.sender, flow.receiver, flow.clock, flow.direction)
    held = _Held(flow.direction, flow.sender, flow.receiver, flow.shift, axis)
    scene.observed.kept[_Held, flow.direction] = held
    return held


def before_data(scene: Scene) -> list[Telling]:
    """Acknowledgements that reached the sender before their data had reached the receiver, the earliest ones.

    Where only both directions together contradict every clock, those that come soonest behind their data.
    """
    return _ordered(scene, by_bytes=False) or behind_data([scene])[0]


def most_ahead(scene: Scene) -> list[Telling]:
    """Acknowledgements of the most bytes that had not reached the receiver."""
    return _ordered(scene, by_bytes=True)


def _ordered(scene: Scene, *, by_bytes: bool) -> list[Telling]:
    held = _held(scene)
    if held is None:
        return []
    score = np.where(np.isnan(held.early_s), np.nan, held.ahead) if by_bytes else held.early_s
    places = strongest(np.asarray(score, np.float64), scene.most, least=0.0)
    return [telling for place in places for telling in _early(held, place)]


def _early(held: _Held, place: int) -> list[Telling]:
    ahead, early_s = int(held.ahead[place]), float(held.early_s[place])
    total = counted(int(held.acknowledged[place]), "byte")
    return held.pointed(
        place,
        f"acknowledges {total}, {ahead:,} of which reach the receiver later, the last one {duration(early_s)} later",
        f"brings the last of {total} to the receiver, {duration(early_s)} after the sender saw them acknowledged",
    )


class _Soonest(Struct, frozen=True):
    """The acknowledgements of one direction's data that came soonest, with what brought these."""

    tellings: list[Telling]


def behind_data(scenes: Sequence[Scene]) -> list[list[Telling]]:
    """Acknowledgements that came soonest behind the arrival of their data."""
    asked = [(scene, flow) for scene in scenes if (flow := _flow(scene)) is not None]
    # Several findings on a connection ask for the same.
    new = [(scene, flow) for scene, flow in asked if (_Soonest, flow.direction) not in scene.observed.kept]
    found = _soonest([flow for _, flow in new], max([scene.most for scene in scenes], default=0))
    for (scene, flow), tellings in zip(new, found, strict=True):
        scene.observed.kept[_Soonest, flow.direction] = _Soonest(tellings)
    made: dict[int, list[Telling]] = {}
    for scene, flow in asked:
        kept = scene.observed.kept[_Soonest, flow.direction]
        if isinstance(kept, _Soonest):
            made[id(scene)] = kept.tellings
    return [made.get(id(scene), []) for scene in scenes]


def _soonest(flows: Sequence[_Flow], most: int) -> list[list[Telling]]:
    """The acknowledgements of flows that came soonest behind the arrival of their data, and what brought these."""
    made: list[list[Telling]] = [[] for _ in flows]
    found = _core.soonest_acknowledgements(
        [flow.sender.packets for flow in flows],
        [flow.receiver.packets for flow in flows],
        [flow.direction for flow in flows],
        [flow.shift for flow in flows],
        [flow.clock.lines if flow.clock.pieces else None for flow in flows],
        [raised_ns(flow.clock, flow.direction) for flow in flows],
        most,
    )
    for tellings, flow, soonest in zip(made, flows, found, strict=True):
        for row, acknowledged, early_s, brought in soonest:
            total = counted(acknowledged, "byte")
            when = f"{duration(-early_s)} after" if early_s <= 0 else f"{duration(early_s)} before"
            shows = f"acknowledges {total}, {when} the last of them reached the receiver"
            tellings.append(Telling(flow.sender, row, shows))
            if brought is not None:
                tellings.append(Telling(flow.receiver, brought, f"brings the last of {total} to the receiver"))
    return made


class _Flow(NamedTuple):
    """The data of which a finding speaks, or of the larger flow, at both ends."""

    direction: Direction
    sender: Vantage
    receiver: Vantage
    shift: int
    clock: ClockRelation


def _flow(scene: Scene) -> _Flow | None:
    clock = scene.clock
    most = larger(clock.clouds)
    direction = scene.direction or (None if most is None else most.direction)
    if direction is None or direction not in scene.pair.alignment:
        return None
    sender, receiver = scene.pair.sender(direction), scene.pair.receiver(direction)
    if sender is None or receiver is None:
        return None
    return _Flow(direction, sender, receiver, scene.pair.receiver_shift(direction), clock)


def before_receivers_own(scene: Scene) -> list[Telling]:
    """Acknowledgements that reached the sender before the receiver sent its own of the same bytes."""
    held = _held(scene)
    if held is None:
        return []
    packets = held.receiver.packets
    own = held.receiver.derived(acknowledging_rows, held.direction)
    value = packets.acknowledgement_offset[own] + held.shift
    place = np.searchsorted(value, held.acknowledged, side="left")
    known = place < len(own)
    if not known.any():
        return []
    sent_s = held.axis.receiver_s(packets.time_ns[own[np.minimum(place, len(own) - 1)]])
    score = np.where(known, sent_s - held.seen_s, np.nan)
    made = []
    for at in strongest(score, scene.most, least=0.0):
        early, total = duration(float(score[at])), counted(int(held.acknowledged[at]), "byte")
        made += [
            Telling(
                held.sender, int(held.rows[at]), f"acknowledges {total}, {early} before the receiver's own ACK of them"
            ),
            Telling(held.receiver, int(own[place[at]]), f"is the receiver's first acknowledgement of {total}"),
        ]
    return made


def fastest_round_trips(scene: Scene) -> list[Telling]:
    """The acknowledgements that came soonest after their data, with the data."""
    held = _held(scene)
    if held is None:
        return []
    return round_trips(held.sender, held.direction, scene.most, "the sender's data")


def round_trips(
    sender: Vantage, direction: Direction, most: int, whose: str, *, only_plain: bool = False
) -> list[Telling]:
    """The least round trips of a direction's data at its sender: data, then what acknowledges them.

    With `only_plain` those that end with an acknowledgement without payload.
    """
    packets = sender.packets
    is_timed = (packets.direction == direction.reverse) & (packets.round_trip_time_ns >= 0)
    timed = np.flatnonzero(is_timed & (packets.payload_bytes == 0) if only_plain else is_timed)
    made = []
    for place in strongest(-packets.round_trip_time_ns[timed].astype(np.float64), most):
        row = int(timed[place])
        took = duration(int(packets.round_trip_time_ns[row]) / 1e9)
        sent = row_of_byte(sender, direction, int(packets.acknowledgement_offset[row]) - 1)
        if sent is not None:
            made.append(Telling(sender, sent, f"carries data that are acknowledged after {took}"))
        made.append(Telling(sender, row, f"acknowledges {whose} {took} after they left"))
    return made


def before_first_arrival(scene: Scene) -> list[Telling]:
    """What had been acknowledged to the sender when the first byte reached the receiver."""
    held = _held(scene)
    if held is None:
        return []
    arrived = held.receiver.derived(first_copies, held.direction)
    if len(arrived) == 0:
        return []
    first_s = float(held.axis.receiver_s(held.receiver.packets.time_ns[arrived[:1]])[0])
    before = np.flatnonzero(held.seen_s <= first_s)
    made = []
    for place in before[::-1][: scene.most].tolist():
        total, early = counted(int(held.acknowledged[place]), "byte"), duration(first_s - float(held.seen_s[place]))
        shows = f"acknowledges {total}, {early} before the first byte reaches the receiver"
        made.append(Telling(held.sender, int(held.rows[place]), shows))
    return [*made, Telling(held.receiver, int(arrived[0]), "brings the first bytes to the receiver")]


def fastest_bytes(scene: Scene) -> list[Telling]:
    """The data that were held on the way for the shortest time: where they left, and where they arrived."""
    held = _held(scene)
    if held is None:
        return []
    packets, arrived = held.sender.packets, held.receiver.packets
    sent, came = (each.derived(first_copies, held.direction) for each in (held.sender, held.receiver))
    starts = arrived.sequence_offset[came] + held.shift
    _, at_sender, at_receiver = np.intersect1d(packets.sequence_offset[sent], starts, return_indices=True)
    if len(at_sender) == 0:
        return []
    left, reached = sent[at_sender], came[at_receiver]
    delay_s = held.axis.receiver_s(arrived.time_ns[reached]) - held.axis.sender_s(packets.time_ns[left])
    made = []
    for place in strongest(-delay_s, scene.most):
        made += [
            Telling(held.sender, int(left[place]), "leaves the sender; hardly any byte takes less time"),
            Telling(held.receiver, int(reached[place]), "reaches the receiver with the bytes that left there"),
        ]
    return made
