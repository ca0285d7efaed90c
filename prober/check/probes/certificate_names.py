"""The issuer of an X.509 certificate, read from its DER (RFC 5280, ITU-T X.690): Python reads trusted ones only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_SEQUENCE, _SET, _OBJECT_ID, _VERSION = 0x30, 0x31, 0x06, 0xA0
#: Organisation and common name (X.520), as they are encoded.
_WORDS = (b"\x55\x04\x0a", b"\x55\x04\x03")
_MOST_LETTERS = 120


@dataclass(frozen=True, slots=True)
class Issuer:
    """A name as it is encoded, and its organisation and common name."""

    encoded: bytes
    words: str


def issuer_of(certificate: bytes) -> Issuer:
    """The issuer. Raises ValueError where this is no certificate."""
    _, inner, _ = _element(certificate)
    _, fields, _ = _element(inner)
    found = list(_elements(fields))
    if found and found[0][0] == _VERSION:
        del found[0]
    if len(found) < 3 or found[2][0] != _SEQUENCE:
        raise ValueError("a certificate must name its issuer")
    encoded = found[2][1]
    return Issuer(encoded, ", ".join(dict.fromkeys(_words(encoded)))[:_MOST_LETTERS])


def _words(name: bytes) -> Iterator[str]:
    for tag, group in _elements(name):
        if tag != _SET:
            continue
        for _, pair in _elements(group):
            parts = list(_elements(pair))
            if len(parts) == 2 and parts[0][0] == _OBJECT_ID and parts[0][1] in _WORDS:
                yield "".join(each for each in parts[1][1].decode("utf-8", "replace") if each.isprintable())


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        tag, content, data = _element(data)
        yield tag, content


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content, and what follows. Raises ValueError where the data end before."""
    if len(data) < 2:
        raise ValueError("a certificate must not end within an element")
    length, start = data[1], 2
    if length >= 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data) or (data[1] >= 0x80 and start == 2):
        raise ValueError("a certificate must not end within an element")
    return data[0], data[start : start + length], data[start + length :]
