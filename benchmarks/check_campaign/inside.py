"""Enter the network namespaces of a world by name; sockets and devices made inside stay there."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_NAMED = Path("/var/run/netns")


def enter(name: str) -> None:
    """Move the calling thread into a namespace. Raises OSError."""
    with (_NAMED / name).open("rb") as place:
        _set(place.fileno())


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Be in a namespace while the block lasts. Raises OSError."""
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        enter(name)
        try:
            yield
        finally:
            _set(before.fileno())


def _set(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
