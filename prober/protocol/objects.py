"""Objects that both ends can generate: kind, size and seed determine every byte, so either end detects a change.

`.bin` cannot be compressed, `.txt` can, `.jpg` and `.png` are pictures that every reader of pictures takes, of exactly
the size asked for, and with room for a proxy that makes pictures smaller (`pictures`). Nothing here depends on
the versions of zlib, Pillow or Python: SHAKE128 (FIPS 202) is the only source of chance.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from pepscope.errors import UsageError
from prober.protocol.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES
from prober.protocol.pictures import jpeg_bytes, png_bytes

#: Larger objects are made and sent in pieces of this size.
PIECE_BYTES = 1 << 16
#: Pictures are made as a whole, in memory.
MOST_PICTURE_BYTES = 16 << 20
#: What a seed may be.
SEED_LIMIT = 1 << 64
MOST_BYTES = 1 << 40

_NAME = re.compile(r"([0-9]{1,13})-([0-9]{1,20})\.(bin|txt|jpg|png)")


class ObjectKind(StrEnum):
    """What an object is, named as its file would end."""

    BINARY = "bin"
    TEXT = "txt"
    JPEG = "jpg"
    PNG = "png"

    @property
    def content_type(self) -> str:
        """Its media type (RFC 9110, section 8.3)."""
        return _CONTENT_TYPES[self]

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture."""
        return self in (ObjectKind.JPEG, ObjectKind.PNG)


_CONTENT_TYPES = {
    ObjectKind.BINARY: "application/octet-stream",
    ObjectKind.TEXT: "text/plain; charset=us-ascii",
    ObjectKind.JPEG: "image/jpeg",
    ObjectKind.PNG: "image/png",
}


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object's name: `SIZE-SEED.KIND`, as FTP writes it and the server's log lists it for every protocol."""

    kind: ObjectKind
    size_bytes: int
    seed: int

    def __post_init__(self) -> None:
        least = LEAST_PICTURE_BYTES if self.kind.is_picture else 0
        most = MOST_PICTURE_BYTES if self.kind.is_picture else MOST_BYTES
        if not least <= self.size_bytes <= most:
            raise UsageError(f"a .{self.kind} object must have between {least} and {most} bytes, got {self.size_bytes}")
        if not 0 <= self.seed < SEED_LIMIT:
            raise UsageError(f"the seed of an object must be between 0 and 2^64 - 1, got {self.seed}")

    @classmethod
    def parse(cls, text: str) -> ObjectName:
        """Read `SIZE-SEED.KIND`. Raises UsageError."""
        match = _NAME.fullmatch(text)
        if match is None or not text.isascii():
            raise UsageError(f"an object must be named SIZE-SEED.bin, .txt, .jpg or .png, got {text[:60]!r}")
        return cls(ObjectKind(match[3]), int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.size_bytes}-{self.seed}.{self.kind}"

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, in pieces of at most `PIECE_BYTES`."""
        if self.kind.is_picture:
            whole = object_bytes(self.kind, self.size_bytes, self.seed)
            yield from (whole[place : place + PIECE_BYTES] for place in range(0, len(whole), PIECE_BYTES))
            return
        left = self.size_bytes
        make = _random_piece if self.kind is ObjectKind.BINARY else _text_piece
        for number in range(-(-self.size_bytes // PIECE_BYTES)):
            piece = make(self.seed, number)
            yield piece if left >= PIECE_BYTES else piece[:left]
            left -= PIECE_BYTES

    def sha256(self) -> str:
        """Of all its bytes, in hexadecimal digits."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()


def object_bytes(kind: ObjectKind | str, size_bytes: int, seed: int) -> bytes:
    """All bytes of an object. Raises UsageError for sizes and seeds that there are not."""
    name = ObjectName(ObjectKind(kind), size_bytes, seed)
    if name.kind.is_picture:
        return _picture(name.kind, size_bytes, seed)
    return b"".join(name.pieces())


@lru_cache(maxsize=4)
def _picture(kind: ObjectKind, size_bytes: int, seed: int) -> bytes:
    """Cached, since both ends need the same one for its bytes, for its hash and for the next repeat."""
    return (jpeg_bytes if kind is ObjectKind.JPEG else png_bytes)(size_bytes, seed)


def _random_piece(seed: int, number: int) -> bytes:
    return hashlib.shake_128(b"pepscope bin %d %d" % (seed, number)).digest(PIECE_BYTES)


def _text_piece(seed: int, number: int) -> bytes:
    """Lines of words of three to six letters: about a third of the size after gzip."""
    chosen = hashlib.shake_128(b"pepscope txt %d %d" % (seed, number)).digest(PIECE_BYTES // 4)
    words = _words()
    lines = (b" ".join([words[byte] for byte in chosen[at : at + 12]]) for at in range(0, len(chosen), 12))
    return b"\n".join(lines)[:PIECE_BYTES]


@lru_cache(maxsize=1)
def _words() -> list[bytes]:
    """One word for each value of a byte."""
    consonants, vowels = b"bcdfghklmnprstvz", b"aeiou"
    words = []
    for number in range(256):
        chosen = hashlib.shake_128(b"pepscope word %d" % number).digest(6)
        letters = [(vowels[byte % 5] if place % 2 else consonants[byte % 16]) for place, byte in enumerate(chosen)]
        words.append(bytes(letters[: 3 + number % 4]))
    return words
