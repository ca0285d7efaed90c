"""A middlebox that forwards the handshake and later takes over the connection, with sockets of its
own.

The sockets come into being with TCP_REPAIR (Linux): with the sequence numbers, windows, options and unacknowledged
data that the middlebox has seen pass. From then on the middle is a relay.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.fresh import packets
from benchmarks.fresh.packets import ACK, FIN, RST, SYN, Option, Segment
from benchmarks.fresh.relay import pump

if TYPE_CHECKING:
    import random

    from benchmarks.fresh.origin import Log

# linux/tcp.h
_REPAIR, _REPAIR_QUEUE, _QUEUE_SEQUENCE, _REPAIR_OPTIONS, _TIMESTAMP, _REPAIR_WINDOW = 19, 20, 21, 22, 24, 29
_RECEIVE_QUEUE, _SEND_QUEUE = 1, 2
_IP_TRANSPARENT = 19
_PIECE_BYTES = 65_536


@dataclass(slots=True)
class Side:
    """One host, and what it has sent: `sent` is the end of its data in order, `data` what the other host has not
    acknowledged of them."""

    address: bytes
    port: int
    begun: bool = False
    first: int = 0
    sent: int = 0
    data: bytearray = field(default_factory=bytearray)
    confirmed: int = 0
    window: int = 0
    scale: int | None = None
    segment_size: int = 536
    selective: bool = False
    timestamp: int | None = None
    gap: bool = False
    ended: bool = False

    def see(self, segment: Segment) -> None:
        """Note a segment that this host sent."""
        if segment.flags & SYN:
            self._greet(segment)
            return
        if segment.timestamps is not None:
            self.timestamp = segment.timestamps[0]
        self.window = segment.window << (self.scale or 0)
        self.ended |= bool(segment.flags & (FIN | RST))
        ahead = packets.distance(self.sent, segment.sequence)
        self.gap = ahead < 0 and bool(segment.payload)
        if 0 <= ahead < len(segment.payload):
            self.data += segment.payload[ahead:]
            self.sent = packets.advance(segment.sequence, len(segment.payload))

    def acknowledge(self, number: int) -> None:
        """The other host has acknowledged."""
        if packets.after(number, self.confirmed) and not packets.after(number, self.sent):
            del self.data[: packets.distance(number, self.confirmed)]
            self.confirmed = number

    def _greet(self, segment: Segment) -> None:
        self.begun = True
        self.first = self.sent = self.confirmed = segment.end
        size, scale = segment.option(Option.MSS), segment.option(Option.SCALE)
        self.segment_size = struct.unpack(">H", size)[0] if size else 536
        self.scale = min(scale[0], 14) if scale else None
        self.selective = segment.option(Option.SACK_PERMITTED) is not None
        self.timestamp = segment.timestamps[0] if segment.timestamps else None
        self.window = segment.window


@dataclass(slots=True)
class Connection:
    """The two hosts of a connection that the middlebox watches."""

    client: Side
    server: Side
    taken: bool = False


class Handover:
    """The behaviour of `packet_box` that this module is about."""

    def __init__(self, send: Callable[[bytes], None], log: Log, after_bytes: int, port: int) -> None:
        self._send, self._log, self._after_bytes, self._port = send, log, after_bytes, port
        self._connections: dict[tuple[bytes, int], Connection] = {}

    @classmethod
    def create(
        cls, send: Callable[[bytes], None], log: Log, chance: random.Random, settings: dict[str, Any]
    ) -> Handover:
        """From the settings as JSON has them: `after_bytes` sent by the server, of connections to `port`."""
        del chance
        return cls(send, log, settings["after_bytes"], settings["port"])

    def take(self, packet: bytes, now: float) -> None:
        """Watch a packet pass, and take its connection over where the time has come."""
        del now
        self._send(packet)
        segment = packets.read(packet)
        if segment is None or len(segment.source) != 4 or self._port not in (segment.source_port, segment.target_port):
            return
        from_client = segment.target_port == self._port
        key = (segment.source, segment.source_port) if from_client else (segment.target, segment.target_port)
        if segment.flags & (SYN | ACK) == SYN:
            self._connections[key] = Connection(
                Side(segment.source, segment.source_port), Side(segment.target, segment.target_port)
            )
        connection = self._connections.get(key)
        if connection is None or connection.taken:
            return
        own, other = connection.client, connection.server
        if not from_client:
            own, other = other, own
        own.see(segment)
        if segment.flags & ACK:
            other.acknowledge(segment.acknowledgement)
        if self._is_due(connection):
            self._take_over(connection)

    def settle(self, now: float) -> None:
        """Nothing waits here."""

    def due(self) -> float | None:
        """Nothing waits here."""
        return None

    def _is_due(self, connection: Connection) -> bool:
        """Enough has passed, nothing is missing, and neither host is closing."""
        client, server = connection.client, connection.server
        whole = client.begun and server.begun and not (client.gap or server.gap or client.ended or server.ended)
        return whole and packets.distance(server.sent, server.first) >= self._after_bytes

    def _take_over(self, connection: Connection) -> None:
        client, server = connection.client, connection.server
        connection.taken = True
        near, far = _socket_in_place_of(server, client), _socket_in_place_of(client, server)
        self._log.write(
            done="taken over", client=f"{socket.inet_ntoa(client.address)}:{client.port}",
            from_byte=packets.distance(server.sent, server.first),
        )  # fmt: skip
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=pump, args=(source, target), daemon=True).start()


def _socket_in_place_of(own: Side, peer: Side) -> socket.socket:
    """A connected socket that goes on as `own` where `own` has come to, towards `peer`."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_IP, _IP_TRANSPARENT, 1)

    def set_tcp(option: int, value: int | bytes) -> None:
        made.setsockopt(socket.IPPROTO_TCP, option, value)

    set_tcp(_REPAIR, 1)
    for queue, number in ((_SEND_QUEUE, own.confirmed), (_RECEIVE_QUEUE, peer.sent)):
        set_tcp(_REPAIR_QUEUE, queue)
        set_tcp(_QUEUE_SEQUENCE, struct.pack("I", number))
    made.bind((socket.inet_ntoa(own.address), own.port))
    made.connect((socket.inet_ntoa(peer.address), peer.port))
    options = [(int(Option.MSS), min(own.segment_size, peer.segment_size))]
    if own.scale is not None and peer.scale is not None:
        options.append((int(Option.SCALE), peer.scale | own.scale << 16))
    if own.selective and peer.selective:
        options.append((int(Option.SACK_PERMITTED), 0))
    stamped = own.timestamp is not None and peer.timestamp is not None
    if stamped:
        options.append((int(Option.TIMESTAMPS), 0))
    set_tcp(_REPAIR_OPTIONS, b"".join(struct.pack("II", *option) for option in options))
    if own.timestamp is not None and stamped:
        set_tcp(_TIMESTAMP, struct.pack("I", own.timestamp & ~1))  # the lowest bit would mean microseconds
    set_tcp(_REPAIR_QUEUE, _SEND_QUEUE)
    at = 0
    while at < len(own.data):
        at += made.send(bytes(own.data[at : at + _PIECE_BYTES]))
    window = struct.pack("5I", peer.sent, peer.window, max(peer.window, 1), max(own.window, 1), peer.sent)
    set_tcp(_REPAIR_WINDOW, window)
    set_tcp(_REPAIR, 0)
    return made
