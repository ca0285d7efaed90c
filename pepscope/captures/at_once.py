"""Several captures read at once, each in a thread of its own: reading needs no lock of the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pepscope.captures.capture import Capture, KeptPayload, open_capture

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

    Files with names are read `at_once`; standard input, pipes and file objects, which may make a reader wait, one after
    the other. `progress` is called in this thread, with the bytes read of all files together and in all. `meanwhile` is
    called once, while files are read if they are read at once. Of several captures that cannot be read the first one's
    error is raised.
    """
    read = partial(open_capture, filter=filter, memory_bytes=memory_bytes, payload=payload, tcp_needed=tcp_needed)
    files = [path for path in paths if isinstance(path, str) and Path(path).is_file()]
    if not at_once or len(paths) < 2 or len(files) < len(paths):
        captures = [read(path, progress=progress) for path in paths]
        meanwhile()
        return captures
    every = [_Reading(read, path) for path in files]
    threads = [threading.Thread(target=each.run, name=f"reading {each.path}") for each in every]
    captures = list[Capture]()
    try:
        for thread in threads:
            thread.start()
        meanwhile()
        # Signals reach this thread only, so that waiting here makes Ctrl-C end all of them.
        for thread, reading in zip(threads, every, strict=True):
            reading_on = True
            while reading_on:
                thread.join(_BETWEEN_REPORTS_S)
                reading_on = thread.is_alive()
                if progress is not None:
                    progress(sum(each.read_bytes for each in every), sum(each.file_bytes for each in every))
            captures.append(reading.result())
    finally:
        for each in every:
            each.stopped = True
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return captures


class _Reading:
    """One capture that is read, and how far."""

    def __init__(self, read: Callable[..., Capture], path: str) -> None:
        self.path = path
        self.read_bytes = 0
        self.file_bytes = Path(path).stat().st_size
        self.stopped = False
        self._read = read
        self._capture: Capture | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Read it in the thread that calls this."""
        try:
            self._capture = self._read(self.path, progress=self._note)
        except BaseException as error:  # raised again by `result`
            self._error = error

    def result(self) -> Capture:
        """The capture; raises what reading it raised."""
        if self._error is not None:
            raise self._error
        assert self._capture is not None
        return self._capture

    def _note(self, read_bytes: int, file_bytes: int) -> None:
        if self.stopped:
            raise _StoppedError
        self.read_bytes, self.file_bytes = read_bytes, file_bytes
