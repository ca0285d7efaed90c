"""Routes: the taps and channels that packets of one direction pass between two nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.one_ended_simulated.captures import Face, Tap
from benchmarks.one_ended_simulated.channels import Channel
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.packets import Packet


@dataclass(frozen=True, slots=True)
class Look:
    """A tap, and how the packets of this route look there."""

    tap: Tap
    face: Face


Stage = Look | Channel


class Route:
    """One direction between two nodes: `receive` is what the far node does with a packet."""

    __slots__ = ("clock", "receive", "stages")

    def __init__(self, clock: Clock, stages: Sequence[Stage], receive: Callable[[Packet], None]) -> None:
        self.clock, self.stages, self.receive = clock, tuple(stages), receive

    def send(self, packet: Packet) -> None:
        """Put a packet on its way now."""
        self._walk(packet, 0)

    def _walk(self, packet: Packet, place: int) -> None:
        for index in range(place, len(self.stages)):
            stage = self.stages[index]
            if isinstance(stage, Look):
                stage.tap.record(packet, stage.face)
                continue
            arrival_s = stage.carry(packet.size_bytes)
            if arrival_s is not None:
                self.clock.at(arrival_s, partial(self._walk, packet, index + 1))
            return
        self.receive(packet)
