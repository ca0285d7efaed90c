"""Transfers by a protocol unknown to middleboxes: one line with the request, then bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from prober.client.applications import Request
from prober.client.applications.stopwatch import Stopwatch, breaking_off, receipt, timed
from prober.client.transfer import SUFFIXES, Flow, Transfer
from prober.protocol.objects import ObjectKind, ObjectName
from prober.protocol.plain_requests import TcpRequest

if TYPE_CHECKING:
    import socket

    from prober.client.mobile_end import MobileEnd

_READ_BYTES = 1 << 16
_MOST_RECEIPT_BYTES = 1 << 16


def transfer(end: MobileEnd, request: Request) -> Transfer:
    """Move one object. Raises MeasurementError, OSError."""
    moved = ObjectName(ObjectKind(SUFFIXES[request.application]), request.size_bytes, request.seed)
    watch = Stopwatch()
    with breaking_off(request, watch), end.connect(request.port, prepare=request.prepare) as link:
        watch.connected()
        flow = Flow(link.getsockname()[1], request.port)
        exchange = _download if request.direction is Direction.DOWN else _upload
        moved_bytes, sha256 = exchange(end, request, link, watch, moved)
    return timed(
        request,
        watch,
        moved,
        moved_bytes=moved_bytes,
        sha256=sha256,
        flows=(flow,),
        complete=moved_bytes == request.size_bytes,
        status="closed",
    )


def _download(
    end: MobileEnd, request: Request, link: socket.socket, watch: Stopwatch, wanted: ObjectName
) -> tuple[int, str]:
    asked = TcpRequest(end.control.session, "download", wanted.size_bytes, wanted.seed, wanted.kind)
    link.sendall(asked.to_line())
    digest = hashlib.sha256()
    while watch.moved_bytes < wanted.size_bytes and (piece := link.recv(_READ_BYTES)):
        watch.moved(len(piece))
        digest.update(piece)
        if request.on_bytes is not None:
            request.on_bytes(watch.moved_bytes)
    watch.ended()
    return watch.moved_bytes, digest.hexdigest()


def _upload(
    end: MobileEnd, request: Request, link: socket.socket, watch: Stopwatch, sent: ObjectName
) -> tuple[int, str]:
    wanted = request.reading
    asked = TcpRequest(
        end.control.session,
        "upload",
        sent.size_bytes,
        pause_s=wanted.pause_s,
        after_bytes=wanted.after_bytes,
        receive_buffer_bytes=wanted.receive_buffer_bytes,
    )
    link.sendall(asked.to_line())
    given_bytes = 0
    for piece in sent.pieces():
        link.sendall(piece)
        given_bytes += len(piece)
        if request.on_bytes is not None:
            request.on_bytes(given_bytes)
    answer = b""
    while len(answer) < _MOST_RECEIPT_BYTES and not answer.endswith(b"\n") and (piece := link.recv(_READ_BYTES)):
        if not answer:
            watch.answered()
        answer += piece
    watch.ended()
    return receipt(answer)
