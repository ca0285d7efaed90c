"""Programs of a live path that no other work of the machine delays."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

#: Before ordinary work, behind the loops that carry packets.
_PRIORITY = 5


@contextlib.contextmanager
def ahead_of_other_work() -> Iterator[None]:
    """Threads and processes that this thread starts inside get a processor before the machine's other work.

    On a busy machine a program writes or reads late otherwise, and what its kernel then sends answers to that. Raises
    PermissionError without CAP_SYS_NICE.
    """
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
