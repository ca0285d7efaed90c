"""An upload to a host that reads slowly: what is acknowledged beyond what it can have taken, a middlebox holds.

The user names the rate at which the host reads, and what its receive buffer holds. End to end, no more is acknowledged
at any time than the host has read by then and what its buffer holds (RFC 9293, section 3.8.6: the window closes). The
kernel's count of acknowledged bytes (TCP_INFO) shows more where a middlebox takes the upload in the host's name.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.finding import CheckFinding, Says
from prober.check.given import Given
from prober.check.targets import Place, Target, addresses_of
from prober.host.reset import reset_on_close
from prober.host.tcp_info import tcp_info

NAME = "slow-reader"
UPLOAD_BYTES = 1_000_000
#: Looked at so long at most: what a middlebox takes, it takes in the first seconds.
_WATCH_S = 20.0
_PATIENCE_S = 5.0
_LOOK_S = 0.02
_PIECE_BYTES = 65_536
#: So much beyond what the host can hold must be acknowledged: kernels count more than payload against a buffer, and
#: windows are scaled.
_BEYOND_BYTES = 200_000
#: A receive buffer is twice what was asked for (socket(7)), and headers count against it.
_BUFFER_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class SlowUpload:
    """Seconds since the first byte with the bytes acknowledged by then, and what the host can have taken."""

    looks: tuple[tuple[float, int], ...]
    rate_bytes_s: float
    buffer_bytes: int

    @property
    def most_beyond_bytes(self) -> float:
        """The most that was acknowledged beyond what the host can have read and held."""
        held = _BUFFER_FACTOR * self.buffer_bytes
        return max((count - self.rate_bytes_s * after_s - held for after_s, count in self.looks), default=0.0)


class SlowReaderUpload(CheckExperiment[SlowUpload]):
    """Uploads to the slow reader that the user gave."""

    name = NAME
    title = "upload to a slow reader"
    summary = "Upload 1 MB to a host that reads slowly: what is acknowledged beyond its buffer, a middlebox holds."
    measured = SlowUpload

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """The host, if one was given and its name is known."""
        if given.slow_reader is None:
            return ()
        target = Target(given.slow_reader.host, given.slow_reader.port, tls=False)
        with contextlib.suppress(OSError):
            return [Place(target, address) for address in addresses_of(given.slow_reader.host)[:1]]
        return ()

    def cost(self) -> Cost:
        """One upload."""
        return Cost(1, 0, UPLOAD_BYTES)

    def measure(self, asked: Asked) -> SlowUpload | None:
        """Upload until everything is acknowledged, or the time is over. Raises OSError."""
        reader = asked.given.slow_reader
        if reader is None:
            return None
        with socket.create_connection((asked.place.address, reader.port), _PATIENCE_S) as link:
            reset_on_close(link)
            return SlowUpload(tuple(_upload(link)), reader.rate_bytes_s, reader.buffer_bytes)

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """More acknowledged than the host can hold."""
        for each, found in self.observed(port):
            if found.most_beyond_bytes >= _BEYOND_BYTES:
                yield CheckFinding(
                    "acknowledged-beyond-the-reader", Says.SPLIT,
                    f"Of an upload to {each.host}, which reads {found.rate_bytes_s / 1e3:.0f} kB/s, "
                    f"{found.most_beyond_bytes / 1e3:.0f} kB more were acknowledged than it had read and its buffer "
                    "holds: a middlebox holds them.", (each.host,),
                    numbers={"acknowledged_beyond_bytes": found.most_beyond_bytes},
                )  # fmt: skip

    def document(self, measured: SlowUpload) -> Mapping[str, Any]:
        """Bytes acknowledged over time."""
        return {"looks": [list(each) for each in measured.looks], "most_beyond_bytes": measured.most_beyond_bytes}


def _upload(link: socket.socket) -> Iterable[tuple[float, int]]:
    link.setblocking(False)
    begun_s, left, next_s = time.monotonic(), UPLOAD_BYTES, 0.0
    while (after_s := time.monotonic() - begun_s) < _WATCH_S:
        with contextlib.suppress(BlockingIOError):
            left -= link.send(bytes(min(left, _PIECE_BYTES))) if left else 0
        info = tcp_info(link)
        # The SYN counts as one byte (RFC 9293, section 3.4).
        count = max(0, info.get("bytes_acked", 1) - 1)
        if after_s >= next_s or count >= UPLOAD_BYTES:
            yield after_s, count
            next_s = after_s + 10 * _LOOK_S
        if count >= UPLOAD_BYTES or not info:
            return
        time.sleep(_LOOK_S)
