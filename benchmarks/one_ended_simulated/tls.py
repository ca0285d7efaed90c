"""TLS records that dissectors read without complaint (RFC 5246, 8446); keys and contents are meaningless."""

from __future__ import annotations

import struct
from enum import Enum
from random import Random


class Version(Enum):
    """Of TLS."""

    TLS_1_2 = 0x0303
    TLS_1_3 = 0x0304


_GROUP_X25519, _SIGNATURE = 0x001D, 0x0403
_CHANGE, _HANDSHAKE, _DATA = 20, 22, 23
_BODY = bytes((i * 167 + 13) % 256 for i in range(4096))


def body(size_bytes: int) -> bytes:
    """Meaningless bytes."""
    return (_BODY * (size_bytes // len(_BODY) + 1))[:size_bytes]


def _record(kind: int, payload: bytes, version: int = 0x0303) -> bytes:
    return struct.pack(">BHH", kind, version, len(payload)) + payload


def _message(kind: int, payload: bytes) -> bytes:
    return struct.pack(">B", kind) + len(payload).to_bytes(3, "big") + payload


def _extension(kind: int, payload: bytes) -> bytes:
    return struct.pack(">HH", kind, len(payload)) + payload


def application_data(size_bytes: int) -> bytes:
    """Encrypted bytes of an application in records of at most 16 KiB."""
    parts = []
    while size_bytes > 0:
        part = min(size_bytes, 16_384)
        parts.append(_record(_DATA, body(part + 17)))
        size_bytes -= part
    return b"".join(parts)


def client_hello(random: Random, version: Version, host: str, *, offers_h2: bool, size_bytes: int) -> bytes:
    """A ClientHello, padded to about `size_bytes` (RFC 7685)."""
    name = host.encode("ascii")
    server_name = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    protocols = (b"\x02h2" if offers_h2 else b"") + b"\x08http/1.1"
    extensions = [
        _extension(0, server_name),
        _extension(10, struct.pack(">HHH", 4, _GROUP_X25519, 0x0017)),
        _extension(11, b"\x01\x00"),
        _extension(13, struct.pack(">HHHH", 6, _SIGNATURE, 0x0804, 0x0401)),
        _extension(16, struct.pack(">H", len(protocols)) + protocols),
    ]
    if version is Version.TLS_1_3:
        key = random.randbytes(32)
        extensions.append(_extension(43, struct.pack(">BHH", 4, 0x0304, 0x0303)))
        extensions.append(_extension(51, struct.pack(">HHH", 36, _GROUP_X25519, 32) + key))
    suites = struct.pack(">HHHH", 0x1301, 0x1302, 0xC02F, 0xC030)
    session = random.randbytes(32)
    head = b"\x03\x03" + random.randbytes(32) + b"\x20" + session
    head += struct.pack(">H", len(suites)) + suites + b"\x01\x00"
    listed = b"".join(extensions)
    missing = size_bytes - len(head) - len(listed) - 15
    if missing > 0:
        listed += _extension(21, b"\0" * missing)
    return _record(_HANDSHAKE, _message(1, head + struct.pack(">H", len(listed)) + listed), 0x0301)


def server_flight(random: Random, version: Version, certificate_bytes: int) -> bytes:
    """From the ServerHello to what the client must answer."""
    head = b"\x03\x03" + random.randbytes(32) + b"\x20" + random.randbytes(32)
    if version is Version.TLS_1_3:
        key = struct.pack(">HH", _GROUP_X25519, 32) + random.randbytes(32)
        listed = _extension(43, b"\x03\x04") + _extension(51, key)
        hello = head + b"\x13\x01\x00" + struct.pack(">H", len(listed)) + listed
        flight = _record(_HANDSHAKE, _message(2, hello)) + _record(_CHANGE, b"\x01")
        return flight + _record(_DATA, body(certificate_bytes + 400))
    listed = _extension(11, b"\x01\x00") + _extension(23, b"")
    hello = head + b"\xc0\x2f\x00" + struct.pack(">H", len(listed)) + listed
    certificate = _certificate(certificate_bytes)
    chain = len(certificate).to_bytes(3, "big") + certificate
    exchange = struct.pack(">BHB", 3, _GROUP_X25519, 32) + random.randbytes(32)
    exchange += struct.pack(">HH", 0x0804, 256) + random.randbytes(256)
    return b"".join(
        _record(_HANDSHAKE, message)
        for message in (
            _message(2, hello),
            _message(11, len(chain).to_bytes(3, "big") + chain),
            _message(12, exchange),
            _message(14, b""),
        )
    )


def client_finished(random: Random, version: Version) -> bytes:
    """The client's answer to the server's flight."""
    change = _record(_CHANGE, b"\x01")
    if version is Version.TLS_1_3:
        return change + _record(_DATA, body(53))
    exchange = _record(_HANDSHAKE, _message(16, b"\x20" + random.randbytes(32)))
    return exchange + change + _record(_HANDSHAKE, b"\0" * 8 + body(32))


def server_finished() -> bytes:
    """TLS 1.2: the server's last word in the handshake."""
    return _record(_CHANGE, b"\x01") + _record(_HANDSHAKE, b"\0" * 8 + body(32))


def tickets(size_bytes: int = 250) -> bytes:
    """TLS 1.3: two session tickets, which the server sends unasked when the client's Finished has come."""
    return _record(_DATA, body(size_bytes)) * 2


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _certificate(size_bytes: int) -> bytes:
    """A certificate (RFC 5280) of about that size that says nothing, its size made by an extension of zeros."""
    algorithm = _der(0x30, _der(0x06, bytes.fromhex("2a864886f70d01010b")), _der(0x05))
    key_algorithm = _der(0x30, _der(0x06, bytes.fromhex("2b656e")))
    times = _der(0x30, _der(0x17, b"250101000000Z"), _der(0x17, b"350101000000Z"))
    comment = _der(0x16, b"x" * max(16, size_bytes - 420))
    extension = _der(0x30, _der(0x06, bytes.fromhex("6086480186f842010d")), _der(0x04, comment))
    signed = _der(
        0x30,
        _der(0xA0, _der(0x02, b"\x02")),
        _der(0x02, b"\x01"),
        algorithm,
        _der(0x30),
        times,
        _der(0x30),
        _der(0x30, key_algorithm, _der(0x03, b"\0" + body(32))),
        _der(0xA3, _der(0x30, extension)),
    )
    return _der(0x30, signed, algorithm, _der(0x03, b"\0" + body(256)))
