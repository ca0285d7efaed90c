"""Transfers by HTTP/1.1: GET of an object, PUT of one; one connection each."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Callable
from typing import TYPE_CHECKING

import pepscope
from pepscope.captures.direction import Direction
from prober.client.applications import Request
from prober.client.applications.stopwatch import Stopwatch, breaking_off, receipt, timed
from prober.client.transfer import SUFFIXES, Flow, Transfer
from prober.protocol.objects import ObjectKind, ObjectName
from prober.protocol.plain_requests import upload_target

if TYPE_CHECKING:
    import socket

    from prober.client.mobile_end import MobileEnd

#: What is read of an answer that is no object; a receipt takes about 100 bytes.
_MOST_RECEIPT_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_MOST_FIELDS = 64
_LONGEST_FIELD = 300


def transfer(
    end: MobileEnd, request: Request, secure: Callable[[socket.socket], socket.socket] | None = None
) -> Transfer:
    """Move one object; `secure` makes a connection one of TLS. Raises MeasurementError, OSError."""
    moved = ObjectName(ObjectKind(SUFFIXES[request.application]), request.size_bytes, request.seed)
    watch = Stopwatch()
    with breaking_off(request, watch), end.connect(request.port, prepare=request.prepare) as plain:
        watch.connected()
        flow = Flow(plain.getsockname()[1], request.port)
        connection = http.client.HTTPConnection(end.host, request.port)
        connection.sock = plain if secure is None else secure(plain)
        try:
            exchange = _download if request.direction is Direction.DOWN else _upload
            status, moved_bytes, sha256, is_whole, fields = exchange(end, request, connection, watch, moved)
        finally:
            connection.close()
    return timed(
        request,
        watch,
        moved,
        moved_bytes=moved_bytes,
        sha256=sha256,
        flows=(flow,),
        complete=is_whole and 200 <= status < 300,
        status=str(status),
        answer_fields=fields,
    )


_Outcome = tuple[int, int, str, bool, dict[str, str]]


def _download(
    end: MobileEnd, request: Request, connection: http.client.HTTPConnection, watch: Stopwatch, wanted: ObjectName
) -> _Outcome:
    target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind, cache_s=request.cache_s)
    _begin(connection, "GET", target)
    connection.endheaders()
    answer = connection.getresponse()
    announced = answer.length
    digest = hashlib.sha256()
    while piece := answer.read1(_READ_BYTES):
        watch.moved(len(piece))
        digest.update(piece)
        if request.on_bytes is not None:
            request.on_bytes(watch.moved_bytes)
    watch.ended()
    is_whole = announced is None or watch.moved_bytes == announced
    return answer.status, watch.moved_bytes, digest.hexdigest(), is_whole, _fields(answer)


def _upload(
    end: MobileEnd, request: Request, connection: http.client.HTTPConnection, watch: Stopwatch, sent: ObjectName
) -> _Outcome:
    _begin(connection, "PUT", upload_target(end.control.session, str(sent), reading=request.reading))
    connection.putheader("Content-Type", sent.kind.content_type)
    connection.putheader("Content-Length", str(sent.size_bytes))
    connection.endheaders()
    given_bytes = 0
    for piece in sent.pieces():
        connection.send(piece)
        given_bytes += len(piece)
        if request.on_bytes is not None:
            request.on_bytes(given_bytes)
    answer = connection.getresponse()
    watch.answered()
    moved_bytes, sha256 = receipt(answer.read(_MOST_RECEIPT_BYTES))
    watch.ended()
    return answer.status, moved_bytes, sha256, moved_bytes == sent.size_bytes, _fields(answer)


def _begin(connection: http.client.HTTPConnection, method: str, target: str) -> None:
    connection.putrequest(method, target, skip_accept_encoding=True)
    connection.putheader("User-Agent", f"pepscope/{pepscope.__version__}")
    connection.putheader("Accept", "*/*")
    connection.putheader("Connection", "close")


def _fields(answer: http.client.HTTPResponse) -> dict[str, str]:
    pairs = answer.getheaders()[:_MOST_FIELDS]
    return {name.lower()[:_LONGEST_FIELD]: value[:_LONGEST_FIELD] for name, value in pairs}
