"""Whether a connection to another host ends on this one, by the kernel's list of sockets (proc(5)).

A local proxy or antivirus that takes connections (iptables' REDIRECT, say) holds a socket whose peer is the socket that
connected. A program behind a TUN device holds none.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"


def is_other_end_here(link: socket.socket) -> bool:
    """Whether some socket of this host has this one as its peer; false where that cannot be known."""
    try:
        address, port = link.getsockname()[:2]
        wanted = _as_listed(address.partition("%")[0], port)
        return any(_lists_peer(path, wanted) for path in _LISTS)
    except OSError:
        return False


def _as_listed(address: str, port: int) -> frozenset[str]:
    """An end point as the kernel prints it: words of the machine's byte order, in hexadecimal."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    words = "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
    number = f":{port:04X}"
    return frozenset({words + number, _MAPPED + words + number} if family == socket.AF_INET else {words + number})


def _lists_peer(path: Path, wanted: frozenset[str]) -> bool:
    if not path.exists():
        return False
    with path.open(encoding="ascii") as lines:
        return any(words[2] in wanted for words in map(str.split, lines) if len(words) > 2)
