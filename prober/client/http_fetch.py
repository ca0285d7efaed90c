"""One HTTP request on its own connection, with the complete answer, for experiments that examine answers."""

from __future__ import annotations

import hashlib
import http.client
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from prober.client.transfer import Flow
from prober.errors import MeasurementError
from prober.protocol.application import Application
from prober.protocol.header_fields import added_to_answer, declared

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd

#: No answer that an experiment asks for is longer.
LONGEST_ANSWER_BYTES = 16 << 20


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it arrived, with the coding it was sent in."""

    status: int
    size_bytes: int
    sha256: str
    #: The digest after undoing the content coding; that of the bytes as they came where there was none.
    decoded_sha256: str
    content_encoding: str
    content_type: str = ""
    #: Header fields of the answer by which intermediaries declare themselves, and others that our server never sends.
    proxy_fields: tuple[str, ...] = ()
    added_fields: tuple[str, ...] = ()
    total_s: float = 0.0
    mobile_port: int = 0
    server_port: int = 0

    @property
    def flow(self) -> Flow:
        """The connection that carried it."""
        return Flow(self.mobile_port, self.server_port)


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
            raise MeasurementError(f"the answer to GET {_public(target)} must be complete HTTP: {error!r}") from None
    if len(body) > LONGEST_ANSWER_BYTES:
        raise MeasurementError(f"the answer to GET {_public(target)} must have at most {LONGEST_ANSWER_BYTES} bytes")
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
        raise MeasurementError(f"the answer must have the content coding that it declares, {coding}: {error}") from None


def _public(target: str) -> str:
    """The target without the session, which is a secret."""
    parts = target.split("/")
    return "/".join("..." if place == 2 else part for place, part in enumerate(parts))
