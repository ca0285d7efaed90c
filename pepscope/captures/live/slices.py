"""A capture of an interface cut into files that follow each other, none of which lacks a packet of the next.

libpcap's handle stays open from file to file, so that the kernel's ring keeps what comes in between.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from pepscope.captures.live.device import CaptureOutput, Device, PacketCounts
from pepscope.errors import CaptureError

#: Of packets that are not read yet: ten seconds of 40,000 packets a second, cut to 160 bytes.
_BUFFER_BYTES = 64 << 20

#: Between two looks at the time and the size of the file that is written.
_BETWEEN_LOOKS_S = 0.2


@dataclass(frozen=True, slots=True)
class CaptureSlice:
    """A file that is whole, and when it ended (nanoseconds since the epoch)."""

    path: Path
    ended_ns: int


class SlicedCapture:
    """A capture into the files of a directory, from its making to `finish`."""

    def __init__(
        self,
        device: str,
        directory: Path,
        snap_bytes: int,
        filter_expression: str = "",
        *,
        slice_s: float,
        slice_bytes: int,
        waiting_bytes: int,
    ) -> None:
        """Start capturing. A file ends after `slice_s`, or with `slice_bytes` about; the oldest files that wait to be
        taken are removed where all of them have more than `waiting_bytes`.

        Raises CaptureError, FilterError.
        """
        self._directory = directory
        self._slice_s, self._slice_bytes, self._waiting_bytes = slice_s, slice_bytes, waiting_bytes
        self._device = Device(device, snap_bytes, filter_expression, buffer_bytes=_BUFFER_BYTES)
        self._name = device
        self._number = 0
        try:
            self._output = self._next_output()
        except BaseException:
            self._device.close()
            raise
        self._waiting: deque[CaptureSlice] = deque()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._failure: CaptureError | None = None
        self.counts = PacketCounts()
        self.lost_slices = 0
        self._is_closed = False
        self._capturing = threading.Thread(target=self._capture, name=f"pepscope-capture-{device}", daemon=True)
        self._cutting = threading.Thread(target=self._cut, name=f"pepscope-cut-{device}", daemon=True)
        self._capturing.start()
        self._cutting.start()

    @property
    def waiting(self) -> int:
        """How many files wait to be taken."""
        return len(self._waiting)

    @property
    def failure(self) -> CaptureError | None:
        """Why the capture ended by itself, if it did."""
        return self._failure

    def take(self, timeout_s: float) -> CaptureSlice | None:
        """The oldest file that waits; None where none came in time, or the capture ended.

        Whoever takes it removes it.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._capturing.is_alive(), timeout_s)
            return self._waiting.popleft() if self._waiting else None

    def finish(self) -> None:
        """Stop; what was captured until now can still be taken. More than once does nothing more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._ending.set()
        self._device.break_off()
        self._capturing.join()
        self._cutting.join()
        self._device.close()

    def _next_output(self) -> CaptureOutput:
        self._number += 1
        return self._device.file(self._directory / f"pepscope-{self._name}-{self._number:06}.pcap")

    def _capture(self) -> None:
        try:
            while True:
                goes_on = self._device.copy_to(self._output)
                if goes_on and self._ending.is_set():
                    goes_on = self._device.copy_rest_to(self._output)
                ended_ns = time.time_ns()
                cause = "" if goes_on else self._device.complaint()
                self.counts = self._device.counts()
                self._close(ended_ns)
                if not goes_on:
                    raise CaptureError(f"the capture on {self._name} ended: {cause}")
                if self._ending.is_set():
                    return
                self._output = self._next_output()
        except CaptureError as error:
            self._failure = error
        finally:
            self._ending.set()
            with self._changed:
                self._changed.notify_all()

    def _close(self, ended_ns: int) -> None:
        """End the file and offer it, even where its end is missing."""
        try:
            self._output.close()
        finally:
            with self._changed:
                self._waiting.append(CaptureSlice(self._output.path, ended_ns))
                while len(self._waiting) > 1 and self._held_bytes() > self._waiting_bytes:
                    self._waiting.popleft().path.unlink(missing_ok=True)
                    self.lost_slices += 1
                self._changed.notify_all()

    def _held_bytes(self) -> int:
        return sum(_size(each.path) for each in self._waiting)

    def _cut(self) -> None:
        begun_s, path = time.monotonic(), self._output.path
        while not self._ending.wait(_BETWEEN_LOOKS_S):
            if self._output.path != path:
                begun_s, path = time.monotonic(), self._output.path
            if time.monotonic() - begun_s >= self._slice_s or _size(path) >= self._slice_bytes:
                self._device.break_off()
                begun_s = time.monotonic()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
