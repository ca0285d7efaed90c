"""Processors that a process may use: what it is bound to, and what its container grants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pepscope._core import usable_processors

ROOT = Path(__file__).parents[3]
CONTROL_GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no process to processors")
def test_processors_that_a_process_may_not_use_are_not_counted() -> None:
    usable = os.sched_getaffinity(0)
    assert usable_processors() <= len(usable)
    os.sched_setaffinity(0, {min(usable)})
    try:
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, usable)


@pytest.fixture
def group_of_one_processor() -> Iterator[Path]:
    """A control group whose processes get the time of one processor, as `docker run --cpus 1` makes it."""
    first = CONTROL_GROUPS / "cpu"
    group = (first if first.is_dir() else CONTROL_GROUPS) / f"pepscope-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        if first.is_dir():
            (group / "cpu.cfs_quota_us").write_text(str(PERIOD_US))
        else:
            (group / "cpu.max").write_text(f"{PERIOD_US} {PERIOD_US}")
    except OSError as error:
        group.rmdir()
        pytest.skip(f"no control group grants processors: {error}")
    yield group
    group.rmdir()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="the machine has one processor")
def test_the_quota_of_a_container_counts(group_of_one_processor: Path) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from pepscope._core import usable_processors\n"
        "print(usable_processors())\n"
        "Path(sys.argv[1]).write_text(str(os.getpid()))\n"
        "print(usable_processors())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(group_of_one_processor / "cgroup.procs")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{usable_processors()}\n1\n"
