"""Processes that are forked, so that they share this one's memory, and send what they make."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NoReturn, TypeAlias

from msgspec import Struct

from pepscope.processes.signals import ENDING_SIGNALS, signals_held, take_signals

#: What is done in a forked process, given what sends a message.
Work: TypeAlias = Callable[[Callable[[bytes | memoryview], None]], object]

#: The length of a message, ahead of it.
_LENGTH_BYTES = 8

#: What is read at once: little enough to stay in a processor's cache until it is written.
_PIECE_BYTES = 1 << 18

#: What a pipe holds, where the system allows it: a process makes its next message sooner than with the usual 64 KiB.
_PIPE_BYTES = 1 << 20


class ForkedProcess(Struct, frozen=True):
    """A process that was forked, and the pipe by which its messages come."""

    process: int
    pipe: int

    def received(self) -> bytes | None:
        """Its next message; None where it has ended."""
        length = self.announced()
        message = b"" if length is None else b"".join(self.pieces(length))
        return message if len(message) == length else None

    def announced(self) -> int | None:
        """How many bytes its next message has; None where it has ended."""
        length = b"".join(self.pieces(_LENGTH_BYTES))
        return int.from_bytes(length, "little") if len(length) == _LENGTH_BYTES else None

    def pieces(self, count: int) -> Iterator[bytes]:
        """So many bytes of its next message, in pieces; fewer where it ends before."""
        while count and (piece := os.read(self.pipe, min(count, _PIECE_BYTES))):
            yield piece
            count -= len(piece)

    def end(self) -> int:
        """End the process where it still runs; returns its exit status, or the signal that it ended by, below zero.

        Where this process was started to ignore SIGCHLD the system keeps no status, and 0 is returned.
        """
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        try:
            _, status = os.waitpid(self.process, 0)
        except ChildProcessError:
            return 0
        return os.waitstatus_to_exitcode(status)


def forked(work: Work, others: Iterable[ForkedProcess]) -> ForkedProcess | None:
    """A process that does `work`; None where the system has none to give.

    `others` are those that were forked before. The process ends without a word, with exit status 1 where `work` raises.
    Call it in `signals_held`, and keep the process there: so a signal that ends this process finds it, and none that
    has just begun ends as this one does, with words and cleaning up.
    """
    try:
        source, sink = os.pipe()
    except OSError:
        return None
    _widen(sink)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of locks that other threads may hold; those of linear algebra and file reading are idle.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            _work_and_exit(work, sink, (source, *(other.pipe for other in others)))
    except OSError:
        for end in (source, sink):
            os.close(end)
        return None
    os.close(sink)  # held open here, it would hide that the process ended
    return ForkedProcess(process, source)


def end_all(processes: Iterable[ForkedProcess]) -> None:
    """End processes while signals wait: a second Ctrl-C would leave some running."""
    with signals_held(multiprocessing=False):
        for process in processes:
            process.end()


def _work_and_exit(work: Work, sink: int, unused: Iterable[int]) -> NoReturn:
    """All that a forked process does; `unused` are ends of pipes that are the first process's alone."""
    status = 1
    try:
        gc.freeze()  # looking for garbage would copy the memory that is shared
        for each in ENDING_SIGNALS:  # of a terminal they are for the process that asks, which ends the others
            signal.signal(each, signal.SIG_DFL if each == signal.SIGTERM else signal.SIG_IGN)
        take_signals()
        for end in unused:
            os.close(end)
        work(lambda message: _send(sink, message))
        status = 0
    finally:
        os._exit(status)


def _send(sink: int, message: bytes | memoryview) -> None:
    content = memoryview(message)
    for part in (memoryview(content.nbytes.to_bytes(_LENGTH_BYTES, "little")), content):
        left = part
        while left:
            left = left[os.write(sink, left) :]


def _widen(pipe: int) -> None:
    """Let a pipe hold more, where that can be asked for."""
    import fcntl

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # beyond what an unprivileged user may have
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
