"""How late a client process wakes up on this machine: `python -m benchmarks.one_ended.ticker REPORT`, until SIGTERM.

A proxy or a server that waits for the processor looks like a longer path; networks where that happened are marked.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from benchmarks.one_ended.emulator import lateness
from benchmarks.one_ended.priority import CLIENTS, raise_threads

_PERIOD_S = 0.01


def main() -> None:
    """Sleep and note by how much too long."""
    late: list[int] = []
    ended = False

    def end(signum: int, frame: object) -> None:
        nonlocal ended
        del signum, frame
        ended = True

    signal.signal(signal.SIGTERM, end)
    raise_threads(0, CLIENTS)
    while not ended:
        begun = time.monotonic_ns()
        time.sleep(_PERIOD_S)
        late.append(time.monotonic_ns() - begun - int(_PERIOD_S * 1e9))
    Path(sys.argv[1]).write_text(json.dumps({"lateness_s": lateness(late)}))


if __name__ == "__main__":
    main()
