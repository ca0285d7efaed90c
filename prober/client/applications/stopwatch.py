"""What all clients share: the times and bytes of one transfer, its receipt, and the sentence for one that broke off."""

from __future__ import annotations

import contextlib
import ftplib
import http.client
import time
from collections.abc import Iterator, Mapping

from pepscope.captures.direction import Direction
from prober.client.applications import Request
from prober.client.transfer import Flow, Transfer
from prober.errors import MalformedMessageError, MeasurementError
from prober.protocol.objects import ObjectName
from prober.protocol.plain_requests import UploadReport


class Stopwatch:
    """Times since the connection that carries the object began to be made, in seconds."""

    def __init__(self) -> None:
        self.started_unix_ns = time.time_ns()
        self._started_s = time.monotonic()
        self.connect_s = self.first_byte_s = self.total_s = 0.0
        self.moved_bytes = 0

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def connected(self) -> None:
        """The connection is there."""
        self.connect_s = self._elapsed_s()

    def answered(self) -> None:
        """The first byte of what the other end sends is there."""
        self.first_byte_s = self._elapsed_s()

    def moved(self, more_bytes: int) -> None:
        """More of the object came."""
        if self.moved_bytes == 0:
            self.answered()
        self.moved_bytes += more_bytes

    def ended(self) -> None:
        """The last byte is there; an object of no bytes came with its end."""
        self.total_s = self._elapsed_s()
        self.first_byte_s = self.first_byte_s or self.total_s


def timed(
    request: Request,
    watch: Stopwatch,
    made: ObjectName,
    *,
    moved_bytes: int,
    sha256: str,
    flows: tuple[Flow, ...],
    complete: bool,
    status: str,
    answer_fields: Mapping[str, str] | None = None,
) -> Transfer:
    """The transfer of `made`, of which the receiver got so much."""
    return Transfer(
        application=request.application,
        direction=request.direction,
        size_bytes=request.size_bytes,
        moved_bytes=moved_bytes,
        seed=request.seed,
        connect_s=watch.connect_s,
        first_byte_s=watch.first_byte_s,
        total_s=watch.total_s,
        sha256=sha256,
        sha256_expected=made.sha256(),
        flows=flows,
        complete=complete,
        status=status,
        started_unix_ns=watch.started_unix_ns,
        answer_fields=answer_fields or {},
    )


def receipt(data: bytes) -> tuple[int, str]:
    """Received bytes and their SHA-256 as the server reports them; empty where the answer is not the server's."""
    try:
        report = UploadReport.parse(data)
    except MalformedMessageError:
        return 0, ""
    return report.received_bytes, report.sha256


@contextlib.contextmanager
def breaking_off(request: Request, watch: Stopwatch) -> Iterator[None]:
    """Say of a transfer that ends early which one it was, and how far it came."""
    try:
        yield
    except (OSError, http.client.HTTPException, EOFError, ftplib.Error) as error:
        way = "download" if request.direction is Direction.DOWN else "upload"
        detail = (getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__)[:200]
        came = f" after {watch.moved_bytes} of {request.size_bytes} bytes" if watch.moved_bytes else ""
        raise MeasurementError(
            f"the {request.application} {way} from port {request.port} broke off{came}: {detail}"
        ) from error
