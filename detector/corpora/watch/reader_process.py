"""The process that reads slices: what reading takes goes with it, and capturing never waits for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from detector.corpora.watch.reading import SliceReading, SliceWork, read_slice
from pepscope.processes.signals import ENDING_SIGNALS, signals_held, take_signals
from pepscope.processes.workers.errors import MOST_TRIES, WorkerDiedError

#: After so many slices, or packets in them, a new process takes over: what allocators keep goes with the old one.
_MOST_SLICES = 50
_MOST_PACKETS = 1_000_000

#: Capturing goes first.
_NICENESS = 10

_BETWEEN_CALLS_S = 0.2


class ReaderProcess:
    """A process that reads one slice at a time, begun with the first."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: multiprocessing.process.BaseProcess | None = None
        self._work: Connection | None = None
        self._slices = self._packets = 0

    def read(self, work: SliceWork, meanwhile: Callable[[], bool]) -> SliceReading | None:
        """Read a slice; `meanwhile` is called now and then, and ends the reading by giving True: then None.

        Raises what reading raises, and WorkerDiedError where the process died each time.
        """
        for _ in range(MOST_TRIES):
            pipe = self._ready()
            try:
                pipe.send(work)
                while not pipe.poll(_BETWEEN_CALLS_S):
                    if meanwhile():
                        self.close()
                        return None
                outcome = pipe.recv()
            except (EOFError, OSError):
                self.close()
                continue
            if isinstance(outcome, SliceReading):
                self._packets += outcome.packets
                return outcome
            raise outcome
        raise WorkerDiedError(f"{work.path}: its reader died each time, for lack of memory or by a signal")

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._work is not None:
            self._work.close()
            self._process.kill()  # it may be in the middle of a large capture, and ignores other signals
            self._process.join()
            self._process = None

    def _ready(self) -> Connection:
        if self._slices >= _MOST_SLICES or self._packets >= _MOST_PACKETS:
            self.close()
        if self._process is None or self._work is None:
            self._work, theirs = self._context.Pipe()
            self._process = self._context.Process(target=_serve, args=(theirs,), name="pepscope-reader", daemon=True)
            with signals_held():
                self._process.start()
            theirs.close()
            self._slices = self._packets = 0
        self._slices += 1
        return self._work


def _serve(pipe: Connection) -> None:
    """Read slices until the parent closes the pipe; it alone ends its reader: a terminal's Ctrl-C reaches both."""
    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    take_signals()
    os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            work = pipe.recv()
        except EOFError:
            return
        try:
            outcome: object = read_slice(work)
        except Exception as error:  # the parent raises it
            outcome = error
        pipe.send(outcome)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
