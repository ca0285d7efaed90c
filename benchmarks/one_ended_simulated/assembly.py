"""Connections laid over a network: legs between the boxes that answer, and what each tap sees of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from benchmarks.one_ended_simulated.boxes import SynProxy
from benchmarks.one_ended_simulated.captures import Address, Face, Tap
from benchmarks.one_ended_simulated.channels import Channel
from benchmarks.one_ended_simulated.endpoints import Endpoint
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.routes import Look, Route, Stage


@dataclass(frozen=True, slots=True)
class Names:
    """Addresses and ports of a connection at one place."""

    client: Address
    client_port: int
    server: Address
    server_port: int


@dataclass(frozen=True, slots=True)
class _Place:
    tap: Tap
    names: Names
    routers: int  # of the leg that lie before it


@dataclass(slots=True)
class Bases:
    """Where one end's sequence numbers and timestamps begin."""

    sequence: int
    timestamp: int

    @classmethod
    def drawn(cls, random: Random) -> Bases:
        """By chance, as RFC 6528 and most stacks have it."""
        return cls(random.getrandbits(32), random.getrandbits(32))


@dataclass(slots=True)
class Leg:
    """What lies between two nodes that end a leg, from the client's side to the server's."""

    near: Bases
    far: Bases
    near_hops: int  # of packets that leave the near node
    far_hops: int
    parts: list[_Place | tuple[Channel, Channel]] = field(default_factory=list)
    routers: int = 0

    def add_tap(self, tap: Tap | None, names: Names) -> None:
        """A tap here, if there is one."""
        if tap is not None:
            self.parts.append(_Place(tap, names, self.routers))

    def add_link(self, channels: tuple[Channel, Channel], routers: int) -> None:
        """A link up and down, with so many routers."""
        self.parts.append(channels)
        self.routers += routers

    def stages_up(self) -> list[Stage]:
        """From the near node to the far one."""
        stages: list[Stage] = []
        for part in self.parts:
            if isinstance(part, _Place):
                names = part.names
                face = Face(
                    names.client, names.client_port, names.server, names.server_port,
                    self.near.sequence, self.far.sequence, self.near.timestamp, self.far.timestamp,
                    self.near_hops - part.routers,
                )  # fmt: skip
                stages.append(Look(part.tap, face))
            else:
                stages.append(part[0])
        return stages

    def stages_down(self) -> list[Stage]:
        """From the far node to the near one."""
        stages: list[Stage] = []
        for part in reversed(self.parts):
            if isinstance(part, _Place):
                names = part.names
                face = Face(
                    names.server, names.server_port, names.client, names.client_port,
                    self.far.sequence, self.near.sequence, self.far.timestamp, self.near.timestamp,
                    self.far_hops - (self.routers - part.routers),
                )  # fmt: skip
                stages.append(Look(part.tap, face))
            else:
                stages.append(part[1])
        return stages


def lay(clock: Clock, leg: Leg, near: Endpoint, far: Endpoint) -> None:
    """Join two endpoints by a leg."""
    near.leave = Route(clock, leg.stages_up(), lambda packet: far.receive(packet)).send
    far.leave = Route(clock, leg.stages_down(), lambda packet: near.receive(packet)).send


def lay_through(clock: Clock, legs: tuple[Leg, Leg], near: Endpoint, far: Endpoint, proxy: SynProxy) -> None:
    """Join two endpoints by two legs with a SYN proxy between them."""
    first, second = legs
    near.leave = Route(clock, first.stages_up(), proxy.from_client).send
    proxy.to_client = Route(clock, first.stages_down(), lambda packet: near.receive(packet)).send
    proxy.to_server = Route(clock, second.stages_up(), lambda packet: far.receive(packet)).send
    far.leave = Route(clock, second.stages_down(), proxy.from_server).send
