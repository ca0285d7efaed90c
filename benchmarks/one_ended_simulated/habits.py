"""What stacks do on their own account, as settings of an endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class AckHabit(Enum):
    """When data is acknowledged."""

    LINUX = auto()
    DELAYED = auto()  # every second segment, or after `ack_delay_s`
    QUICK = auto()  # every segment


class Identification(Enum):
    """How a stack numbers its IPv4 packets."""

    COUNTER = auto()
    RANDOM = auto()
    ZERO = auto()


@dataclass(frozen=True, slots=True)
class Stack:
    """What an operating system does on its own account."""

    name: str
    hops: int
    layout: str  # of the options of a SYN, see `captures`
    segment_size: int = 1460
    scale: int = 7
    timestamps: bool = True
    receive_bytes: int = 65_536 * 4
    initial_segments: int = 10
    habit: AckHabit = AckHabit.LINUX
    ack_delay_s: float = 0.04
    turns_to_interactive: int = 1
    identification: Identification = Identification.COUNTER
    least_timeout_s: float = 0.2
    processing_s: float = 2e-5  # from a packet's arrival to what the kernel answers
