"""Signals as an orderly end, for commands that leave something behind them that must be taken down."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ending_by_signal() -> Iterator[None]:
    """Signals end what runs in order: contexts are left and everything is taken down; further ones do not disturb that.

    Raises KeyboardInterrupt for SIGINT, SystemExit with 128 and the number for the others.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
