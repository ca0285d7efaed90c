"""What matching gives: which connection of one capture is which of the other, on what ground, and its rivals."""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct

from detector.pair import DatagramLeg


class Ground(StrEnum):
    """Why two connections were taken for the same."""

    SEQUENCE_NUMBERS = "same initial sequence numbers"
    SEQUENCE_NUMBERS_OTHER_TIME = "same initial sequence numbers, at another time by the capture clocks"
    PACKETS = "same packets"
    END_POINTS = "same end points"
    END_POINTS_OTHER_TIME = "same end points, at another time by the capture clocks"
    PAYLOAD = "same payload"
    PAYLOAD_AND_TIME = "same payload, told apart by size and time"
    PAYLOAD_OF_SEVERAL_HOSTS = "same payload as other hosts', told apart by size and time"
    PAYLOAD_OTHER_TIME = "same payload, at another time by the capture clocks"
    DATAGRAMS = "same payload, carried in UDP at one end"
    OWN_LENGTHS = "same lengths, which no other connection has"
    LENGTHS_AND_TIME = "same lengths, at a time when no other connection has them"
    LENGTHS_AND_STARTS = "same lengths, and several begun at the same intervals"
    LENGTHS = "same lengths"
    LENGTHS_OTHER_TIME = "same lengths, at another time by the capture clocks"
    LAST_LEFT = "the only ones left"
    ENCRYPTED = "same sizes and times, with encryption added at one end"
    ALONE = "seen by one capture only"


#: What shows that two connections are one, whatever others have the same content.
IDENTITY = (Ground.SEQUENCE_NUMBERS, Ground.PACKETS)


class Match(Struct, frozen=True):
    """Connection `first` of the first capture and `second` of the second.

    `sides_swapped`: the client and server that were guessed in one capture contradict the other capture. `leg`: the UDP
    flow that carries the bytes in the capture without the connection. `margin` (nats): how much better the pairing of
    all connections explains the captures with this match than without it. `rivals`: the matches of either connection in
    pairings that are nearly as good, the best first. `one_transfer_nats`: what all pairs between the same servers show
    together for one transfer each, against strangers' (`starts.one_clock`), where content is the ground.
    `alternatives`, of a match that has rivals and whose connections have turns (`starts.turns_within`): the match and
    all of its rivals, however many; each of these has the same.
    """

    first: int | None
    second: int | None
    ground: Ground
    sides_swapped: bool = False
    leg: DatagramLeg | None = None
    margin: float = math.inf
    rivals: tuple[Match, ...] = ()
    one_transfer_nats: float = 0.0
    alternatives: tuple[Match, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether both captures hold it in TCP, and show by themselves which end is which."""
        return (
            self.first is not None
            and self.second is not None
            and not self.sides_swapped
            and self.ground is not Ground.ENCRYPTED
        )


class Candidate(Struct, frozen=True):
    """Two connections that may be one, and the log-likelihood ratio (nats) of the evidence for it against chance."""

    first: int
    second: int
    ground: Ground
    nats: float
    sides_swapped: bool = False
