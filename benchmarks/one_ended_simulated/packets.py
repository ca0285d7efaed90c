"""Packets as the simulation passes them on: numbers are relative, so that a middlebox can give them another base."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Flag(IntFlag):
    """TCP flags (RFC 9293)."""

    FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10


FIN, SYN, RST, PSH, ACK = (int(flag) for flag in Flag)

#: Ethernet, IPv4 and TCP headers: what a link carries besides payload and options.
HEADER_BYTES = 54


@dataclass(slots=True)
class Offer:
    """Options of a SYN or SYN-ACK (RFC 9293, 7323, 2018), in the order of `layout`: see `headers.opening_options`."""

    layout: str
    segment_size: int
    scale: int | None
    sack: bool
    timestamps: bool


@dataclass(slots=True)
class Packet:
    """One TCP segment. The SYN has sequence number 0; timestamps are in milliseconds since the simulation began."""

    sequence: int
    acknowledgement: int
    flags: int
    window_bytes: int
    payload: bytes
    timestamp: int
    echo: int
    sack: tuple[tuple[int, int], ...]
    offer: Offer | None
    scale: int  # of the window field of every packet but the SYNs
    has_timestamps: bool
    identification: int
    repeated: bool = False

    @property
    def size_bytes(self) -> int:
        """On the link."""
        return HEADER_BYTES + 12 * self.has_timestamps + len(self.payload)

    @property
    def end(self) -> int:
        """The sequence number after this segment."""
        return self.sequence + len(self.payload) + bool(self.flags & SYN) + bool(self.flags & FIN)
