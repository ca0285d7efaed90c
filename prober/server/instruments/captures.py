"""Captures at the server's end: one at a time and measurement, bounded in size, time and what the disk has left."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import shutil
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pepscope.errors import CaptureError
from prober.protocol.control_messages import CaptureSummary, Ports
from prober.server.instruments.means import RunningCapture
from prober.server.refusal import RefusedError
from prober.server.settings import LimitsTable

#: gzip's fastest: the mobile waits for it, and headers compress well at any level.
_LEVEL = 1
_PIECE_BYTES = 1 << 16


def service_filter(ports: Ports) -> str:
    """Everything that concerns measured connections, with any peer: a proxy's address is not known."""
    tcp = [f"port {port}" for port in (*ports.services, ports.dead)]
    tcp.append(f"portrange {ports.ftp_data[0]}-{ports.ftp_data[1]}")
    return f"(tcp and ({' or '.join(tcp)})) or (udp and port {ports.udp_echo})"


class Capture:
    """One capture, from its making until it is forgotten."""

    def __init__(self, running: RunningCapture) -> None:
        self.path = running.path
        self.packed = self.path.with_suffix(".pcap.gz")
        self.began_s = time.monotonic()
        self._running: RunningCapture | None = running
        self._summary: CaptureSummary | None = None
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether it still captures."""
        return self._running is not None

    @property
    def stored_bytes(self) -> int:
        """What it takes on the disk now."""
        for path in (self.path, self.packed):
            with contextlib.suppress(OSError):
                return path.stat().st_size
        return 0

    def finish(self, why: str = "") -> CaptureSummary:
        """Stop, once, and compress; `why` is the reason if the mobile did not end it. Raises RefusedError for a full
        disk."""
        with self._lock:
            if self._running is not None:
                running, self._running = self._running, None
                missed = -1
                try:
                    missed = running.finish()
                except CaptureError as error:
                    why = why or str(error)
                self._summary = self._pack(missed, why)
            if self._summary is None:
                raise RefusedError(507, "the capture could not be packed: the server's disk may be full")
            return self._summary

    def _pack(self, missed: int, why: str) -> CaptureSummary | None:
        digest, size_bytes, records = hashlib.sha256(), 0, _Records()
        try:
            with self.path.open("rb") as file, gzip.open(self.packed, "wb", compresslevel=_LEVEL) as packed:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
                    size_bytes += len(piece)
                    records.pass_by(piece)
                    packed.write(piece)
            packed_bytes = self.packed.stat().st_size
            return CaptureSummary(records.count, missed, size_bytes, packed_bytes, digest.hexdigest(), why)
        except OSError:
            self.packed.unlink(missing_ok=True)
            return None
        finally:
            self.path.unlink(missing_ok=True)

    def read(self, offset: int) -> Iterator[bytes]:
        """The packed capture from `offset`. Raises RefusedError while it runs, OSError."""
        if self._running is not None:
            raise RefusedError(409, "the capture still runs; finish it first")
        with self.packed.open("rb") as file:
            file.seek(offset)
            while piece := file.read(_PIECE_BYTES):
                yield piece

    def close(self) -> None:
        """Stop where it still runs, and remove what there is."""
        with self._lock:
            if self._running is not None:
                running, self._running = self._running, None
                with contextlib.suppress(CaptureError):
                    running.finish()
            for path in (self.path, self.packed):
                path.unlink(missing_ok=True)


class _Records:
    """Counts the records of a pcap file in this host's byte order as its bytes pass by.

    What libpcap counts is another number: it has packets among it that it does not write, such as every second one on
    a loopback device.
    """

    def __init__(self) -> None:
        self.count = 0
        self._held = b""
        self._skip_bytes = 24  # the head of the file

    def pass_by(self, piece: bytes) -> None:
        """Look at the next bytes of the file."""
        data, place = self._held + piece, self._skip_bytes
        while place + 16 <= len(data):
            (kept_bytes,) = struct.unpack_from("=I", data, place + 8)
            place += 16 + kept_bytes
            self.count += 1
        self._held = data[place:]
        self._skip_bytes = max(0, place - len(data))


def excess(capture: Capture, limits: LimitsTable) -> str:
    """Why a capture must end now, one sentence; empty where it may go on."""
    if not capture.is_running:
        return ""
    if time.monotonic() - capture.began_s > limits.capture_s:
        return f"a capture takes at most {limits.capture_s:g} s"
    try:
        size_bytes = capture.path.stat().st_size
    except OSError:
        return ""
    if size_bytes > limits.capture_bytes:
        return f"a capture has at most {limits.capture_bytes} bytes"
    return no_room(capture.path.parent, limits)


def no_room(directory: Path, limits: LimitsTable) -> str:
    """Why there is no room for captures, one sentence; empty where there is."""
    if shutil.disk_usage(directory).free < limits.free_disk_bytes:
        return "the server's disk is nearly full"
    return ""
