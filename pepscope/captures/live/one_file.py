"""Captures of a device by libpcap, with nanoseconds, on a thread of their own that never waits for Python."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

from pepscope.errors import CaptureError, FilterError

_BUFFER_BYTES = 16 << 20
_TIMEOUT_MS = 100
_EVERYTHING_BYTES = 262_144
_BROKEN_LOOP = -2  # PCAP_ERROR_BREAK


class LiveCapture:
    """A capture into a file, from its making to `finish`."""

    def __init__(self, device: str, path: Path, snap_bytes: int, filter_expression: str = "") -> None:
        """Start capturing; to be called in the namespace of the device. `snap_bytes` of 0 keeps all of a packet.

        `filter_expression` is in the language of pcap-filter; empty takes every packet. Raises CaptureError,
        FilterError.
        """
        self.path = path
        self._pcap = _library()
        error = ctypes.create_string_buffer(self._pcap.PCAP_ERRBUF_SIZE + 1)
        self._handle = self._pcap.create(device.encode(), error)
        if not self._handle:
            raise CaptureError(f"libpcap cannot capture on {device}: {_text(error.value)}")
        try:
            self._activate(device, snap_bytes)
            if filter_expression:
                self._take_only(filter_expression)
            self._dumper = self._pcap.dump_open(self._handle, str(path).encode())
            if not self._dumper:
                raise CaptureError(f"the capture cannot be written: {self._complaint()}")
        except BaseException:
            self._pcap.close(self._handle)
            raise
        self._status = 0
        self._thread = threading.Thread(target=self._capture, name=f"pepscope-capture-{device}", daemon=True)
        self._thread.start()

    def _activate(self, device: str, snap_bytes: int) -> None:
        pcap, handle = self._pcap, self._handle
        pcap.set_snaplen(handle, snap_bytes or _EVERYTHING_BYTES)
        pcap.set_buffer_size(handle, _BUFFER_BYTES)
        pcap.set_timeout(handle, _TIMEOUT_MS)
        pcap.set_tstamp_precision(handle, pcap.PCAP_TSTAMP_PRECISION_NANO)
        if pcap.activate(handle) < 0:
            raise CaptureError(f"libpcap cannot capture on {device}: {self._complaint()}")

    def _take_only(self, expression: str) -> None:
        pcap, program = self._pcap, self._pcap.bpf_program()
        reference = ctypes.byref(program)
        if pcap.compile(self._handle, reference, expression.encode(), 1, pcap.PCAP_NETMASK_UNKNOWN) != 0:
            raise FilterError(f"the filter {expression!r} does not compile: {self._complaint()}")
        try:
            if pcap.setfilter(self._handle, reference) != 0:
                raise FilterError(f"the filter {expression!r} cannot be set: {self._complaint()}")
        finally:
            pcap.freecode(reference)

    def _capture(self) -> None:
        # pcap_dump is handed to libpcap as it is: no packet passes through Python.
        write = ctypes.cast(self._pcap.dump, self._pcap.pcap_handler)
        user = ctypes.cast(self._dumper, ctypes.POINTER(ctypes.c_ubyte))
        self._status = self._pcap.loop(self._handle, -1, write, user)

    def finish(self) -> dict[str, int]:
        """Stop; packets written, and packets missed because they were not read in time. Raises CaptureError."""
        self._pcap.breakloop(self._handle)
        self._thread.join()
        try:
            if self._status not in (0, _BROKEN_LOOP):
                raise CaptureError(f"the capture {self.path} ended early: {self._complaint()}")
            counts = self._pcap.stat()
            self._pcap.stats(self._handle, ctypes.byref(counts))
            is_whole = self._pcap.dump_flush(self._dumper) == 0 and not _has_failed(self._pcap.dump_file(self._dumper))
        finally:
            self._pcap.dump_close(self._dumper)
            self._pcap.close(self._handle)
        if not is_whole:
            raise CaptureError(f"the capture {self.path} could not be written to its end; is the disk full?")
        return {"written_packets": counts.ps_recv - counts.ps_drop, "missed_packets": counts.ps_drop}

    def _complaint(self) -> str:
        return _text(self._pcap.geterr(self._handle))


def _library() -> Any:
    try:
        import libpcap
    except (ImportError, OSError) as error:
        raise CaptureError(f"captures need the Python package libpcap, which does not load here: {error}") from error
    return libpcap


def _has_failed(file: Any) -> bool:
    """Whether writing to a C stream ever failed; libpcap then stops writing without an error."""
    ferror = ctypes.CDLL(None).ferror
    ferror.argtypes, ferror.restype = [ctypes.c_void_p], ctypes.c_int
    return bool(ferror(ctypes.cast(file, ctypes.c_void_p)))


def _text(message: bytes) -> str:
    return " ".join(message.decode(errors="replace").split())
