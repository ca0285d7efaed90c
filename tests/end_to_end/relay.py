"""A minimal split: accepts a connection, opens its own to the server, copies bytes both ways. Run as a script."""

from __future__ import annotations

import socket
import sys
import threading

_CHUNK_BYTES = 16_384
_BUFFER_BYTES = 65_536  # small, so that a slow leg holds the fast one back


def _copy(source: socket.socket, target: socket.socket) -> None:
    while chunk := source.recv(_CHUNK_BYTES):
        target.sendall(chunk)
    target.shutdown(socket.SHUT_WR)


def main() -> None:
    """Arguments: listening address and port, server address and port. One connection."""
    address, port, server, server_port = sys.argv[1:]
    with socket.create_server((address, int(port))) as listener:
        sys.stderr.write("ready\n")
        down, _ = listener.accept()
    down.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    with down, socket.create_connection((server, int(server_port))) as up:
        back = threading.Thread(target=_copy, args=(up, down))
        back.start()
        _copy(down, up)
        back.join()


if __name__ == "__main__":
    main()
