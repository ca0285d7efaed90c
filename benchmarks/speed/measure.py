"""Run commands against each other: pinned to cores, page cache warm, interleaved, medians, peak memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a whole process."""

    wall_s: float
    processor_s: float  # user and system
    peak_bytes: int  # resident; a value at `floor_bytes` means no more than that
    floor_bytes: int


@dataclass(frozen=True, slots=True)
class Median:
    """Medians over the runs of one command."""

    wall_s: float
    processor_s: float
    peak_bytes: int
    floor_bytes: int
    runs: int


class CommandFailedError(RuntimeError):
    """A measured command did not exit with 0."""


def run_once(command: Sequence[str], cores: int | str) -> Run:
    """Run `command` on one core, or several ("0,1"); its output goes nowhere."""
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(cores), *command]
    # Installed packages are compiled: without its bytecode a command would be measured with Python's compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(launcher, capture_output=True, check=True, text=True, env=environment)
    report = json.loads(done.stdout)
    if report["exit_status"] != 0:
        raise CommandFailedError(f"exit status {report['exit_status']}: {' '.join(command)}\n{report['complaints']}")
    return Run(report["wall_s"], report["processor_s"], report["peak_bytes"], report["floor_bytes"])


def compare(
    commands: Mapping[str, Sequence[str]],
    repetitions: int,
    cores: int | str,
    before: Callable[[], None] | None = None,
) -> dict[str, Median]:
    """Medians of `repetitions` interleaved runs (A B A B ...) after one that warms caches and does not count.

    `before` is called before each run and not measured.
    """
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for repetition in range(repetitions + 1):
        for name, command in commands.items():
            if before is not None:
                before()
            run = run_once(command, cores)
            if repetition:
                runs[name].append(run)
    return {
        name: Median(
            statistics.median(run.wall_s for run in kept),
            statistics.median(run.processor_s for run in kept),
            round(statistics.median(run.peak_bytes for run in kept)),
            max(run.floor_bytes for run in kept),
            len(kept),
        )
        for name, kept in runs.items()
    }
