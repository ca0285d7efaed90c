"""Sockets that end with a reset instead of a FIN."""

from __future__ import annotations

import socket
import struct

_AT_ONCE = struct.pack("ii", 1, 0)


def reset_on_close(link: socket.socket) -> None:
    """Let the kernel send an RST when this socket is closed, and drop what is queued (SO_LINGER with zero seconds)."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
