"""SSH as a talk (RFC 4253): both sides greet at once, agree on keys, then take encrypted turns."""

from __future__ import annotations

import struct
from random import Random

from benchmarks.one_ended_simulated.talks import ClientHabits, Request, ServerHabits, Talk
from benchmarks.one_ended_simulated.tls import body

_LISTS = (
    b"curve25519-sha256", b"ssh-ed25519", b"aes128-ctr", b"aes128-ctr", b"hmac-sha2-256", b"hmac-sha2-256", b"none",
    b"none", b"", b"",
)  # fmt: skip
_KEX_INIT, _NEW_KEYS, _ASK_KEY, _ANSWER_KEY = 20, 21, 30, 31


def shell(random: Random, requests: list[Request], client: ClientHabits, server: ServerHabits) -> Talk:
    """One connection of commands and their output."""
    talk = Talk()
    talk.from_client(b"SSH-2.0-OpenSSH_9.6\r\n", 0.0)
    talk.from_server(b"SSH-2.0-OpenSSH_9.2p1\r\n", server.command(), needs_bytes=0)
    greeted = talk.client_bytes
    talk.from_client(_packet(_kex_init(random)), client.answer(), answers=True)
    talk.from_server(_packet(_kex_init(random)), server.command(), needs_bytes=greeted, answers=True)
    talk.from_client(_packet(bytes([_ASK_KEY]) + _string(random.randbytes(32))), client.answer(), answers=True)
    answer = bytes([_ANSWER_KEY]) + _string(_string(b"ssh-ed25519") + _string(random.randbytes(32)))
    answer += _string(random.randbytes(32)) + _string(_string(b"ssh-ed25519") + _string(random.randbytes(64)))
    talk.from_server(_packet(answer) + _packet(bytes([_NEW_KEYS])), server.hello(), answers=True)
    talk.from_client(_packet(bytes([_NEW_KEYS])), client.finish(), answers=True)
    for number, request in enumerate(requests):
        talk.from_client(_encrypted(request.request_bytes), client.answer() + request.wait_s, answers=number > 0)
        talk.from_server(_encrypted(request.answer_bytes), server.answer(), answers=True)
    return talk


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _kex_init(random: Random) -> bytes:
    return bytes([_KEX_INIT]) + random.randbytes(16) + b"".join(map(_string, _LISTS)) + b"\0" + struct.pack(">I", 0)


def _packet(payload: bytes) -> bytes:
    """Padded to a multiple of 8 bytes with 4 or more (RFC 4253, 6)."""
    padding = 8 - (5 + len(payload)) % 8
    padding += 8 if padding < 4 else 0
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + b"\0" * padding


def _encrypted(size_bytes: int) -> bytes:
    """As many whole blocks as hold so much, and a code."""
    return body((size_bytes + 15) // 16 * 16 + 32)
