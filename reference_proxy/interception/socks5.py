"""The SOCKS version 5 handshake before the relay begins (RFC 1928): parsing and answers, without any I/O."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from enum import IntEnum

from reference_proxy.errors import MalformedError, RefusedError

VERSION = 5
NO_AUTHENTICATION = 0
NO_ACCEPTABLE_METHOD = 0xFF
CONNECT = 1


class AddressType(IntEnum):
    """How a destination is written (section 5)."""

    IPV4 = 1
    NAME = 3
    IPV6 = 4


class Reply(IntEnum):
    """Answers to a request (section 6)."""

    SUCCEEDED = 0
    FAILED = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    CONNECTION_REFUSED = 5
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


@dataclass(frozen=True, slots=True)
class Request:
    """A requested destination, and what came behind it."""

    host: str
    port: int
    rest: bytes


def encode_reply(reply: Reply) -> bytes:
    """An answer without the proxy's address, which a client does not need after CONNECT."""
    return bytes((VERSION, reply, 0, AddressType.IPV4)) + bytes(6)


class Handshake:
    """Takes bytes as they come; gives what to answer and, in the end, the request."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_greeted = False

    def feed(self, data: bytes) -> tuple[bytes, Request | None]:
        """What to answer now, and the request once it is whole.

        Raises MalformedError, and RefusedError for a valid request that is not supported; `answer_to` gives the reply.
        """
        self._held += data
        answer = b""
        if not self._is_greeted:
            methods = self._greeting()
            if methods is None:
                return b"", None
            if NO_AUTHENTICATION not in methods:
                raise RefusedError("socks-method", "the client must offer the SOCKS method without authentication")
            self._is_greeted = True
            answer = bytes((VERSION, NO_AUTHENTICATION))
        return answer, self._request()

    def answer_to(self, refusal: RefusedError) -> bytes:
        """How the refusal is put to the client."""
        if not self._is_greeted:
            return bytes((VERSION, NO_ACCEPTABLE_METHOD))
        replies = {
            "socks-command": Reply.COMMAND_NOT_SUPPORTED,
            "socks-address-type": Reply.ADDRESS_TYPE_NOT_SUPPORTED,
            "not-allowed": Reply.NOT_ALLOWED,
            "loop": Reply.NOT_ALLOWED,
            "unreachable": Reply.HOST_UNREACHABLE,
            "server-refused": Reply.CONNECTION_REFUSED,
        }
        return encode_reply(replies.get(refusal.reason, Reply.FAILED))

    def _greeting(self) -> bytes | None:
        if self._held and self._held[0] != VERSION:
            raise MalformedError(f"a SOCKS greeting must begin with 5, got {self._held[0]}")
        if len(self._held) < 2 or len(self._held) < 2 + self._held[1]:
            return None
        end = 2 + self._held[1]
        methods = bytes(self._held[2:end])
        del self._held[:end]
        return methods

    def _request(self) -> Request | None:
        if len(self._held) < 5:
            return None
        version, command, reserved, address_type, first = self._held[:5]
        if version != VERSION or reserved != 0:
            raise MalformedError("a SOCKS request must begin with 5, a command and 0")
        if command != CONNECT:
            raise RefusedError("socks-command", f"the SOCKS command must be CONNECT, got {command}")
        lengths = {AddressType.IPV4: 4, AddressType.IPV6: 16, AddressType.NAME: 1 + first}
        if address_type not in list(AddressType):
            raise RefusedError("socks-address-type", f"the SOCKS address type must be 1, 3 or 4, got {address_type}")
        end = 4 + lengths[AddressType(address_type)]
        if len(self._held) < end + 2:
            return None
        address = bytes(self._held[4:end])
        (port,) = struct.unpack_from("!H", self._held, end)
        return Request(_host(AddressType(address_type), address), port, bytes(self._held[end + 2 :]))


def _host(address_type: AddressType, address: bytes) -> str:
    if address_type is not AddressType.NAME:
        return str(ipaddress.ip_address(address))
    try:
        name = address[1:].decode("ascii")
    except UnicodeDecodeError:
        name = ""
    if not name or not all(character.isalnum() or character in "-._:" for character in name):
        raise MalformedError("the name in a SOCKS request must be a host name")
    return name
