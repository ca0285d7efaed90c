"""Progress on standard error: only on a terminal, and only for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from pepscope.command_line.volume import is_quiet

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

QUIET_S = 2.0
_BETWEEN_S = 0.2
_BAR_CELLS = 24


class Progress:
    """A line that shows how far a piece of work is; call it with (done, total), total 0 where it is not known."""

    def __init__(
        self, label: str = "reading", stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._enabled = self._stream.isatty() and not is_quiet()
        self._started_s = clock()
        self._drawn_s: float | None = None

    def __call__(self, done: int, total: int = 0) -> None:
        """Report how much is done, in any unit."""
        if not self._enabled:
            return
        now_s = self._clock()
        if now_s - self._started_s < QUIET_S or (self._drawn_s is not None and now_s - self._drawn_s < _BETWEEN_S):
            return
        self._drawn_s = now_s
        if total > 0:
            share = min(done / total, 1.0)
            bar = ("#" * round(share * _BAR_CELLS)).ljust(_BAR_CELLS, ".")
            text = f"{self._label} [{bar}] {share:4.0%}"
        else:
            text = f"{self._label} {done / 1e6:,.0f} MB"
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn_s is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
