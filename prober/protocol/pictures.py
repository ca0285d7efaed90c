"""Pictures of an exact size without a library for pictures: the mobile has none, and every version packs differently.

A JPEG (ITU-T T.81, baseline) is a mosaic of ready-made squares of 8 x 8 pixels, each its own restart interval, so that
squares can stand in any order. They are full of fine detail, which is what a proxy that lowers the quality throws away:
at quality 40 about a fifth of the size is left, as of a photograph that was good before. A PNG (ISO/IEC 15948) holds
pixels of 16 shades, stored without compression. A comment fills up what is missing to the size.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from functools import lru_cache

#: Room for the heads of both formats, one square, and a comment.
LEAST_BYTES = 1000

_SQUARES = 256
_SQUARE_PIXELS = 8
_COEFFICIENTS = 64
#: Of all coefficients; about what quality 80 has in the middle.
_QUANTISATION = 16
#: The length of a JPEG segment has two bytes, which it includes.
_MOST_SEGMENT_BYTES = 65_535
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_BYTES = 12
_TEXT_KEYWORD = b"Comment\0"
_STORED_BYTES = 65_535


def jpeg_bytes(size_bytes: int, seed: int) -> bytes:
    """A colour picture of exactly `size_bytes`, of which there are at least `LEAST_BYTES`."""
    heads = len(_jpeg_head(1, 1)) + 2
    room = size_bytes - heads - 4
    squares = _chosen_squares(room, seed)
    columns = max(1, math.isqrt(len(squares)))
    rows = min(len(squares) // columns, 65_535 // _SQUARE_PIXELS)
    squares = squares[: columns * rows]
    marks = [b"\xff" + bytes((0xD0 + number,)) for number in range(8)]
    scan = b"".join(piece for number, square in enumerate(squares) for piece in (square, marks[number % 8]))[:-2]
    comment = _jpeg_comments(size_bytes - heads - len(scan))
    head = _jpeg_head(columns * _SQUARE_PIXELS, rows * _SQUARE_PIXELS)
    # Comments stand before the scan: what follows it some readers never see, and some would cut off.
    return head[:2] + comment + head[2:] + scan + b"\xff\xd9"


def _chosen_squares(room_bytes: int, seed: int) -> list[bytes]:
    """As many squares as fit, each followed by a restart mark of two bytes."""
    made = _jpeg_squares()
    most = room_bytes // (min(map(len, made)) + 2) + 1
    squares, taken = [], 0
    for byte in hashlib.shake_128(b"pepscope jpg %d" % seed).digest(most):
        taken += len(made[byte]) + 2
        if taken > room_bytes:
            break
        squares.append(made[byte])
    return squares


def _jpeg_comments(count: int) -> bytes:
    """Comment segments of together `count` bytes, at least 4."""
    comments = []
    while count:
        segment = min(count, _MOST_SEGMENT_BYTES + 2)
        # No rest that is too short for a segment of its own.
        segment -= 4 if 0 < count - segment < 4 else 0
        comments.append(b"\xff\xfe" + struct.pack(">H", segment - 2) + b"." * (segment - 4))
        count -= segment
    return b"".join(comments)


@lru_cache(maxsize=8)
def _jpeg_head(width: int, height: int) -> bytes:
    """Everything before the scan: start, quantisation, frame, the codes, restart interval, scan head."""
    quantisation = b"\0" + bytes([_QUANTISATION]) * _COEFFICIENTS
    components = b"".join(bytes((number, 0x11, 0)) for number in (1, 2, 3))
    frame = struct.pack(">BHHB", 8, height, width, 3) + components
    steady = b"\0" + bytes([0, 0, 0, 12, *[0] * 12]) + bytes(range(12))
    symbols = _ac_symbols()
    varying = b"\x10" + bytes([0, 0, 0, 0, 0, 0, 0, len(symbols), *[0] * 8]) + bytes(symbols)
    scan = b"\3" + bytes((1, 0, 2, 0, 3, 0)) + b"\0\x3f\0"
    segments = (
        (0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        (0xDB, quantisation),
        (0xC0, frame),
        (0xC4, steady),
        (0xC4, varying),
        (0xDD, b"\0\1"),
        (0xDA, scan),
    )
    return b"\xff\xd8" + b"".join(b"\xff%c" % mark + struct.pack(">H", len(body) + 2) + body for mark, body in segments)


def _ac_symbols() -> list[int]:
    """(run of zeros, bits) of coefficients in use; codes of one length, 8 bits, so that the code is the place."""
    return [0x00, 0xF0, *(run << 4 | bits for run in range(16) for bits in range(1, 9))]


@lru_cache(maxsize=1)
def _jpeg_squares() -> list[bytes]:
    """The ready-made squares, each ending at a whole byte."""
    return [_square(number) for number in range(_SQUARES)]


def _square(number: int) -> bytes:
    chance = hashlib.shake_128(b"pepscope square %d" % number).digest(3 * _COEFFICIENTS)
    bits = "".join(_block(chance[part * _COEFFICIENTS : (part + 1) * _COEFFICIENTS]) for part in range(3))
    bits += "1" * (-len(bits) % 8)
    # A byte of ones would be a mark: a zero byte behind it makes it data (T.81, F.1.2.3).
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")


def _block(chance: bytes) -> str:
    """The bits of one component of a square: a mean, then coefficients that grow smaller with frequency."""
    symbols = _ac_symbols()
    mean = (chance[0] - 128) * 6 // _QUANTISATION
    size = abs(mean).bit_length()
    bits = format(size, "04b") + _amplitude(mean, size)
    run = 0
    for place, byte in enumerate(chance[1:], start=1):
        # Every third one is there; amplitudes fall from about 110 to 14, as fine grain does in photographs.
        value = (byte // 3 - 42) * 120 // ((40 + 5 * place) * _QUANTISATION) if byte % 3 == 0 else 0
        if value == 0:
            run += 1
            continue
        while run > 15:
            bits += format(symbols.index(0xF0), "08b")
            run -= 16
        size = abs(value).bit_length()
        bits += format(symbols.index(run << 4 | size), "08b") + _amplitude(value, size)
        run = 0
    return bits + (format(symbols.index(0x00), "08b") if run else "")


def _amplitude(value: int, size: int) -> str:
    """A value in `size` bits, negative ones as the complement (T.81, F.1.2.1)."""
    return format(value if value > 0 else value + (1 << size) - 1, f"0{size}b") if size else ""


def png_bytes(size_bytes: int, seed: int) -> bytes:
    """A colour picture of exactly `size_bytes`, of which there are at least `LEAST_BYTES`."""
    fixed = len(_PNG_SIGNATURE) + 3 * _CHUNK_BYTES + 13 + 2 + 4
    text = _CHUNK_BYTES + len(_TEXT_KEYWORD)
    room = size_bytes - fixed - text
    room -= 5 * (room // _STORED_BYTES + 1)
    width = max(1, math.isqrt(room // 3))
    height = room // (1 + 3 * width)
    shades = bytes(byte % 16 * 17 for byte in range(256))
    pixels = hashlib.shake_128(b"pepscope png %d" % seed).digest(3 * width * height).translate(shades)
    rows = b"".join(b"\0" + pixels[at : at + 3 * width] for at in range(0, len(pixels), 3 * width))
    data = _stored(rows)
    filling = size_bytes - fixed - text - (len(data) - 6)
    return b"".join(
        (
            _PNG_SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            _chunk(b"tEXt", _TEXT_KEYWORD + b"." * filling),
            _chunk(b"IDAT", data),
            _chunk(b"IEND", b""),
        )
    )


def _stored(rows: bytes) -> bytes:
    """A zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4)."""
    blocks = [rows[at : at + _STORED_BYTES] for at in range(0, len(rows), _STORED_BYTES)]
    packed = [
        struct.pack("<BHH", number == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks)
    ]
    return b"\x78\x01" + b"".join(packed) + struct.pack(">I", zlib.adler32(rows))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
