"""A capture of an interface into one file, on a thread of its own that never waits for Python."""

from __future__ import annotations

import threading
from pathlib import Path

from pepscope.captures.live.device import Device
from pepscope.errors import CaptureError


class LiveCapture:
    """A capture into a file, from its making to `finish`."""

    def __init__(self, device: str, path: Path, snap_bytes: int, filter_expression: str = "") -> None:
        """Start capturing; to be called in the namespace of the device. `snap_bytes` of 0 keeps all of a packet.

        `filter_expression` is in the language of pcap-filter; empty takes every packet. Raises CaptureError,
        FilterError.
        """
        self.path = path
        self._device = Device(device, snap_bytes, filter_expression)
        try:
            self._output = self._device.file(path)
        except BaseException:
            self._device.close()
            raise
        self._ended_early: str | None = None
        self._thread = threading.Thread(target=self._capture, name=f"pepscope-capture-{device}", daemon=True)
        self._thread.start()

    def _capture(self) -> None:
        if not (self._device.copy_to(self._output) and self._device.copy_rest_to(self._output)):
            self._ended_early = self._device.complaint()

    @property
    def is_running(self) -> bool:
        """Whether packets may still come: not where the interface went away."""
        return self._thread.is_alive()

    def finish(self) -> dict[str, int]:
        """Stop, once what the kernel handed over is written; packets written, and packets missed because they were not
        read in time. Raises CaptureError.

        The kernel hands packets over in blocks, 0.1 to 0.2 s after the first of a block came: who wants the last ones
        waits for so long before.
        """
        self._device.break_off()
        self._thread.join()
        try:
            counts = self._device.counts()
        finally:
            try:
                self._output.close()
            finally:
                self._device.close()
        if self._ended_early is not None:
            raise CaptureError(f"the capture {self.path} ended early: {self._ended_early}")
        return {"written_packets": counts.received - counts.dropped, "missed_packets": counts.dropped}
