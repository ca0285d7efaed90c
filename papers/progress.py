"""Progress of runs that take long: a bar on a terminal, and lines in a log where nobody watches."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from pepscope.command_line.progress import Progress
from pepscope.command_line.volume import is_quiet

#: Between two lines of a log.
BETWEEN_S = 30.0


class LoggedProgress:
    """A line of its own every half a minute; call it with (done, total)."""

    def __init__(self, label: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._stream, self._clock = label, stream, clock
        self._started_s = self._written_s = clock()

    def __call__(self, done: int, total: int) -> None:
        """Report what is done."""
        now_s = self._clock()
        if now_s - self._written_s < BETWEEN_S:
            return
        self._written_s = now_s
        passed_min = (now_s - self._started_s) / 60.0
        self._stream.write(f"{self._label}: {done:,} of {total:,} ({done / total:.0%}) after {passed_min:.1f} min\n")
        self._stream.flush()


@contextlib.contextmanager
def shown_progress(label: str) -> Iterator[Callable[[int, int], object] | None]:
    """What to call with (done, total), on standard error; None where it should say nothing."""
    if is_quiet():
        yield None
    elif sys.stderr.isatty():
        with Progress(label) as progress:
            yield progress
    else:
        yield LoggedProgress(label, sys.stderr)
