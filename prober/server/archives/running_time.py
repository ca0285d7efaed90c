"""How long a state directory has been served in all, which no clock that is set can change.

The age of an archive decides whether it is deleted. A wall clock that steps, or a host that boots in 1970 until it has
its time from the network, would make everything old at once; the time that servers ran does not jump.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from prober.errors import ServerError
from prober.server.keys.key_file import read_private, write_private

_NAME = "running-time"
_MOST_FILE_BYTES = 100
#: How much of it a killed server may lose.
_STORE_EVERY_S = 300.0


def _clock() -> float:
    """Goes on while the host is suspended, and is never set (clock_gettime(2))."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class RunningTime:
    """Counts on from where the last server stopped; used by many threads."""

    def __init__(self, directory: Path, clock: Callable[[], float] = _clock) -> None:
        """Raises ServerError."""
        self._path, self._clock = directory / _NAME, clock
        self._before_s = self._stored_s = _read(self._path)
        self._began_s = clock()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Seconds so far."""
        return self._before_s + max(0.0, self._clock() - self._began_s)

    def store(self, *, now: bool = False) -> None:
        """Write it down where that is due. Raises ServerError."""
        with self._lock:
            seconds = self()
            if now or seconds - self._stored_s >= _STORE_EVERY_S:
                write_private(self._path, f"{seconds:.0f}\n".encode())
                self._stored_s = seconds


def _read(path: Path) -> float:
    data = read_private(path, _MOST_FILE_BYTES)
    if data is None:
        return 0.0
    text = data.decode("ascii", "replace").strip()
    if not (text.isascii() and text.isdigit()):
        raise ServerError(f"{path} must hold a number of seconds; remove it to count archives' ages from now on")
    return float(text)
