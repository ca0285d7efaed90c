"""A scripted TCP connection: say who sends what when, get segments with right numbers.

The script keeps stream offsets (the terms in which pepscope reports) and turns them into sequence numbers on the wire,
so every generated segment comes with its truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pepscope.captures.packets import Direction, TcpFlag
from tests.captures.segments import (
    Segment,
    maximum_segment_size,
    sack,
    sack_permitted,
    timestamps,
    window_scale,
)

MILLISECOND_NS = 1_000_000
NO_FLAGS = TcpFlag(0)
START_NS = 1_700_000_000_123_456_789


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One side: address, port, initial sequence number and what its SYN offers."""

    address: str
    port: int
    initial_sequence_number: int
    maximum_segment_size: int = 1460
    window_scale: int | None = 7
    sack_permitted: bool = True
    timestamps: bool = True
    ttl: int = 64


@dataclass(slots=True)
class Conversation:
    """Segments between `client` and `server`, in the order in which a capture sees them."""

    client: Endpoint
    server: Endpoint
    now_ns: int = START_NS
    segments: list[Segment] = field(default_factory=list)
    directions: list[Direction] = field(default_factory=list)
    sequence_offsets: list[int] = field(default_factory=list)
    acknowledgement_offsets: list[int | None] = field(default_factory=list)
    _ip_id: list[int] = field(default_factory=lambda: [100, 60_000])
    _echo: list[int] = field(default_factory=lambda: [0, 0])
    _stamp_offset: list[int] = field(default_factory=lambda: [0, 1000])

    def wait(self, milliseconds: float) -> Conversation:
        """Let time pass."""
        self.now_ns += round(milliseconds * MILLISECOND_NS)
        return self

    def send(
        self,
        direction: Direction,
        sequence: int,
        acknowledgement: int | None,
        payload: bytes = b"",
        flags: TcpFlag = NO_FLAGS,
        *,
        window: int = 500,
        sack_blocks: tuple[tuple[int, int], ...] = (),
        captured: bool = True,
    ) -> Conversation:
        """One segment at stream offsets; `window` as on the wire. An uncaptured one passes the capture unseen."""
        sender, receiver = self._ends(direction)
        flags |= NO_FLAGS if acknowledgement is None else TcpFlag.ACK
        acknowledged = 0
        if acknowledgement is not None:
            acknowledged = receiver.initial_sequence_number + 1 + acknowledgement
        segment = Segment(
            self.now_ns,
            sender.address,
            sender.port,
            receiver.address,
            receiver.port,
            (sender.initial_sequence_number + 1 + sequence) & 0xFFFFFFFF,
            acknowledged & 0xFFFFFFFF,
            flags,
            window,
            payload,
            self._options(direction, flags, sack_blocks),
            sender.ttl,
            self._next_ip_id(direction) if segment_version(sender) == 4 else 0,
        )
        if captured:
            self.segments.append(segment)
            self.directions.append(direction)
            self.sequence_offsets.append(sequence)
            self.acknowledgement_offsets.append(acknowledgement)
        return self

    def handshake(self, round_trip_ms: float = 20.0) -> Conversation:
        """SYN, SYN-ACK, ACK as a capture at the client sees them."""
        self.send(Direction.UP, -1, None, flags=TcpFlag.SYN, window=64_240).wait(round_trip_ms)
        self.send(Direction.DOWN, -1, 0, flags=TcpFlag.SYN, window=65_160).wait(0.1)
        return self.send(Direction.UP, 0, 0)

    def close(self, up: int, down: int) -> Conversation:
        """FINs in both directions after `up` and `down` bytes."""
        self.wait(1).send(Direction.UP, up, down, flags=TcpFlag.FIN)
        self.wait(20).send(Direction.DOWN, down, up + 1, flags=TcpFlag.FIN)
        return self.wait(0.1).send(Direction.UP, up + 1, down + 1)

    def _ends(self, direction: Direction) -> tuple[Endpoint, Endpoint]:
        return (self.client, self.server) if direction is Direction.UP else (self.server, self.client)

    def _options(self, direction: Direction, flags: TcpFlag, blocks: tuple[tuple[int, int], ...]) -> bytes:
        sender, receiver = self._ends(direction)
        both_stamp = sender.timestamps and receiver.timestamps
        options = b""
        if flags & TcpFlag.SYN:
            options += maximum_segment_size(sender.maximum_segment_size)
            options += window_scale(sender.window_scale) if sender.window_scale is not None else b""
            options += sack_permitted() if sender.sack_permitted else b""
        if sender.timestamps if flags == TcpFlag.SYN else both_stamp:
            value = self.now_ns // MILLISECOND_NS + self._stamp_offset[direction] & 0xFFFFFFFF
            options += timestamps(value, self._echo[direction])
            self._echo[direction.reverse] = value
        if blocks:
            base = receiver.initial_sequence_number + 1
            options += sack(*((base + left, base + right) for left, right in blocks))
        return options

    def _next_ip_id(self, direction: Direction) -> int:
        self._ip_id[direction] = self._ip_id[direction] + 1 & 0xFFFF
        return self._ip_id[direction]


def segment_version(end: Endpoint) -> int:
    """IP version of an end point."""
    return 6 if ":" in end.address else 4


def stream(offset: int, length: int, seed: int = 0) -> bytes:
    """`length` bytes of a text whose 32-byte lines all differ, from byte `offset`."""
    first, last = offset // 32, (offset + length) // 32
    text = b"".join(b"%08x %022x\n" % (seed & 0xFFFFFFFF, line) for line in range(first, last + 1))
    start = offset - first * 32
    return text[start : start + length]
