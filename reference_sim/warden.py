"""Ends all processes in given network namespaces once whoever started it is gone. Run as a script.

`warden.py INODE...` waits for the end of its standard input, which is a pipe that only the starter holds. It imports
nothing of ours, so that it is there at once.
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
    """Wait, then kill until nothing is left."""
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
