"""Removes rules once the process that made them is gone. Run as a script, with commands as one JSON list of lists.

It waits for the end of its standard input, a pipe that only the maker holds: closed in order, or by the kernel when
the maker crashes or is killed. It imports nothing of ours, so that it is there at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

_COMMAND_TIMEOUT_S = 20.0


def main() -> None:
    """Wait, then run each command, whatever became of the one before: what it removes need not be there."""
    commands: list[list[str]] = json.loads(sys.argv[1])
    while os.read(0, 4096):
        pass
    for command in commands:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, check=False, timeout=_COMMAND_TIMEOUT_S)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    main()
