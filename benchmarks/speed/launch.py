"""Run one command and report its resources as JSON on standard output. Started as a script, without any packages.

The kernel hands a process's peak memory on to what it executes, so a child never seems smaller than the process that
started it. Hence this small one: it resolves peaks above its own size (its `floor_bytes`), not below.
"""

import json
import os
import sys
import time
from pathlib import Path


def own_peak_bytes() -> int:
    """Peak of this program alone; getrusage would count in who started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Arguments: cores ("0,1"), command. Its output goes nowhere, the end of its complaints into the report."""
    cores, command = {int(core) for core in sys.argv[1].split(",")}, sys.argv[2:]
    os.sched_setaffinity(0, cores)
    nowhere = os.open(os.devnull, os.O_RDWR)
    complaints = os.memfd_create("complaints")
    redirections = [
        (os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((nowhere, nowhere, complaints))
    ]
    started = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=redirections)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - started
    said = os.fstat(complaints).st_size
    report = {
        "complaints": os.pread(complaints, 2000, max(0, said - 2000)).decode(errors="replace"),
        "exit_status": os.waitstatus_to_exitcode(status),
        "wall_s": wall_s,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "floor_bytes": own_peak_bytes(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
