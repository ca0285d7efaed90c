"""Two captures of one transfer through a split that speaks TCP to the server and UDP of its own to the mobile."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from pepscope.captures.packets import Direction, TcpFlag
from tests.captures import containers
from tests.captures.containers import Frame
from tests.captures.conversation import START_NS, Conversation, Endpoint
from tests.captures.layers import udp
from tests.captures.segments import PROTOCOL_UDP, ipv4

SPLIT_POINT = Endpoint("203.0.113.9", 51_000, 0x1234_5678)
SERVER = Endpoint("198.51.100.80", 80, 0x9ABC_DEF0)
MOBILE_END = ("10.20.30.40", 45_000)
GATEWAY_END = ("10.99.0.1", 5_555)

REQUEST = b"GET /object-4711 HTTP/1.1\r\nHost: server.example\r\nUser-Agent: field test 7\r\nAccept: */*\r\n\r\n"

#: Header of a datagram, from its number, the stream offset of its bytes and its direction.
Header = Callable[[int, int, Direction], bytes]


def numbered(number: int, offset: int, direction: Direction) -> bytes:
    """Twelve bytes: a magic word, type and channel, and a packet number."""
    return struct.pack(">IBBHI", 0x5A17_C0DE, 3 + direction, 7, 0x0101, number + 1000)


def response(length: int, seed: int = 1) -> bytes:
    """An HTTP answer of `length` bytes with random content."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Trace: %08x\r\n\r\n" % (length, seed)
    return (head + random.Random(seed).randbytes(length))[:length]


@dataclass(slots=True)
class Transfer:
    """A download that a split point relays; the server's capture shows TCP, the mobile's UDP."""

    request: bytes = REQUEST
    answer: bytes = field(default_factory=lambda: response(120_000))
    segment_bytes: int = 1460
    datagram_bytes: int = 1200
    header: Header = numbered
    trailer: bytes = b""
    wired_ms: float = 20.0
    cell_ms: float = 45.0
    per_segment_ms: float = 1.0

    def tcp(self) -> list[Frame]:
        """At the server: handshake, request, answer, acknowledged by the split point."""
        talk = opened(self.wired_ms)
        if self.request:
            talk.send(Direction.UP, 0, 0, self.request).wait(0.2)
        sent = len(self.request)
        for offset in range(0, len(self.answer), self.segment_bytes):
            talk.send(Direction.DOWN, offset, sent, self.answer[offset : offset + self.segment_bytes])
            talk.wait(self.per_segment_ms)
        talk.wait(self.wired_ms).send(Direction.UP, sent, len(self.answer))
        talk.close(sent, len(self.answer))
        return [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]

    def udp(self, *, start_ms: float | None = None, lossy: int = 0, twice: int = 0) -> list[Frame]:
        """At the mobile: the request leaves before the server gets it, the answer comes when the server sent it.

        `start_ms` moves the datagrams of the answer to a time after the start of the connection, `lossy` leaves out
        every so many datagrams, `twice` repeats every so many under a new number.
        """
        frames = []
        if self.request:
            before = START_NS + round((self.wired_ms + 0.1 - self.cell_ms / 2) * 1e6)
            frames.append(self._frame(before, Direction.UP, 0, 0, self.request))
        begin = self.wired_ms + 0.3 + self.cell_ms if start_ms is None else start_ms
        number = 0
        for index, offset in enumerate(range(0, len(self.answer), self.datagram_bytes)):
            if lossy and index % lossy == lossy - 1:
                continue
            at = START_NS + round((begin + offset / self.segment_bytes * self.per_segment_ms) * 1e6)
            piece = self.answer[offset : offset + self.datagram_bytes]
            for _ in range(2 if twice and index % twice == 0 else 1):
                frames.append(self._frame(at, Direction.DOWN, number, offset, piece))
                frames.append(self._acknowledgement(at + 100_000, number))
                number += 1
        return frames

    def _frame(self, time_ns: int, direction: Direction, number: int, offset: int, piece: bytes) -> Frame:
        ends = (MOBILE_END, GATEWAY_END) if direction is Direction.UP else (GATEWAY_END, MOBILE_END)
        return datagram(time_ns, *ends, self.header(number, offset, direction) + piece + self.trailer)

    def _acknowledgement(self, time_ns: int, number: int) -> Frame:
        return datagram(time_ns, MOBILE_END, GATEWAY_END, struct.pack(">IBBHI", 0x5A17_C0DE, 9, 7, 0, number))


def opened(round_trip_ms: float = 20.0) -> Conversation:
    """The handshake as a capture at the server sees it."""
    talk = Conversation(SPLIT_POINT, SERVER)
    talk.send(Direction.UP, -1, None, flags=TcpFlag.SYN, window=64_240).wait(0.1)
    talk.send(Direction.DOWN, -1, 0, flags=TcpFlag.SYN, window=65_160).wait(round_trip_ms)
    return talk.send(Direction.UP, 0, 0)


def datagram(time_ns: int, source: tuple[str, int], destination: tuple[str, int], payload: bytes) -> Frame:
    """A UDP datagram in IPv4."""
    packet = udp(source[1], destination[1], payload)
    return Frame(time_ns, ipv4(source[0], destination[0], PROTOCOL_UDP, packet, ttl=60))


def moved(frames: list[Frame], seconds: float) -> list[Frame]:
    """The frames by a clock that is ahead by so much."""
    return [Frame(frame.time_ns + round(seconds * 1e9), frame.data, frame.interface) for frame in frames]


def capture_bytes(*groups: list[Frame], snap_length: int = 262_144) -> bytes:
    """A raw IP capture of all frames in the order of time."""
    frames = sorted((frame for group in groups for frame in group), key=lambda frame: frame.time_ns)
    return containers.write_pcap(frames, containers.LINK_RAW, snap_length=snap_length)
