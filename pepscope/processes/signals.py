"""Signals as an orderly end: contexts are left, so that files are whole or not there and nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

#: What asks a program to end: the terminal's Ctrl-C, the system, a terminal that goes away.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: What waits for other processes looks up so often. The system may hand a signal to any thread, and does so where it
#: came while the process was stopped (Ctrl-Z): Python handles it in the main thread, but does not wake that.
LOOK_S = 0.5

#: What takes an object down takes less, else the signal comes a third time.
_AGAIN_S = 0.05


class EndedBySignal(SystemExit):
    """SIGTERM or SIGHUP ends the program, whose exit status is 128 and the signal's number, as shells report it."""

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)
        self.status = 128 + number
        super().__init__(self.status)


def end_in_order() -> None:
    """Have SIGTERM and SIGHUP raise EndedBySignal in this process from now on; those that it forks, they end at once.

    SIGINT raises KeyboardInterrupt as before, but once a signal has come none disturbs what is taken down. A signal
    that the caller ignores, as `nohup` does, stays ignored. Python ignores what is raised while it takes an object
    down: a signal that comes then comes once more.
    """
    before = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    ours = [each for each, handler in before.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]
    _take(ours)
    os.register_at_fork(after_in_child=lambda: _restore({each: before[each] for each in ours}))
    usual = sys.unraisablehook

    def come_again(ignored: sys.UnraisableHookArgs) -> None:
        if isinstance(error := ignored.exc_value, KeyboardInterrupt | EndedBySignal):
            _take(ours)
            number = error.signal if isinstance(error, EndedBySignal) else signal.SIGINT
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number)).start()
        else:
            usual(ignored)

    sys.unraisablehook = come_again


@contextlib.contextmanager
def ending_by_signal() -> Iterator[None]:
    """As `end_in_order` while the block runs; SIGINT raises KeyboardInterrupt, and once a signal has come none disturbs
    what is taken down."""
    with _handlers_kept() as ours:
        _take(ours)
        yield


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that signals set while the block runs; a second SIGINT raises KeyboardInterrupt."""
    stopped = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    with _handlers_kept() as ours:
        for each in ours:
            signal.signal(each, stop)
        yield stopped


@contextlib.contextmanager
def signals_held(*, multiprocessing: bool = True) -> Iterator[None]:
    """Signals wait until the block ends: what it starts is complete. Processes that it starts hold them back until they
    call `take_signals`, so that none shows a traceback of a start that was interrupted. Where the block forks by itself
    `multiprocessing` is not needed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread
        return
    came: list[int] = []
    before = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    for each, handler in before.items():
        if callable(handler):
            # The mask is not enough: the system may hand a signal to another thread, and Python then to this one.
            signal.signal(each, lambda number, _: came.append(number))
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        if multiprocessing:
            from multiprocessing import resource_tracker

            # Multiprocessing starts it with other processes, and would let some signals through.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        _restore(before)
        for number in came:
            signal.raise_signal(number)


def take_signals() -> None:
    """Let signals come that this process has held back since it was started in `signals_held`."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


@contextlib.contextmanager
def _handlers_kept() -> Iterator[list[signal.Signals]]:
    """The signals whose handlers the block may set, which it leaves as they were. Among them is SIGINT even where it is
    ignored: so it is behind the `&` of a script, which may send it all the same."""
    before = {each: signal.getsignal(each) for each in ENDING_SIGNALS}
    try:
        yield [each for each, handler in before.items() if each == signal.SIGINT or handler != signal.SIG_IGN]
    finally:
        _restore(before)


def _take(ours: list[signal.Signals]) -> None:
    """Have the first of these signals end what runs, and the others ignored from then on."""

    def end(number: int, _frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise EndedBySignal(number)

    for each in ours:
        signal.signal(each, end)


def _restore(handlers: dict[signal.Signals, signal._HANDLER]) -> None:
    for each, handler in handlers.items():
        if handler is not None:  # else it was not set from Python
            signal.signal(each, handler)
