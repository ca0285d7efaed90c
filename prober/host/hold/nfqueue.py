"""A netfilter queue (NFQUEUE): packets of the kernel that wait until we let them go. Netlink, without a library.

Messages and attributes are those of linux/netfilter/nfnetlink_queue.h; only what names a packet is copied to us, never
its bytes. Packets leave in the order in which they came, by batches: a verdict on a number goes for all before it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import struct
from pathlib import Path

from prober.errors import ImpossibleError

_NETLINK_NETFILTER = 12
_SUBSYSTEM_QUEUE = 3 << 8
_PACKET, _CONFIG, _VERDICT_BATCH = (_SUBSYSTEM_QUEUE | kind for kind in (0, 2, 3))
_ERROR_MESSAGE = 2  # NLMSG_ERROR
_REQUEST, _ACKNOWLEDGE = 1, 4
_CONFIG_COMMAND, _CONFIG_PARAMETERS, _CONFIG_LENGTH, _CONFIG_MASK, _CONFIG_FLAGS = 1, 2, 3, 4, 5
_COMMAND_BIND = 1
_COPY_META = 1
_FLAG_GSO = 4  # segments that the device is to cut stay whole
_ATTRIBUTE_PACKET_HEADER, _ATTRIBUTE_VERDICT_HEADER = 1, 2
_ACCEPT = 1
_SOL_NETLINK, _NO_ENOBUFS = 270, 5
_SO_RCVBUFFORCE = 33

_HEADER = struct.Struct("=IHHII")
_FAMILY = struct.Struct("=BBH")
_ATTRIBUTE = struct.Struct("=HH")

#: Packets that may wait at once: T of 10 s at 6,000 acknowledgements a second, 70 Mbit/s in single segments.
QUEUE_PACKETS = 65_536
_BUFFER_BYTES = 8 << 20
_RECEIVE_BYTES = 1 << 16
_TRIES = 16
_TABLE = Path("/proc/thread-self/net/netfilter/nfnetlink_queue")


class PacketQueue:
    """A queue of the namespace of the thread that makes it, bound under a free number.

    When it is closed, the kernel drops what still waits.
    """

    def __init__(self) -> None:
        """Bind a queue. Raises ImpossibleError without CAP_NET_ADMIN, or where the kernel has no NFQUEUE."""
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        except OSError as error:
            raise ImpossibleError(f"the kernel has no netfilter netlink ({error.strerror})") from None
        try:
            self._socket.bind((0, 0))
            self.number = self._bind()
            self._configure()
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Readable when packets came."""
        return self._socket.fileno()

    def receive(self) -> list[int]:
        """Numbers of the packets that came since, in order; empty where none did."""
        numbers: list[int] = []
        while True:
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return numbers
            numbers += packet_numbers(data)

    def release_through(self, number: int) -> None:
        """Let this packet and all that came before it go. Raises OSError."""
        header = _attribute(_ATTRIBUTE_VERDICT_HEADER, struct.pack(">II", _ACCEPT, number))
        self._socket.send(_message(_VERDICT_BATCH, _REQUEST, self.number, header))

    def dropped_packets(self) -> int:
        """Packets that the kernel dropped since the queue was full, or since we did not take them in time."""
        for row in _rows():
            if int(row[0]) == self.number:
                return int(row[5]) + int(row[6])
        return 0

    def close(self) -> None:
        """Give the queue up; what waits is dropped."""
        self._socket.close()

    def _bind(self) -> int:
        for _ in range(_TRIES):
            number = 1 + secrets.randbelow(65_535)
            command = _attribute(_CONFIG_COMMAND, struct.pack(">BBH", _COMMAND_BIND, 0, 0))
            code = self._ask(number, command)
            if code == 0:
                return number
            if code not in (errno.EBUSY, errno.EPERM) or (code == errno.EPERM and number not in queues_in_use()):
                reason = "needs root (CAP_NET_ADMIN)" if code == errno.EPERM else f"is refused: {os.strerror(code)}"
                raise ImpossibleError(f"a netfilter queue {reason}")
        raise ImpossibleError("no number for a netfilter queue is free")

    def _configure(self) -> None:
        for attributes in (
            _attribute(_CONFIG_PARAMETERS, struct.pack(">IB", 0, _COPY_META)),
            _attribute(_CONFIG_LENGTH, struct.pack(">I", QUEUE_PACKETS)),
            _attribute(_CONFIG_MASK, struct.pack(">I", _FLAG_GSO))
            + _attribute(_CONFIG_FLAGS, struct.pack(">I", _FLAG_GSO)),
        ):
            code = self._ask(self.number, attributes)
            if code:
                raise ImpossibleError(f"the kernel's netfilter queue lacks what is needed: {os.strerror(code)}")
        self._socket.setsockopt(_SOL_NETLINK, _NO_ENOBUFS, 1)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)

    def _ask(self, number: int, attributes: bytes) -> int:
        """Send a configuration and await the kernel's answer; its error number, 0 for success."""
        self._socket.send(_message(_CONFIG, _REQUEST | _ACKNOWLEDGE, number, attributes))
        self._socket.settimeout(2.0)
        while True:
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                return errno.ETIMEDOUT
            for kind, body in _messages(data):
                if kind == _ERROR_MESSAGE and len(body) >= 4:
                    code: int = struct.unpack_from("=i", body)[0]
                    return -code


def queues_in_use() -> set[int]:
    """Numbers of the queues that a process holds in the namespace of the calling thread."""
    return {int(row[0]) for row in _rows()}


def packet_numbers(data: bytes) -> list[int]:
    """Packet numbers in a datagram of netlink messages; what is no packet, or damaged, is passed over."""
    numbers = []
    for kind, body in _messages(data):
        if kind != _PACKET:
            continue
        offset = _FAMILY.size
        while offset + _ATTRIBUTE.size <= len(body):
            length, attribute = _ATTRIBUTE.unpack_from(body, offset)
            if length < _ATTRIBUTE.size or offset + length > len(body):
                break
            if attribute & 0x3FFF == _ATTRIBUTE_PACKET_HEADER and length >= _ATTRIBUTE.size + 4:
                numbers.append(int.from_bytes(body[offset + 4 : offset + 8], "big"))
                break
            offset += _aligned(length)
    return numbers


def _rows() -> list[list[str]]:
    try:
        lines = _TABLE.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    return [row for line in lines if len(row := line.split()) >= 7]


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            break
        found.append((kind, data[offset + _HEADER.size : offset + length]))
        offset += _aligned(length)
    return found


def _message(kind: int, flags: int, queue: int, attributes: bytes) -> bytes:
    body = _FAMILY.pack(socket.AF_UNSPEC, 0, socket.htons(queue)) + attributes
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (_aligned(length) - length)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
