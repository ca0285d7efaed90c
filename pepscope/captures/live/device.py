"""A network interface that libpcap captures on. On Linux libpcap reads it through a ring in memory (TPACKET_V3)."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pepscope.captures.opening import libpcap
from pepscope.errors import CaptureError, FilterError

BUFFER_BYTES = 16 << 20
_TIMEOUT_MS = 100
_EVERYTHING_BYTES = 262_144
#: What a packet takes in the kernel's buffer is more: its header there, and the captured bytes.
_LEAST_PACKET_BYTES = 32

#: What `Device.copy_to` gives: all is well, and so it is where another thread broke it off (PCAP_ERROR_BREAK).
_ENDED_IN_ORDER = (0, libpcap.BROKEN_OFF)


@dataclass(frozen=True, slots=True)
class PacketCounts:
    """Packets since the beginning: those the filter took, and of them those that were not read in time; and those that
    the interface itself dropped, where it says so."""

    received: int = 0
    dropped: int = 0
    interface_dropped: int = 0


class Device:
    """An interface that is captured on, until it is closed."""

    def __init__(
        self, name: str, snap_bytes: int, filter_expression: str = "", *, buffer_bytes: int = BUFFER_BYTES
    ) -> None:
        """Begin; to be called in the namespace of the interface. `snap_bytes` of 0 keeps all of a packet.

        `filter_expression` is in the language of pcap-filter; empty takes every packet. The kernel keeps
        `buffer_bytes` of packets that are not read yet. Raises CaptureError, FilterError.
        """
        self._name = name
        try:
            self._pcap = libpcap.library()
        except OSError as missing:
            raise CaptureError(f"{name} cannot be captured on: {missing}") from None
        self._most_waiting_packets = buffer_bytes // _LEAST_PACKET_BYTES
        # pcap_setnonblock closes the descriptor by which pcap_breakloop wakes the thread that reads.
        self._breaking_off = threading.Lock()
        # pcap_dump is handed to libpcap as it is: no packet passes through Python.
        self._write = ctypes.cast(self._pcap.pcap_dump, ctypes.c_void_p)
        error = ctypes.create_string_buffer(libpcap.ERROR_BUFFER_BYTES)
        self._handle = self._pcap.pcap_create(name.encode(), error)
        if not self._handle:
            raise CaptureError(f"libpcap cannot capture on {name}: {_text(error.value)}")
        try:
            self._activate(snap_bytes, buffer_bytes)
            if filter_expression:
                self._take_only(filter_expression)
        except BaseException:
            self.close()
            raise

    def _activate(self, snap_bytes: int, buffer_bytes: int) -> None:
        pcap, handle = self._pcap, self._handle
        pcap.pcap_set_snaplen(handle, snap_bytes or _EVERYTHING_BYTES)
        pcap.pcap_set_buffer_size(handle, buffer_bytes)
        pcap.pcap_set_timeout(handle, _TIMEOUT_MS)
        pcap.pcap_set_tstamp_precision(handle, libpcap.NANOSECONDS)
        status = pcap.pcap_activate(handle)
        if status < 0:
            # Without words of its own for the interface libpcap has some for the status.
            cause = self.complaint() or _text(pcap.pcap_statustostr(status))
            needs = ", which needs root or CAP_NET_RAW" if status == libpcap.PERMISSION_DENIED else ""
            raise CaptureError(f"libpcap cannot capture on {self._name}{needs}: {cause}")

    def _take_only(self, expression: str) -> None:
        pcap, program = self._pcap, libpcap.Program()
        reference = ctypes.byref(program)
        if pcap.pcap_compile(self._handle, reference, expression.encode(), 1, libpcap.UNKNOWN_NETMASK) != 0:
            raise FilterError(f"the filter {expression!r} does not compile: {self.complaint()}")
        try:
            if pcap.pcap_setfilter(self._handle, reference) != 0:
                raise FilterError(f"the filter {expression!r} cannot be set: {self.complaint()}")
        finally:
            pcap.pcap_freecode(reference)

    def file(self, path: Path) -> CaptureOutput:
        """A new capture file for the packets of this interface. Raises CaptureError."""
        dumper = self._pcap.pcap_dump_open(self._handle, str(path).encode())
        if not dumper:
            raise CaptureError(f"the capture cannot be written: {self.complaint()}")
        return CaptureOutput(self._pcap, dumper, path)

    def copy_to(self, output: CaptureOutput) -> bool:
        """Write packets until `break_off` is called; False where the capture ended by itself (see `complaint`)."""
        return self._pcap.pcap_loop(self._handle, -1, self._write, output.dumper) in _ENDED_IN_ORDER

    def copy_rest_to(self, output: CaptureOutput) -> bool:
        """Write what the kernel handed over until now, which a broken-off `copy_to` leaves unread; False where that
        failed (see `complaint`).

        A thread that waited for a processor may not have read for long. No more is written than the kernel's buffer
        holds, however fast packets come.
        """
        with self._breaking_off:
            error = ctypes.create_string_buffer(libpcap.ERROR_BUFFER_BYTES)
            if self._pcap.pcap_setnonblock(self._handle, 1, error) != 0:
                return False
        left = self._most_waiting_packets
        while left > 0:
            copied: int = self._pcap.pcap_dispatch(self._handle, left, self._write, output.dumper)
            if copied == libpcap.BROKEN_OFF:  # a second time
                continue
            if copied <= 0:
                return copied == 0
            left -= copied
        return True

    def break_off(self) -> None:
        """End `copy_to`, which another thread is in; or the next one, where none is."""
        with self._breaking_off:
            self._pcap.pcap_breakloop(self._handle)

    def counts(self) -> PacketCounts:
        """What was captured so far; not while another thread is in `copy_to`."""
        counts = libpcap.Statistics()
        self._pcap.pcap_stats(self._handle, ctypes.byref(counts))
        return PacketCounts(counts.received, counts.dropped, counts.interface_dropped)

    def complaint(self) -> str:
        """What libpcap says went wrong last."""
        return _text(self._pcap.pcap_geterr(self._handle))

    def close(self) -> None:
        """End capturing."""
        self._pcap.pcap_close(self._handle)


class CaptureOutput:
    """A capture file that is written."""

    def __init__(self, pcap: Any, dumper: Any, path: Path) -> None:
        self._pcap = pcap
        self.dumper = dumper
        self.path = path

    def close(self) -> None:
        """Write what is left. Raises CaptureError where anything could not be written."""
        is_whole = self._pcap.pcap_dump_flush(self.dumper) == 0 and not _has_failed(
            self._pcap.pcap_dump_file(self.dumper)
        )
        self._pcap.pcap_dump_close(self.dumper)
        if not is_whole:
            raise CaptureError(f"the capture {self.path} could not be written to its end; is the disk full?")


def _has_failed(file: Any) -> bool:
    """Whether writing to a C stream ever failed; libpcap then stops writing without an error."""
    ferror = ctypes.CDLL(None).ferror
    ferror.argtypes, ferror.restype = [ctypes.c_void_p], ctypes.c_int
    return bool(ferror(ctypes.cast(file, ctypes.c_void_p)))


def _text(message: bytes) -> str:
    return " ".join(message.decode(errors="replace").split())
