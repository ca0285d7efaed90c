"""Datagrams that a server's own programs answer: a DNS query, and a QUIC packet of a version that no server speaks.

A middlebox that ends TCP connections ends neither, so that the round trip is the whole path's. A QUIC server answers
the first packet of an unknown version with the versions that it knows, and keeps nothing of it (RFC 9000, sections 6
and 17.2.1); versions of the form 0x?a?a?a?a are reserved for that (section 15). A resolver answers a query for the
root's name servers (RFC 1035), which it needs to know itself. Networks may answer queries to any resolver from a near
one: such a round trip is too short, never too long.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

_DNS_PORT, _QUIC_PORT = 53, 443
_DNS_HEADER = struct.Struct("!HHHHHH")
_RECURSION_DESIRED, _IS_RESPONSE = 0x0100, 0x8000
_NS, _INTERNET = 2, 1
#: RFC 9000, section 14.1: a server drops the first packet of a client that is shorter.
_QUIC_BYTES = 1_200
_RESERVED_VERSION = 0x1A2A3A4A
_LONG_HEADER = 0xC0
_ID_BYTES = 8
_MOST_ANSWER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Question:
    """A datagram, and what tells its answer from others."""

    data: bytes
    is_answer: Callable[[bytes], bool]


def dns_question() -> Question:
    """A query for the name servers of the root."""
    number = int.from_bytes(os.urandom(2), "big")
    asked = b"\0" + struct.pack("!HH", _NS, _INTERNET)

    def is_answer(data: bytes) -> bool:
        if len(data) < _DNS_HEADER.size:
            return False
        found, flags, *_ = _DNS_HEADER.unpack_from(data)
        return found == number and bool(flags & _IS_RESPONSE)

    return Question(_DNS_HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + asked, is_answer)


def quic_question() -> Question:
    """The first packet of a QUIC connection whose version no server speaks."""
    far, near = os.urandom(_ID_BYTES), os.urandom(_ID_BYTES)
    head = bytes([_LONG_HEADER]) + struct.pack("!I", _RESERVED_VERSION)
    head += bytes([_ID_BYTES]) + far + bytes([_ID_BYTES]) + near
    # As an Initial packet: no token, and the length of the rest in two bytes (sections 16 and 17.2.2).
    head += b"\0" + struct.pack("!H", 0x4000 | (_QUIC_BYTES - len(head) - 3))

    def is_answer(data: bytes) -> bool:
        """Whether it is a version negotiation packet to these connection IDs (RFC 9000, section 17.2.1)."""
        ids = bytes([_ID_BYTES]) + near + bytes([_ID_BYTES]) + far
        return len(data) >= 5 + len(ids) and bool(data[0] & 0x80) and data[1:5] == bytes(4) and data[5:].startswith(ids)

    return Question(head.ljust(_QUIC_BYTES, b"\0"), is_answer)


def least_dns_s(address: str, tries: int, timeout_s: float) -> float | None:
    """The least round trip of queries to a resolver, one after the other; None where the first has no answer."""
    return _least_s(address, _DNS_PORT, dns_question, tries, timeout_s)


def least_quic_s(address: str, tries: int, timeout_s: float) -> float | None:
    """The least round trip to a QUIC server, one packet after the other; None where the first has no answer."""
    return _least_s(address, _QUIC_PORT, quic_question, tries, timeout_s)


def _least_s(address: str, port: int, ask: Callable[[], Question], tries: int, timeout_s: float) -> float | None:
    found: list[float] = []
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as link:
            link.connect((address, port))
            for _ in range(tries):
                after_s = _answered_s(link, ask(), timeout_s)
                if after_s is None and not found:
                    return None
                found += [] if after_s is None else [after_s]
    except OSError:
        pass
    return min(found, default=None)


def _answered_s(link: socket.socket, question: Question, timeout_s: float) -> float | None:
    sent_s = time.monotonic()
    link.send(question.data)
    while (left_s := sent_s + timeout_s - time.monotonic()) > 0:
        link.settimeout(left_s)
        try:
            data = link.recv(_MOST_ANSWER_BYTES)
        except TimeoutError:
            return None
        came_s = time.monotonic()
        if question.is_answer(data):
            return came_s - sent_s
    return None
