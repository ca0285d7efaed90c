"""A capture of an interface that ends: after a time, with a size, when the user interrupts it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NamedTuple

from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import CaptureError

#: Headers, and the beginnings of TLS records and requests.
SNAP_BYTES = 160

#: A capture ends when it is this large, unless the user says otherwise.
MOST_BYTES = 1 << 30

_BETWEEN_LOOKS_S = 0.1


class BoundedCapture(NamedTuple):
    """A capture file, and what its user should know about it (a sentence each)."""

    path: Path
    notes: tuple[str, ...]


@contextmanager
def captured(
    interface: str,
    *,
    duration_s: float | None = None,
    most_bytes: int = MOST_BYTES,
    snap_bytes: int = SNAP_BYTES,
    filter_expression: str = "",
    kept_as: Path | None = None,
) -> Iterator[BoundedCapture]:
    """Capture on an interface until `duration_s` have passed, the file has `most_bytes`, or SIGINT or SIGTERM comes.

    The file is `kept_as` and stays, or a temporary one that is there until the block ends.

    Raises CaptureError, also where no packet came, FilterError.
    """
    with TemporaryDirectory(prefix="pepscope-") as directory:
        path = kept_as or Path(directory, f"{interface.replace('/', '_')}.pcap")
        notes = []
        with _interruptible() as stopped:
            capture = LiveCapture(interface, path, snap_bytes, filter_expression)
            ends_s = None if duration_s is None else time.monotonic() + duration_s
            while capture.is_running and not stopped.wait(_BETWEEN_LOOKS_S):
                if ends_s is not None and time.monotonic() >= ends_s:
                    break
                if path.stat().st_size >= most_bytes:
                    notes.append(f"the capture on {interface} ended at its largest size ({most_bytes:,} bytes)")
                    break
            try:
                counts = capture.finish()
            except CaptureError as error:
                notes.append(str(error))
            else:
                if counts["missed_packets"]:
                    notes.append(f"the kernel dropped {counts['missed_packets']:,} packets that were not read in time")
                if not counts["written_packets"]:
                    what = f"packet that matches {filter_expression!r}" if filter_expression else "packet"
                    raise CaptureError(f"nothing to judge: no {what} came on {interface}")
        yield BoundedCapture(path, tuple(notes))


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set instead of what they do otherwise."""
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
