"""Captures read at once, each in a thread of its own: reading needs no lock of the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from pepscope.captures.capture import Capture, KeptPayload, open_capture

Made = TypeVar("Made")

#: Between two reports of progress.
_BETWEEN_REPORTS_S = 0.1


class _StoppedError(Exception):
    """Another capture could not be read, or the user interrupts: this one is not needed any more."""


def open_captures(
    paths: Sequence[str | BinaryIO],
    *,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    payload: KeptPayload = True,
    tcp_needed: bool = True,
    progress: Callable[[int, int], object] | None = None,
    at_once: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Capture]:
    """Read captures as `open_capture` does; `memory_bytes` is what each of them may take.

    Files with names are read `at_once`, and while `meanwhile` is called; standard input, pipes and file objects, which
    may make a reader wait, one after the other, and `meanwhile` is called then. `progress` is called in this thread,
    with the bytes read of all files together and in all. Of several captures that cannot be read the first one's error
    is raised.
    """
    read = partial(open_capture, filter=filter, memory_bytes=memory_bytes, payload=payload, tcp_needed=tcp_needed)
    files = [path for path in paths if isinstance(path, str) and Path(path).is_file()]
    if not at_once or len(files) < len(paths):
        captures = [read(path, progress=progress) for path in paths]
        meanwhile()
        return captures
    return _read_files([_Reading(read, path) for path in files], progress, meanwhile)


def _read_files(
    readings: Sequence[_Reading], progress: Callable[[int, int], object] | None, meanwhile: Callable[[], object]
) -> list[Capture]:
    """Read files at once while `meanwhile` is called, each in a thread; the first file in this one."""

    def report() -> None:
        if progress is not None:
            progress(sum(each.read_bytes for each in readings), sum(each.file_bytes for each in readings))

    # This thread reads, too: memory that another thread asks for comes from a heap of its own, which grows page by
    # page, and later work does not find there what was let go of.
    own, *others = readings
    own.report = report
    meantime = _Task("importing", meanwhile)
    elsewhere = [_Task(f"reading {each.path}", each.read) for each in others]
    threads = [meantime.thread, *(each.thread for each in elsewhere)]
    try:
        for thread in threads:
            thread.start()
        first = own.read()
        for thread in threads:
            # Signals reach this thread only, so that waiting here makes Ctrl-C end all of them.
            while thread.is_alive():
                thread.join(_BETWEEN_REPORTS_S)
                report()
        captures = [first, *(each.result() for each in elsewhere)]
        meantime.result()
    finally:
        for each in readings:
            each.stopped = True
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return captures


class _Task(Generic[Made]):
    """Something that a thread does, and what came of it."""

    def __init__(self, name: str, work: Callable[[], Made]) -> None:
        self.thread = threading.Thread(target=self._run, name=name)
        self._work = work
        self._made: list[Made] = []
        self._error: BaseException | None = None

    def _run(self) -> None:
        try:
            self._made.append(self._work())
        except BaseException as error:  # raised again by `result`
            self._error = error

    def result(self) -> Made:
        """What it made; raises what doing it raised."""
        if self._error is not None:
            raise self._error
        (made,) = self._made
        return made


class _Reading:
    """One capture that is read, and how far. `report` is called after each step."""

    def __init__(self, read: Callable[..., Capture], path: str) -> None:
        self.path = path
        self.read_bytes = 0
        self.file_bytes = Path(path).stat().st_size
        self.stopped = False
        self.report: Callable[[], object] = lambda: None
        self._read = read

    def read(self) -> Capture:
        """Read it in the thread that calls this."""
        return self._read(self.path, progress=self._note)

    def _note(self, read_bytes: int, file_bytes: int) -> None:
        if self.stopped:
            raise _StoppedError
        self.read_bytes, self.file_bytes = read_bytes, file_bytes
        self.report()
