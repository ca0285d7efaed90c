"""A pair: the same transfer seen at one or two vantage points, as every method is given it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar, cast

from detector.datagram_leg import DatagramLeg
from detector.verdict import DECISION_PROBABILITY
from pepscope.connections import Connection, FlowSummary
from pepscope.packets import Direction, PacketColumns, PayloadSample
from pepscope.results import VantageName

Made = TypeVar("Made")


#: Below this confidence that both captures show one transfer there is no verdict. Of pairs whose confidence is lower,
#: more than one in twenty is a wrong one (docs/methods/pairing.md).
LEAST_PAIRING_CONFIDENCE = 0.7


class ClockMode(StrEnum):
    """What is assumed of the two capture clocks."""

    SYNCHRONISED = "synchronised"  # Method 1
    OFFSET = "offset"  # Method 2 as published: constant offset, first datum
    GENERAL = "general"  # offset, bounded drift, steps


@dataclass(frozen=True, slots=True)
class DetectOptions:
    """What the user knows or allows."""

    clocks: ClockMode = ClockMode.GENERAL
    ack_delay_s: float | None = None  # T of Method 3, put on every ACK by the receiver
    drift_limit_ppm: float = 500.0
    #: Whether the first capture was taken at the clients, or else at the servers; None where it is to be found out.
    first_at_client: bool | None = None
    #: The captures show the same transfers: that payload makes a pair of strangers is no reason to doubt it.
    same_transfers: bool = False
    #: Below this probability of its class (end to end, or split) a connection gets no verdict.
    least_probability: float = DECISION_PROBABILITY
    #: Below this confidence that two connections are one transfer they get no verdict.
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Vantage:
    """One connection at one capture point."""

    capture: str
    connection: Connection
    packets: PacketColumns
    payload: dict[Direction, PayloadSample]
    _made: dict[tuple[object, Direction], object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def derived(self, make: Callable[[PacketColumns, Direction], Made], direction: Direction) -> Made:
        """What `make` gives for this vantage's packets; made once, however many methods ask."""
        key = (make, direction)
        if key not in self._made:
            self._made[key] = make(self.packets, direction)
        return cast("Made", self._made[key])

    def flow(self, direction: Direction) -> FlowSummary:
        """Summary of the flow in `direction`."""
        return self.connection.up if direction is Direction.UP else self.connection.down


@dataclass(frozen=True, slots=True)
class StreamAlignment:
    """How one direction's streams of the two vantages lie over each other.

    Byte x of the client side's stream is byte x + `shift_bytes` of the server side's stream (not 0 where a SYN is
    missing or a proxy rewrote headers). `matched` is the share of comparable payload pieces that agree, `compared`
    how many were compared; 0 compared means that only lengths and timing speak.
    """

    shift_bytes: int
    compared: int
    matched: float


@dataclass(frozen=True, slots=True)
class Pair:
    """A connection at the client's side and/or the server's side; at least one is present.

    With one side only, `datagram_leg` may say that its bytes travel in UDP at the other.
    """

    client_side: Vantage | None
    server_side: Vantage | None
    alignment: dict[Direction, StreamAlignment]
    pairing_confidence: float  # 0..1; 1 where only one vantage exists
    options: DetectOptions = field(default_factory=DetectOptions)
    datagram_leg: DatagramLeg | None = None
    pairing_ground: str = ""  # what the pairing was made on, in words
    encrypted: bool = False  # one side is encrypted and the other is not: nothing aligns, and no packets are compared

    @property
    def vantages(self) -> tuple[Vantage, ...]:
        """The TCP vantages that exist, client side first."""
        return tuple(v for v in (self.client_side, self.server_side) if v is not None)

    @property
    def names(self) -> tuple[VantageName, ...]:
        """Where the connection was seen, client side first, in whatever transport."""
        tcp = [VantageName(v.capture, v.connection.client, v.connection.server) for v in self.vantages]
        if self.datagram_leg is None:
            return tuple(tcp)
        leg = self.datagram_leg
        udp = VantageName(leg.capture, leg.client_end_point, leg.server_end_point, "udp")
        return (*tcp, udp) if self.server_side is None else (udp, *tcp)

    def sender(self, direction: Direction) -> Vantage | None:
        """The vantage at the sender of `direction`'s data."""
        return self.client_side if direction is Direction.UP else self.server_side

    def receiver(self, direction: Direction) -> Vantage | None:
        """The vantage at the receiver of `direction`'s data."""
        return self.server_side if direction is Direction.UP else self.client_side

    def receiver_shift(self, direction: Direction) -> int:
        """What to add to a receiver-side stream offset to get the sender-side offset."""
        shift = self.alignment[direction].shift_bytes
        return -shift if direction is Direction.UP else shift
