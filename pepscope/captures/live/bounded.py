"""A capture of an interface that ends: after a time, with a size, when the user interrupts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import CaptureError
from pepscope.whole_file import output_path

#: Headers, and the beginnings of TLS records and requests.
SNAP_BYTES = 160

#: A capture ends when it is this large, unless the user says otherwise.
MOST_BYTES = 1 << 30

_BETWEEN_LOOKS_S = 0.1

#: Gives an event that ends a capture, while the context lasts.
Stopping = Callable[[], AbstractContextManager[threading.Event]]


class BoundedCapture(NamedTuple):
    """A capture file, and what its user should know about it (a sentence each)."""

    path: Path
    notes: tuple[str, ...]


@contextmanager
def captured(
    interface: str,
    stopping: Stopping,
    *,
    duration_s: float | None = None,
    most_bytes: int = MOST_BYTES,
    snap_bytes: int = SNAP_BYTES,
    filter_expression: str = "",
    kept_as: Path | None = None,
) -> Iterator[BoundedCapture]:
    """Capture on an interface until `duration_s` have passed, the file has `most_bytes`, or `stopping` says so.

    The file is `kept_as` and stays, or a temporary one that is there until the block ends. What had the name `kept_as`
    before has it until the capture has ended.

    Raises CaptureError, also where no packet came, FilterError.
    """
    with TemporaryDirectory(prefix="pepscope-") as directory:
        path = kept_as or Path(directory, f"{interface.replace('/', '_')}.pcap")
        with output_path(path) as place:
            capture = LiveCapture(interface, place, snap_bytes, filter_expression)
            notes = _until_ended(capture, interface, stopping, duration_s, most_bytes)
            try:
                counts = capture.finish()
            except CaptureError as error:
                notes.append(str(error).replace(str(place), str(path)))
            else:
                if counts["missed_packets"]:
                    notes.append(f"the kernel dropped {counts['missed_packets']:,} packets that were not read in time")
                if not counts["written_packets"]:
                    what = f"packet that matches {filter_expression!r}" if filter_expression else "packet"
                    raise CaptureError(f"nothing to judge: no {what} came on {interface}")
        yield BoundedCapture(path, tuple(notes))


def _until_ended(
    capture: LiveCapture, interface: str, stopping: Stopping, duration_s: float | None, most_bytes: int
) -> list[str]:
    """Wait until a capture is to end; what its user should know about that."""
    ends_s = None if duration_s is None else time.monotonic() + duration_s
    with stopping() as stopped:
        while capture.is_running and not stopped.wait(_BETWEEN_LOOKS_S):
            if ends_s is not None and time.monotonic() >= ends_s:
                break
            if capture.path.stat().st_size >= most_bytes:
                return [f"the capture on {interface} ended at its largest size ({most_bytes:,} bytes)"]
    return []
