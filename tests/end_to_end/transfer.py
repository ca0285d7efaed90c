"""A server that sends text without repetition when asked, and a client that reads it. Run as a script."""

from __future__ import annotations

import random
import socket
import sys

_LINE_BYTES = 60


def _text(length: int) -> bytes:
    chance = random.Random(length)
    lines = (b"%059x\n" % chance.getrandbits(236) for _ in range(length // _LINE_BYTES + 1))
    return b"".join(lines)[:length]


def serve(address: str, port: int, length: int) -> None:
    """Answer one request."""
    with socket.create_server((address, port)) as listener:
        sys.stderr.write("ready\n")
        connection, _ = listener.accept()
    with connection:
        connection.recv(100)
        connection.sendall(_text(length))


def fetch(address: str, port: int, length: int) -> None:
    """Ask, and read until the server closes; the whole text must come."""
    with socket.create_connection((address, port)) as connection:
        connection.sendall(b"give me the text\n")
        got = b""
        while chunk := connection.recv(65_536):
            got += chunk
    if got != _text(length):
        raise SystemExit(f"{len(got)} bytes came, or others than {length}")


if __name__ == "__main__":
    {"serve": serve, "fetch": fetch}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
