"""Two legs of one transfer, one of them encrypted: TLS records, a tunnel of streams, or a tunnel of whole packets."""

from __future__ import annotations

import random
import struct

from pepscope.captures.packets import Direction, TcpFlag
from tests.captures.containers import Frame
from tests.captures.conversation import START_NS, Conversation, Endpoint

SEGMENT_BYTES = 1400


def leg(
    client: Endpoint, server: Endpoint, up: bytes, down: bytes, *, start_s: float = 0.0, round_trip_ms: float = 30.0
) -> list[Frame]:
    """A connection on which `up` is sent and then `down`, acknowledged every other segment, captured at the client."""
    # Stacks of their own count IP IDs and stamps from places of their own.
    chance = random.Random(f"{client} {server}")
    ids, stamps = ([chance.randrange(1 << bits) for _ in Direction] for bits in (16, 32))
    talk = Conversation(
        client, server, now_ns=START_NS + round(start_s * 1e9), _ip_id=ids, _stamp_offset=stamps
    ).handshake(round_trip_ms)
    for offset in range(0, len(up), SEGMENT_BYTES):
        talk.wait(0.1).send(Direction.UP, offset, 0, up[offset : offset + SEGMENT_BYTES], TcpFlag.PSH)
    talk.wait(round_trip_ms).send(Direction.DOWN, 0, len(up))
    for number, offset in enumerate(range(0, len(down), SEGMENT_BYTES)):
        piece = down[offset : offset + SEGMENT_BYTES]
        talk.wait(1.0).send(Direction.DOWN, offset, len(up), piece)
        if number % 2:
            talk.wait(0.1).send(Direction.UP, len(up), offset + len(piece))
    talk.close(len(up), len(down))
    return [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]


def tls(content: bytes, seed: int, *, handshake_bytes: int, record_bytes: int = 4096) -> bytes:
    """The content as TLS 1.3 sends it: `handshake_bytes`, then records of the AEAD suites."""
    noise = random.Random(seed)
    hello = b"\x16\x03\x01" + struct.pack(">H", handshake_bytes - 5) + noise.randbytes(handshake_bytes - 5)
    records = [
        b"\x17\x03\x03" + struct.pack(">H", len(piece) + 17) + noise.randbytes(len(piece) + 17)
        for piece in (content[at : at + record_bytes] for at in range(0, len(content), record_bytes))
    ]
    return hello + b"".join(records)


def stream_tunnel(content: bytes, seed: int, *, chunk_bytes: int = 1400) -> bytes:
    """The content as Shadowsocks sends it: a salt, and chunks with a length, both with a tag of 16 bytes."""
    chunks = -(-len(content) // chunk_bytes)
    return random.Random(seed).randbytes(32 + len(content) + 34 * chunks)


def packet_tunnel(packets: int, content: bytes, seed: int) -> bytes:
    """So many packets with the content between them, encrypted whole: their headers of 52 bytes, 24 of the tunnel's."""
    return random.Random(seed).randbytes(len(content) + 76 * packets)
