"""Watchdog: kills all processes in given network namespaces once its parent process has ended. Run as a script.

`cleanup_watchdog.py INODE...` waits for the end of its standard input, a pipe whose other end only the parent holds. It
imports nothing of ours, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

_ROUNDS = 200


def _inode_of(process: str) -> str:
    try:
        return str(Path(f"/proc/{process}/ns/net").stat().st_ino)
    except OSError:
        return ""


def main() -> None:
    """Wait for the parent to end, then kill until no process is left."""
    inodes = set(sys.argv[1:])
    while os.read(0, 4096):
        pass
    for _ in range(_ROUNDS):
        found = [
            entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and _inode_of(entry.name) in inodes
        ]
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        time.sleep(0.01)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    main()
