"""One HTTP request on a connection of the probe's own, its answer kept whole, for experiments that look at answers."""

from __future__ import annotations

import hashlib
import http.client
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from prober.errors import MeasurementError
from prober.experiment import Application, Flow, Json
from prober.intermediaries import added_to_answer, declared

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd

#: No answer that an experiment asks for is longer.
LONGEST_ANSWER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer as it arrived, with the coding it was sent in."""

    status: int
    size_bytes: int
    sha256: str
    #: The digest after undoing the content coding; that of the bytes as they came where there was none.
    decoded_sha256: str
    content_encoding: str
    content_type: str
    #: Header fields of the answer by which intermediaries declare themselves, and others that our server never sends.
    proxy_fields: tuple[str, ...]
    added_fields: tuple[str, ...]
    total_s: float
    mobile_port: int
    server_port: int

    @property
    def flow(self) -> Flow:
        """The connection that carried it."""
        return Flow(self.mobile_port, self.server_port)

    def to_mapping(self) -> dict[str, Json]:
        """As an archive keeps it."""
        return {**asdict(self), "proxy_fields": list(self.proxy_fields), "added_fields": list(self.added_fields)}


def fetch(end: MobileEnd, target: str, headers: Mapping[str, str] | None = None) -> Fetched:
    """GET `target` from the server's HTTP port. Raises MeasurementError where no whole answer comes, OSError."""
    port = end.port(Application.HTTP_DATA)
    started_s = time.monotonic()
    with end.connect(port) as link:
        mobile_port = link.getsockname()[1]
        connection = http.client.HTTPConnection(end.host, port)
        connection.sock = link
        try:
            connection.request("GET", target, headers={"Connection": "close", **(headers or {})})
            answer = connection.getresponse()
            body = answer.read(LONGEST_ANSWER_BYTES + 1)
        except http.client.HTTPException as error:
            raise MeasurementError(f"the answer to GET {_public(target)} is not whole HTTP: {error!r}") from None
    if len(body) > LONGEST_ANSWER_BYTES:
        raise MeasurementError(f"the answer to GET {_public(target)} is longer than {LONGEST_ANSWER_BYTES} bytes")
    coding = answer.getheader("Content-Encoding", "")
    names = [name.lower() for name, _ in answer.getheaders()]
    return Fetched(
        status=answer.status,
        size_bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        decoded_sha256=hashlib.sha256(_decoded(body, coding)).hexdigest(),
        content_encoding=coding,
        content_type=answer.getheader("Content-Type", ""),
        proxy_fields=tuple(declared(names)),
        added_fields=tuple(added_to_answer(names)),
        total_s=time.monotonic() - started_s,
        mobile_port=mobile_port,
        server_port=port,
    )


def _decoded(body: bytes, coding: str) -> bytes:
    """The body without its content coding; as it is where the coding is none that was asked for."""
    import zlib

    wbits = {"gzip": 31, "x-gzip": 31, "deflate": 15}.get(coding.strip().lower())
    if wbits is None:
        return body
    try:
        return zlib.decompressobj(wbits).decompress(body, LONGEST_ANSWER_BYTES)
    except zlib.error as error:
        raise MeasurementError(f"the answer says that it is coded with {coding}, but it is not: {error}") from None


def _public(target: str) -> str:
    """The target without the session, which is nobody's business."""
    parts = target.split("/")
    return "/".join("..." if place == 2 else part for place, part in enumerate(parts))
