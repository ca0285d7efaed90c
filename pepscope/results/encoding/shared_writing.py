"""Texts that several processes make, forked so that they share this one's memory, and that are written in order."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress

from msgspec import Struct

from pepscope.results.encoding.templates import Octets

#: The length of a text, ahead of it.
_LENGTH_BYTES = 8

#: What a pipe holds, where the system allows it: a process makes its next text sooner than with the usual 64 KiB.
_PIPE_BYTES = 1 << 20


def made_in_order(make: Callable[[int], Octets], count: int, jobs: int) -> Generator[Octets, None, None]:
    """What `make` makes of each number below `count`, in order.

    Of so many `jobs` this process is one. It makes the last of each few texts while the others make those before it. It
    also makes what another one does not deliver, so that an error of `make` is raised here, as with one job.
    """
    makers = max(1, min(jobs, count)) if hasattr(os, "fork") else 1
    others: list[_Maker | None] = []
    try:
        for place in range(makers - 1):
            others.append(_forked(make, range(place, count - 1, makers), others))
        for first in range(0, count, makers):
            *theirs, own = range(first, min(first + makers, count))
            last = make(own)
            for other, number in zip(others, theirs, strict=False):
                text = None if other is None else other.received()
                yield make(number) if text is None else text
            yield last
    finally:
        for other in others:
            if other is not None:
                other.end()


class _Maker(Struct, frozen=True):
    """Another process, and the pipe by which its texts come."""

    process: int
    pipe: int

    def received(self) -> memoryview | None:
        """Its next text; None where it has ended."""
        length = self._read(_LENGTH_BYTES)
        return None if length is None else self._read(int.from_bytes(length, "little"))

    def _read(self, count: int) -> memoryview | None:
        """So many bytes, or None where there are fewer."""
        text = left = memoryview(bytearray(count))
        while left:
            if not (taken := os.readv(self.pipe, [left])):
                return None
            left = left[taken:]
        return text

    def end(self) -> None:
        """End the process, of which no text is asked for any more."""
        os.close(self.pipe)
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _forked(make: Callable[[int], Octets], numbers: Iterable[int], others: Sequence[_Maker | None]) -> _Maker | None:
    """A process that makes the texts of these numbers; None where the system has none to give."""
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
        try:
            gc.disable()  # looking for garbage would copy the memory that is shared
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends the others
            for each in (source, *(other.pipe for other in others if other is not None)):
                os.close(each)
            for number in numbers:
                _send(sink, make(number))
        finally:
            os._exit(0)  # without a word: who asks makes what is missing
    os.close(sink)
    return _Maker(process, source)


def _send(sink: int, text: Octets) -> None:
    content = memoryview(text)
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
