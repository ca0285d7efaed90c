"""A call at any depth of a command takes no memory anew each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource")

#: Prints the page faults of 2000 calls of one function, at the depth where they are most; its frame is larger than
#: those of the calls on the way, so that at some depth Python needs another block for it.
PROGRAM = """
import resource
import pepscope.__main__ as start
import pepscope.command_line.direct as direct

names = [f"value_{number}" for number in range(60)]
exec(f"def leaf({', '.join(name + '=0' for name in names)}): pass")

def most_faults(depth):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(2000):
        leaf()
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return max(taken, most_faults(depth - 1)) if depth else taken

def run_directly(words):
    print(most_faults(300))
    return 0

direct.run_directly = run_directly
start.main()
"""


def test_no_call_takes_memory_anew() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True, text=True)
    assert int(done.stdout) < 500
