"""A middlebox that thins, rewrites or multiplies ACKs, but never acknowledges what the receiver has not acknowledged.

ACK filtering and reconstruction as RFC 3449 (5.2.1, 5.2.2) describes them, and an intermediary that issues each ACK
anew. The connection stays end to end: all its ACKs come after the receiver's own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import packets
from benchmarks.fresh.packets import Option, Segment

if TYPE_CHECKING:
    import random

    from benchmarks.fresh.origin import Log

Key = tuple[bytes, int, bytes, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """`mode`: `thin` passes one ACK in `one_in`, `reissue` sends each of those under a header of its own,
    `reconstruct` puts ACKs for every `step_bytes` in between, `spacing_s` apart. None waits longer than `hold_s`."""

    mode: str
    one_in: int = 4
    hold_s: float = 0.02
    step_bytes: int = 1000
    spacing_s: float = 0.0005


@dataclass(slots=True)
class _Way:
    """One direction of ACKs."""

    last: int
    held: tuple[bytes, Segment] | None = None
    count: int = 0
    since: float = 0.0


class AcknowledgementRegeneration:
    """The behaviour of `packet_box` that this module is about."""

    def __init__(self, send: Callable[[bytes], None], chance: random.Random, settings: Settings) -> None:
        self._send, self._settings = send, settings
        self._ways: dict[Key, _Way] = {}
        self._waiting: list[tuple[float, int, Key, bytes]] = []
        self._count = 0
        self._identification = chance.randrange(65_536)

    @classmethod
    def create(
        cls, send: Callable[[bytes], None], log: Log, chance: random.Random, settings: dict[str, Any]
    ) -> AcknowledgementRegeneration:
        """From the settings as JSON has them."""
        del log
        return cls(send, chance, Settings(**settings))

    def take(self, packet: bytes, now: float) -> None:
        """Hold ACKs that move on; pass all else, after what was held."""
        segment = packets.read(packet)
        if segment is None or not segment.flags & packets.ACK:
            self._send(packet)
            return
        key = (segment.source, segment.source_port, segment.target, segment.target_port)
        way = self._ways.setdefault(key, _Way(segment.acknowledgement))
        if (
            not segment.is_plain_acknowledgement
            or segment.selective
            or not packets.after(segment.acknowledgement, way.last)
        ):
            self._release(key, way, now)
            self._flush(key)
            if packets.after(segment.acknowledgement, way.last):
                way.last = segment.acknowledgement
            self._send(packet)
            return
        way.since = now if way.held is None else way.since
        way.held, way.count = (packet, segment), way.count + 1
        if way.count >= self._settings.one_in:
            self._release(key, way, now)

    def settle(self, now: float) -> None:
        """Pass what has waited long enough."""
        for key, way in self._ways.items():
            if way.held is not None and now >= way.since + self._settings.hold_s:
                self._release(key, way, now)
        while self._waiting and self._waiting[0][0] <= now:
            self._send(heapq.heappop(self._waiting)[3])

    def due(self) -> float | None:
        """When the next ACK has waited long enough."""
        times = [way.since + self._settings.hold_s for way in self._ways.values() if way.held is not None]
        return min([*times, *(entry[0] for entry in self._waiting[:1])], default=None)

    def _release(self, key: Key, way: _Way, now: float) -> None:
        if way.held is None:
            return
        packet, segment = way.held
        numbers = [segment.acknowledgement]
        if self._settings.mode == "reconstruct":
            steps = packets.distance(segment.acknowledgement, way.last) // self._settings.step_bytes
            numbers = [packets.advance(way.last, step * self._settings.step_bytes) for step in range(1, steps + 1)]
            numbers += [segment.acknowledgement] if numbers[-1:] != [segment.acknowledgement] else []
        for place, number in enumerate(numbers):
            own = self._settings.mode == "reissue" or number != segment.acknowledgement
            self._count += 1
            made = self._made(segment, number) if own else packet
            heapq.heappush(self._waiting, (now + place * self._settings.spacing_s, self._count, key, made))
        way.last, way.held, way.count = segment.acknowledgement, None, 0

    def _flush(self, key: Key) -> None:
        """Send at once what waits of one direction, so that nothing overtakes it."""
        for _, _, _, packet in sorted(entry for entry in self._waiting if entry[2] == key):
            self._send(packet)
        self._waiting = [entry for entry in self._waiting if entry[2] != key]
        heapq.heapify(self._waiting)

    def _made(self, segment: Segment, number: int) -> bytes:
        self._identification += 1
        header = packets.bare_header(segment.source, segment.target, segment.hops, self._identification)
        stamps = segment.option(Option.TIMESTAMPS)
        options = [] if stamps is None else [(int(Option.TIMESTAMPS), stamps)]
        return Segment(
            header, segment.source_port, segment.target_port, segment.sequence, number, segment.flags, segment.window,
            packets.write_options(options), b"",
        ).bytes()  # fmt: skip
