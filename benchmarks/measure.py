"""Run commands against each other: pinned to one core, page cache warm, interleaved, medians, peak memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a whole process."""

    wall_s: float
    processor_s: float  # user and system
    peak_bytes: int  # resident


@dataclass(frozen=True, slots=True)
class Median:
    """Medians over the runs of one command."""

    wall_s: float
    processor_s: float
    peak_bytes: int
    runs: int


class CommandFailedError(RuntimeError):
    """A measured command did not exit with 0."""


def run_once(command: Sequence[str], core: int) -> Run:
    """Run `command` on one core; its output goes nowhere."""
    started = time.perf_counter()
    with subprocess.Popen(
        ["taskset", "--cpu-list", str(core), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise CommandFailedError(f"exit status {process.returncode}: {' '.join(command)}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def compare(commands: Mapping[str, Sequence[str]], repetitions: int, core: int) -> dict[str, Median]:
    """Medians of `repetitions` interleaved runs (A B A B ...) after one that warms caches and does not count."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for repetition in range(repetitions + 1):
        for name, command in commands.items():
            run = run_once(command, core)
            if repetition:
                runs[name].append(run)
    return {
        name: Median(
            statistics.median(run.wall_s for run in kept),
            statistics.median(run.processor_s for run in kept),
            round(statistics.median(run.peak_bytes for run in kept)),
            len(kept),
        )
        for name, kept in runs.items()
    }
