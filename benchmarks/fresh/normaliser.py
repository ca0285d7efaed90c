"""A middlebox that rewrites headers as a packet filter's scrubbing does, and ends nothing.

As pf(4) does with `modulate state`, `scrub random-id no-df max-mss min-ttl reassemble tcp` (RFC 6528 is the reason for
other ISNs), and as firewalls do that strip options: all shifts stay the same for the whole connection, and each is
undone in the opposite direction. It also shuts windows in turns and cuts segments, as boxes do that pace senders or
segment anew what they receive.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import packets
from benchmarks.fresh.packets import ACK, FIN, PSH, RST, SYN, Option, Segment

if TYPE_CHECKING:
    import random

    from benchmarks.fresh.origin import Log

Key = tuple[bytes, int, bytes, int]
_NO_FRAGMENT = 0x40
#: Where two windows that are 0 meet, probes alone tell when they open again, ever more seldom.
_SHUT = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """`isn`: other initial sequence numbers, for the hosts of these `sides` (`client`, `server`). `identification`:
    random IP IDs. `timestamps`: `keep`, `shift` or `strip`. `strip`: kinds of options removed. `most_segment`: MSS is
    lowered to it. `fragment`: DF is cleared. `least_hops`: TTL is raised to it. `most_window`: of the window field,
    a 64th of it in the second half of every `window_period_s`. `most_payload`: longer segments are cut into two."""

    isn: tuple[str, ...] = ("client", "server")
    identification: bool = True
    timestamps: str = "shift"
    strip: tuple[int, ...] = ()
    most_segment: int = 65_535
    fragment: bool = True
    least_hops: int = 0
    most_window: int = 65_535
    window_period_s: float = 0.0
    most_payload: int = 65_535


@dataclass(frozen=True, slots=True)
class _Shift:
    """What is added to the sequence numbers and to the TSvals of one host."""

    sequence: int
    timestamp: int


class Normaliser:
    """The behaviour of `packet_box` that this module is about."""

    def __init__(self, send: Callable[[bytes], None], chance: random.Random, settings: Settings) -> None:
        self._send, self._chance, self._settings = send, chance, settings
        self._shifts: dict[Key, _Shift] = {}

    @classmethod
    def create(
        cls, send: Callable[[bytes], None], log: Log, chance: random.Random, settings: dict[str, Any]
    ) -> Normaliser:
        """From the settings as JSON has them."""
        del log
        lists: dict[str, Any] = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
        return cls(send, chance, Settings(**{**settings, **lists}))

    def take(self, packet: bytes, now: float) -> None:
        """Rewrite one packet and send it on."""
        segment = packets.read(packet)
        if segment is None:
            self._send(packet)
            return
        key = (segment.source, segment.source_port, segment.target, segment.target_port)
        if segment.flags & (SYN | ACK) == SYN and key not in self._shifts:
            self._shifts[key], self._shifts[key[2:] + key[:2]] = self._drawn("client"), self._drawn("server")
        own, other = self._shifts.get(key, _Shift(0, 0)), self._shifts.get(key[2:] + key[:2], _Shift(0, 0))
        segment.sequence = packets.advance(segment.sequence, own.sequence)
        if segment.flags & ACK:
            segment.acknowledgement = packets.advance(segment.acknowledgement, -other.sequence)
        if not segment.flags & RST:
            segment.window = min(segment.window, self._most_window(now))
        segment.options = self._options(segment, own, other)
        self._header(segment)
        for piece in self._cut(segment):
            self._send(piece.bytes())

    def settle(self, now: float) -> None:
        """Nothing waits here."""

    def due(self) -> float | None:
        """Nothing waits here."""
        return None

    def _most_window(self, now: float) -> int:
        period_s = self._settings.window_period_s
        is_shut = period_s > 0 and now % period_s > period_s / 2
        return self._settings.most_window // _SHUT if is_shut else self._settings.most_window

    def _cut(self, segment: Segment) -> list[Segment]:
        """The segment, or two that hold what it does, each with its header; PSH and FIN are the second's."""
        if len(segment.payload) <= self._settings.most_payload or segment.flags & SYN:
            return [segment]
        first, at = replace(segment), len(segment.payload) // 2
        first.payload, first.flags = segment.payload[:at], segment.flags & ~(FIN | PSH)
        second = replace(segment, payload=segment.payload[at:], sequence=packets.advance(segment.sequence, at))
        return [first, second]

    def _drawn(self, side: str) -> _Shift:
        return _Shift(
            self._chance.randrange(1 << 32) if side in self._settings.isn else 0,
            self._chance.randrange(1 << 32) if self._settings.timestamps == "shift" else 0,
        )

    def _options(self, segment: Segment, own: _Shift, other: _Shift) -> bytes:
        kept = []
        for kind, value in packets.read_options(segment.options):
            if kind in self._settings.strip or (kind == Option.TIMESTAMPS and self._settings.timestamps == "strip"):
                continue
            kept.append((kind, self._value(kind, value, segment, own, other)))
        return packets.write_options(kept)

    def _value(self, kind: int, value: bytes, segment: Segment, own: _Shift, other: _Shift) -> bytes:
        if kind == Option.MSS:
            return struct.pack(">H", min(struct.unpack(">H", value)[0], self._settings.most_segment))
        if kind == Option.SACK:
            edges = struct.unpack(f">{len(value) // 4}I", value)
            return struct.pack(f">{len(edges)}I", *(packets.advance(edge, -other.sequence) for edge in edges))
        if kind == Option.TIMESTAMPS:
            stamp, echoed = struct.unpack(">II", value)
            back = packets.advance(echoed, -other.timestamp) if segment.flags & ACK else echoed
            return struct.pack(">II", packets.advance(stamp, own.timestamp), back)
        return value

    def _header(self, segment: Segment) -> None:
        if segment.version == 6:
            segment.ip[7] = max(segment.ip[7], self._settings.least_hops)
            return
        if self._settings.identification:
            struct.pack_into(">H", segment.ip, 4, self._chance.randrange(1 << 16))
        if self._settings.fragment:
            segment.ip[6] &= ~_NO_FRAGMENT & 0xFF
        segment.ip[8] = max(segment.ip[8], self._settings.least_hops)
