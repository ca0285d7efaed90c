"""Processes that are forked to work on results, so that they share this one's memory, and send what they make."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

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
        """End the process where it still runs; returns its exit status, or the signal that it ended by, below zero."""
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        return os.waitstatus_to_exitcode(status)


def forked(
    work: Callable[[Callable[[bytes | memoryview], None]], object], others: Iterable[ForkedProcess]
) -> ForkedProcess | None:
    """A process that does `work`, which is given what sends a message; None where the system has none to give.

    `others` are those that were forked before. The process ends without a word, with exit status 1 where `work` raises.
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
    except OSError:
        for end in (source, sink):
            os.close(end)
        return None
    if process == 0:
        status = 1
        try:
            gc.freeze()  # looking for garbage would copy the memory that is shared
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends the others
            for each in (source, *(other.pipe for other in others)):
                os.close(each)
            work(lambda message: _send(sink, message))
            status = 0
        finally:
            os._exit(status)
    os.close(sink)  # held open here, it would hide that the process ended
    return ForkedProcess(process, source)


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
