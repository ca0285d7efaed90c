"""A middlebox that acknowledges data in the receiver's name and passes the data segments untouched (RFC 3135, 3.1.2).

Each data segment is kept, acknowledged towards its sender at once, and sent on as it came when the receiver's window
and the middlebox's own congestion window allow it. What is lost behind the middlebox is sent again by the middlebox.
Handshake and FIN are acknowledged by the hosts themselves.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import packets
from benchmarks.fresh.held_data import HeldData
from benchmarks.fresh.packets import ACK, FIN, RST, SYN, Option, Segment

if TYPE_CHECKING:
    import random

    from benchmarks.fresh.origin import Log

#: A sender that had filled the window hears of space again once this many segments fit (RFC 1122, 4.2.3.3).
_SEGMENTS_TO_REOPEN = 2
_MOST_SACK_BLOCKS = 3  # beside timestamps (RFC 2018)
_HOPS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """`mobile` is the mobile's address. `directions`: whose data are acknowledged, `down` (to the mobile), `up`.
    `after_bytes`: of this many bytes of a direction on. `receivers_acknowledgements`: `dropped` or `passed`.
    `window`: that of the local ACKs, `own` (what is left of `buffer_bytes`) or `receiver` (the receiver's last).
    `identification`: IP ID of the local ACKs, `counter` or `zero`. `ports`: server ports that are served."""

    mobile: str
    directions: tuple[str, ...] = ("down",)
    after_bytes: int = 0
    receivers_acknowledgements: str = "dropped"
    window: str = "own"
    buffer_bytes: int = 400_000
    identification: str = "counter"
    ports: tuple[int, ...] = (80, 2222)


@dataclass(slots=True)
class Host:
    """What the middlebox saw of one host of a connection: what its ACKs look like."""

    address: bytes
    port: int
    hops: int = _HOPS
    scale: int = 0
    window: int = 0
    next_sequence: int = 0
    timestamp: int | None = None
    selective: bool = False

    def see(self, segment: Segment) -> None:
        """Note the header of a segment that this host sent."""
        self.hops = segment.hops
        self.window = segment.window
        if segment.flags & SYN:
            scale = segment.option(Option.SCALE)
            self.scale = min(scale[0], 14) if scale else 0
            self.selective = segment.option(Option.SACK_PERMITTED) is not None
            self.next_sequence = segment.end
        elif packets.after(segment.end, self.next_sequence):
            self.next_sequence = segment.end
        if segment.timestamps is not None:
            self.timestamp = segment.timestamps[0]


@dataclass(slots=True)
class Stream:
    """The data of one direction: from `sender` to `receiver`."""

    sender: Host
    receiver: Host
    served: bool
    held: HeldData | None = None
    first: int = -1
    expected: int = 0
    recent_timestamp: int = 0
    early: list[tuple[int, int]] = field(default_factory=list)
    active: bool = False
    said: bool = False
    pending: bool = False
    last_acknowledged: int = 0
    offered: int = 0


class LocalAcknowledgement:
    """The behaviour of `packet_box` that this module is about."""

    def __init__(self, send: Callable[[bytes], None], log: Log, chance: random.Random, settings: Settings) -> None:
        self._send, self._log, self._settings = send, log, settings
        self._mobile = socket.inet_pton(socket.AF_INET6 if ":" in settings.mobile else socket.AF_INET, settings.mobile)
        self._identification = chance.randrange(65_536)
        self._streams: dict[tuple[bytes, int, bytes, int], Stream] = {}

    @classmethod
    def create(
        cls, send: Callable[[bytes], None], log: Log, chance: random.Random, settings: dict[str, Any]
    ) -> LocalAcknowledgement:
        """From the settings as JSON has them."""
        lists: dict[str, Any] = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
        return cls(send, log, chance, Settings(**{**settings, **lists}))

    def take(self, packet: bytes, now: float) -> None:
        """Keep data, drop or pass ACKs, pass all else."""
        segment = packets.read(packet)
        if segment is None:
            self._send(packet)
            return
        stream = self._stream(segment)
        back = self._streams.get((segment.target, segment.target_port, segment.source, segment.source_port))
        if stream is None or back is None:
            self._send(packet)
            return
        stream.sender.see(segment)
        if segment.flags & SYN:
            self._begin(stream, segment)
            self._send(packet)
            return
        if segment.flags & RST:
            stream.held = back.held = None
        if stream.held is None or back.held is None:
            self._send(packet)
            return
        if segment.flags & ACK:
            back.held.acknowledged(
                segment.acknowledgement, segment.selective, segment.window << stream.sender.scale, now
            )
            if back.active and self._window(back) >= self._enough(back) > back.offered:
                back.pending = True
        if segment.payload or segment.flags & FIN:
            self._take_data(stream, packet, segment, now)
        elif not (back.active and segment.is_plain_acknowledgement and self._is_replaced(back, segment)):
            self._send(packet)

    def settle(self, now: float) -> None:
        """Acknowledge what came in, send on what may be sent."""
        for stream in self._streams.values():
            if stream.held is None:
                continue
            if stream.pending:
                self._acknowledge(stream)
            for packet in stream.held.to_send(now):
                self._send(packet)

    def due(self) -> float | None:
        """When the next retransmission is due."""
        times = [at for stream in self._streams.values() if stream.held and (at := stream.held.due()) is not None]
        return min(times, default=None)

    def _stream(self, segment: Segment) -> Stream | None:
        key = (segment.source, segment.source_port, segment.target, segment.target_port)
        known = self._streams.get(key)
        if segment.flags & (SYN | ACK) == SYN and (known is None or known.first not in (-1, segment.end)):
            sender = Host(segment.source, segment.source_port)
            receiver = Host(segment.target, segment.target_port)
            if segment.target_port not in self._settings.ports:
                return None
            up = "up" if segment.source == self._mobile else "down"
            down = "down" if up == "up" else "up"
            self._streams[key] = Stream(sender, receiver, up in self._settings.directions)
            self._streams[key[2:] + key[:2]] = Stream(receiver, sender, down in self._settings.directions)
        return self._streams.get(key)

    def _begin(self, stream: Stream, segment: Segment) -> None:
        stream.first = stream.expected = stream.last_acknowledged = segment.end
        stream.held = HeldData(segment.end)
        if segment.timestamps is not None:
            stream.recent_timestamp = segment.timestamps[0]

    def _take_data(self, stream: Stream, packet: bytes, segment: Segment, now: float) -> None:
        held = stream.held
        assert held is not None
        self._note_timestamp(stream, segment)
        if not stream.active:
            self._send(packet)  # the hosts are still on their own: the middlebox only keeps copies
        new = packets.after(segment.end, stream.expected) and not any(
            packets.distance(segment.sequence, left) >= 0 >= packets.distance(segment.end, right)
            for left, right in stream.early
        )
        if new:
            held.append(packet, segment, sent_at=None if stream.active else now)
            stream.early.insert(0, (segment.sequence, segment.end))
            _join(stream)
        passed = packets.distance(stream.expected, stream.first)
        if stream.served and not stream.active and passed >= self._settings.after_bytes:
            stream.active = True
        stream.pending |= stream.active

    def _note_timestamp(self, stream: Stream, segment: Segment) -> None:
        """TS.Recent (RFC 7323, 4.3)."""
        if segment.timestamps is not None and not packets.after(segment.sequence, stream.last_acknowledged):
            stream.recent_timestamp = segment.timestamps[0]

    def _is_replaced(self, stream: Stream, segment: Segment) -> bool:
        """Whether the receiver's ACK has no information beyond the middlebox's own ACKs: all but that of the FIN."""
        assert stream.held is not None
        acknowledges_fin = stream.held.fin is not None and packets.after(segment.acknowledgement, stream.held.fin)
        return self._settings.receivers_acknowledgements == "dropped" and not acknowledges_fin

    def _window(self, stream: Stream) -> int:
        """What the middlebox offers the sender, in bytes."""
        assert stream.held is not None
        offered = stream.receiver.window << stream.receiver.scale
        if self._settings.window == "own":
            offered = max(0, self._settings.buffer_bytes - stream.held.bytes)
        return min(offered, 65_535 << stream.receiver.scale)

    def _enough(self, stream: Stream) -> int:
        assert stream.held is not None
        return _SEGMENTS_TO_REOPEN * stream.held.largest

    def _acknowledge(self, stream: Stream) -> None:
        held, receiver = stream.held, stream.receiver
        assert held is not None
        number = stream.expected
        if held.fin is not None and packets.after(number, held.fin):
            number = held.fin
        options = []
        if receiver.timestamp is not None:
            options.append((int(Option.TIMESTAMPS), struct.pack(">II", receiver.timestamp, stream.recent_timestamp)))
        if stream.early and receiver.selective and stream.sender.selective:
            blocks = stream.early[:_MOST_SACK_BLOCKS]
            options.append((int(Option.SACK), b"".join(struct.pack(">II", *block) for block in blocks)))
        offered = self._window(stream)
        self._identification += 1
        identification = self._identification if self._settings.identification == "counter" else 0
        header = packets.bare_header(receiver.address, stream.sender.address, receiver.hops, identification)
        made = Segment(
            header, receiver.port, stream.sender.port, receiver.next_sequence, number, ACK,
            offered >> receiver.scale, packets.write_options(options), b"",
        )  # fmt: skip
        self._send(made.bytes())
        if not stream.said and packets.after(number, held.confirmed):
            self._say(stream, packets.distance(held.confirmed, stream.first))
        stream.pending, stream.last_acknowledged, stream.offered = False, number, offered

    def _say(self, stream: Stream, from_byte: int) -> None:
        stream.said = True
        up = stream.sender.address == self._mobile
        mobile = stream.sender if up else stream.receiver
        family = socket.AF_INET if len(mobile.address) == 4 else socket.AF_INET6
        self._log.write(
            done="acknowledged locally", client=f"{socket.inet_ntop(family, mobile.address)}:{mobile.port}",
            direction="up" if up else "down", from_byte=from_byte,
        )  # fmt: skip


def _join(stream: Stream) -> None:
    """Move on over what came early and join what touches, the latest first (RFC 2018, 4)."""
    latest = stream.early[0]
    for left, right in sorted(stream.early, key=lambda r: packets.distance(r[0], stream.expected)):
        if not packets.after(left, stream.expected) and packets.after(right, stream.expected):
            stream.expected = right
    for left, right in sorted(stream.early[1:], key=lambda r: packets.distance(r[0], stream.expected)):
        if not packets.after(left, latest[1]) and not packets.after(latest[0], right):
            first = left if packets.after(latest[0], left) else latest[0]
            last = right if packets.after(right, latest[1]) else latest[1]
            latest = (first, last)
    others = [r for r in stream.early[1:] if packets.after(r[0], latest[1]) or packets.after(latest[0], r[1])]
    stream.early = [r for r in (latest, *others) if packets.after(r[1], stream.expected)]
