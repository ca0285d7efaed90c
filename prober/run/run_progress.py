"""Progress of a run: one line on standard error, only on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from prober.measurement.task import Observation, Status, Task


class RunProgress:
    """A line with the current task and the expected remaining time; no output without a terminal."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._enabled = self._stream.isatty()
        self._clock = clock
        self._left_s = 0.0
        self._place = self._total = 0

    def begin(self, total: int, ahead: Sequence[Task]) -> None:
        """A run of `total` tasks begins, of which those `ahead` are still to be done."""
        self._total, self._place = total, total - len(ahead)
        self._left_s = sum(task.expected_s for task in ahead)
        if self._enabled and self._place:
            self._say(f"{self._place} of {total} tasks were done before")

    def task(self, task: Task, attempt: int) -> None:
        """A task is tried."""
        if not self._enabled:
            return
        again = f", try {attempt}" if attempt > 1 else ""
        left = _clock_time(self._left_s)
        self._show(f"[{self._place + 1}/{self._total}, about {left} left] {describe(task)}{again}")

    def observed(self, observation: Observation) -> None:
        """A task came to an end; what did not go well stays on the screen."""
        self._place += 1
        self._left_s = max(0.0, self._left_s - observation.task.expected_s)
        if self._enabled and observation.status is Status.FAILED:
            self._say(f"{describe(observation.task)} failed: {observation.reason}")

    def end(self) -> None:
        """Nothing more comes."""
        if self._enabled:
            self._show("")

    def _show(self, text: str) -> None:
        # A line that wraps could not be written over.
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r{text[:width]}\x1b[K")
        self._stream.flush()

    def _say(self, text: str) -> None:
        self._show("")
        self._stream.write(f"{text}\n")
        self._stream.flush()


def describe(task: Task) -> str:
    """A task in a few words."""
    words = [task.experiment]
    words += [task.application.value] if task.application is not None else []
    words += [task.direction.name.lower()] if task.direction is not None else []
    words += [f"{name}={value}" for name, value in task.parameters.items()]
    return " ".join(words)


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
