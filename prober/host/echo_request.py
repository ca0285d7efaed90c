"""How long a host takes to answer an ICMP echo request, by a datagram socket that needs no right (Linux, icmp(7)).

A middlebox that ends TCP connections ends no echo requests, so that their round trip is the host's own (RFC 792, RFC
4443). Which groups may send them is the system's choice (net.ipv4.ping_group_range).
"""

from __future__ import annotations

import os
import socket
import struct
import time

#: Type of request and reply.
_TYPES = {socket.AF_INET: (8, 0), socket.AF_INET6: (128, 129)}
_PROTOCOLS = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
#: Type, code, checksum and identifier (which the kernel sets), sequence number.
_HEADER = struct.Struct("!BBHHH")
_NONCE_BYTES = 16
_MOST_REPLY_BYTES = 2048
#: A host that left so many unanswered is asked no more.
_SILENT_TRIES = 2


def echo_request(address: str, number: int, nonce: bytes = b"") -> bytes:
    """An echo request to an address, without checksum and identifier, which the kernel sets."""
    request, _ = _TYPES[socket.AF_INET6 if ":" in address else socket.AF_INET]
    return _HEADER.pack(request, 0, 0, 0, number) + (nonce or os.urandom(_NONCE_BYTES))


def least_echo_s(address: str, tries: int, timeout_s: float) -> float | None:
    """The least round trip of `tries` echo requests, one after the other, each waited for `timeout_s`.

    None where none was answered, and where this system lets this user send none.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found: list[float] = []
    try:
        with socket.socket(family, socket.SOCK_DGRAM, _PROTOCOLS[family]) as link:
            link.connect((address, 0))
            for number in range(1, tries + 1):
                after_s = _echo_s(link, address, number, timeout_s)
                found += [] if after_s is None else [after_s]
                if not found and number >= _SILENT_TRIES:
                    return None
    except OSError:
        pass
    return min(found, default=None)


def _echo_s(link: socket.socket, address: str, number: int, timeout_s: float) -> float | None:
    _, reply = _TYPES[socket.AF_INET6 if ":" in address else socket.AF_INET]
    nonce = os.urandom(_NONCE_BYTES)
    sent_s = time.monotonic()
    link.send(echo_request(address, number, nonce))
    while (left_s := sent_s + timeout_s - time.monotonic()) > 0:
        link.settimeout(left_s)
        try:
            answer = link.recv(_MOST_REPLY_BYTES)
        except TimeoutError:
            return None
        came_s = time.monotonic()
        if len(answer) >= _HEADER.size and answer[0] == reply and answer[_HEADER.size :] == nonce:
            return came_s - sent_s
    return None
