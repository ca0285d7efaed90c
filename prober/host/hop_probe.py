"""SYNs, datagrams and echo requests that may cross only so many routers, and who answered them; no right needed (Linux,
ip(7)).

A socket with IP_TTL (IPV6_UNICAST_HOPS) and IP_RECVERR gets from its error queue which router dropped its packet (ICMP
time exceeded, RFC 792 and RFC 4443).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from prober.host.echo_request import echo_request
from prober.host.reset import reset_on_close

_IPV6_RECVERR = 25  # linux/in6.h; the socket module names only the IPv4 one, and that since Python 3.14
_IP_RECVERR = 11
_EXTENDED_ERROR = struct.Struct("=IBBBBII")  # struct sock_extended_err
_FROM_ICMP, _FROM_ICMP6 = 2, 3
_TIME_EXCEEDED = {_FROM_ICMP: 11, _FROM_ICMP6: 3}
_ECHO_BYTES = 2048
#: SYNs of one port under way at once: more might look like an attack.
_AT_ONCE = 8


class _Kind(Enum):
    """What a probe sends: type and protocol of its socket."""

    CONNECTION = (socket.SOCK_STREAM, 0)
    DATAGRAM = (socket.SOCK_DGRAM, 0)
    ECHO_REQUEST = (socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    ECHO_REQUEST_6 = (socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)


class Answer(StrEnum):
    """What became of one probe."""

    #: The handshake completed, or the echo came back.
    ANSWERED = "answered"
    #: A router on the way dropped it since its hops were used up.
    ROUTER = "router"
    #: It was refused, by a reset or by another ICMP message.
    REFUSED = "refused"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class HopAnswer:
    """One probe and its answer."""

    hops: int
    answer: Answer
    #: Address of the router that reported the drop, or of whoever refused by ICMP, if any.
    router: str
    mobile_port: int
    #: From the probe to its answer; where none came, how long the prober waited for one.
    after_s: float


@dataclass(slots=True)
class _Probe:
    link: socket.socket
    hops: int
    is_datagram: bool
    sent_s: float

    def answered(self, answer: Answer, router: str, port: int) -> HopAnswer:
        return HopAnswer(self.hops, answer, router, port, time.monotonic() - self.sent_s)


def probe_connections(address: str, port: int, hops: Iterable[int], timeout_s: float) -> list[HopAnswer]:
    """Try to connect with each of these numbers of hops; what connects is reset at once. Raises OSError."""
    return _in_batches(_Kind.CONNECTION, address, port, hops, timeout_s, b"")


def probe_echo(address: str, port: int, hops: Iterable[int], timeout_s: float, question: bytes) -> list[HopAnswer]:
    """Ask a UDP echo with each of these numbers of hops. Raises OSError."""
    return _in_batches(_Kind.DATAGRAM, address, port, hops, timeout_s, question)


def probe_echo_requests(address: str, hops: Iterable[int], timeout_s: float) -> list[HopAnswer]:
    """Send ICMP echo requests with each of these numbers of hops. Raises OSError where this user may send none."""
    kind = _Kind.ECHO_REQUEST_6 if ":" in address else _Kind.ECHO_REQUEST
    return _in_batches(kind, address, 0, hops, timeout_s, echo_request(address, 1))


def _in_batches(
    kind: _Kind, address: str, port: int, hops: Iterable[int], timeout_s: float, question: bytes
) -> list[HopAnswer]:
    answers: list[HopAnswer] = []
    wanted = list(hops)
    for first in range(0, len(wanted), _AT_ONCE):
        answers += _probe_together(kind, address, port, wanted[first : first + _AT_ONCE], timeout_s, question)
    return answers


def _probe_together(
    kind: _Kind, address: str, port: int, hops: Sequence[int], timeout_s: float, question: bytes
) -> list[HopAnswer]:
    answers: dict[int, HopAnswer] = {}
    with contextlib.ExitStack() as closing:
        waiting: dict[int, _Probe] = {}
        poller = select.poll()
        for count in hops:
            link = closing.enter_context(_socket(kind, address, count))
            probe = _Probe(link, count, bool(question), time.monotonic())
            _send(probe, address, port, question)
            waiting[link.fileno()] = probe
            poller.register(link, select.POLLERR | (select.POLLIN if question else select.POLLOUT))
        deadline_s = time.monotonic() + timeout_s
        while waiting and (left_s := deadline_s - time.monotonic()) > 0:
            for descriptor, _ in poller.poll(left_s * 1000):
                found = _read(waiting[descriptor])
                if found is not None:
                    answers[waiting.pop(descriptor).hops] = found
                    poller.unregister(descriptor)
        for probe in waiting.values():
            answers[probe.hops] = probe.answered(Answer.SILENT, "", _own_port(probe.link))
    return [answers[count] for count in hops]


def _socket(kind: _Kind, address: str, hops: int) -> socket.socket:
    is_6 = ":" in address
    link = socket.socket(socket.AF_INET6 if is_6 else socket.AF_INET, *kind.value)
    try:
        link.setblocking(False)
        if is_6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
            link.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        else:
            link.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
            link.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        if kind is _Kind.CONNECTION:
            reset_on_close(link)
    except BaseException:
        link.close()
        raise
    return link


def _send(probe: _Probe, address: str, port: int, question: bytes) -> None:
    code = probe.link.connect_ex((address, port))
    if code not in (0, errno.EINPROGRESS):
        raise OSError(code, os.strerror(code))
    if probe.is_datagram:
        probe.link.send(question)


def _read(probe: _Probe) -> HopAnswer | None:
    """The answer that an event on a socket gives; `None` where there is none yet."""
    port = _own_port(probe.link)
    router, answer = _message(probe.link)
    if answer is not None:
        return probe.answered(answer, router, port)
    if probe.is_datagram:
        try:
            return probe.answered(Answer.ANSWERED, "", port) if probe.link.recv(_ECHO_BYTES) else None
        except BlockingIOError:
            return None
        except OSError:
            return probe.answered(Answer.REFUSED, router, port)
    if probe.link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        return probe.answered(Answer.REFUSED, router, port)
    try:
        probe.link.getpeername()
    except OSError:
        return None
    return probe.answered(Answer.ANSWERED, "", port)


def _message(link: socket.socket) -> tuple[str, Answer | None]:
    """Who sent an ICMP message about this socket, and what it means; reading it takes the socket's error away."""
    sender, answer = "", None
    while True:
        try:
            _, ancillary, _, _ = link.recvmsg(512, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except OSError:
            return sender, answer
        for _, _, data in ancillary:
            if len(data) < _EXTENDED_ERROR.size:
                continue
            _, origin, kind, _, _, _, _ = _EXTENDED_ERROR.unpack_from(data)
            if origin in _TIME_EXCEEDED and answer is not Answer.ROUTER:
                sender = _offender(data[_EXTENDED_ERROR.size :])
                answer = Answer.ROUTER if kind == _TIME_EXCEEDED[origin] else Answer.REFUSED


def _offender(address: bytes) -> str:
    """The address in a `sockaddr` of the kernel; empty where it is neither IPv4 nor IPv6."""
    family = int.from_bytes(address[:2], "little" if socket.htons(1) != 1 else "big")
    if family == socket.AF_INET and len(address) >= 8:
        return socket.inet_ntop(socket.AF_INET, address[4:8])
    if family == socket.AF_INET6 and len(address) >= 24:
        return socket.inet_ntop(socket.AF_INET6, address[8:24])
    return ""


def _own_port(link: socket.socket) -> int:
    return int(link.getsockname()[1])
