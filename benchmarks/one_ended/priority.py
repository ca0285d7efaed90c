"""Real-time priority for what must not wait: a proxy or a server without a processor looks like a longer path."""

from __future__ import annotations

import os
from pathlib import Path

#: The emulator goes before servers and proxies, these before clients, these before all other work of the machine.
EMULATOR, SERVERS, CLIENTS = 20, 10, 5


def raise_threads(process: int, priority: int) -> bool:
    """Round-robin real-time priority for all threads of a process (0: the caller); False where that is forbidden."""
    tasks = Path("/proc") / (str(process) if process else "self") / "task"
    try:
        for task in tasks.iterdir():
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(priority))
    except PermissionError:
        return False
    except (FileNotFoundError, ProcessLookupError):
        return True  # it ended meanwhile
    return True
