"""One request of plain HTTP as it is given, byte by byte, and what comes back until the other end is done."""

from __future__ import annotations

import socket
import time

from prober.host.reset import reset_on_close

_PIECE_BYTES = 4096


def exchange(address: str, port: int, request: bytes, patience_s: float, most_bytes: int) -> bytes:
    """Send a request; the beginning of what is answered, empty where nothing is or the connection is cut.

    Raises OSError where no connection comes about.
    """
    with socket.create_connection((address, port), patience_s) as link:
        reset_on_close(link)
        return converse(link, request, patience_s, most_bytes)


def converse(link: socket.socket, request: bytes, patience_s: float, most_bytes: int) -> bytes:
    """The same on a connection that stands."""
    end_s = time.monotonic() + patience_s
    answer = b""
    try:
        link.sendall(request)
        while len(answer) < most_bytes and (left_s := end_s - time.monotonic()) > 0:
            link.settimeout(left_s)
            piece = link.recv(min(_PIECE_BYTES, most_bytes - len(answer)))
            if not piece:
                break
            answer += piece
    except OSError:
        pass
    return answer
