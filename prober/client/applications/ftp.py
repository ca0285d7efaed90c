"""Transfers by FTP in passive mode (RFC 959; over IPv6 extended, RFC 2428): RETR of an object, STOR of one."""

from __future__ import annotations

import ftplib
import hashlib
import socket
import time
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from prober.client.applications import Request
from prober.client.applications.stopwatch import Stopwatch, breaking_off, timed
from prober.client.transfer import SUFFIXES, Flow, Transfer
from prober.protocol.objects import ObjectKind, ObjectName

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd

_READ_BYTES = 1 << 16
#: The server's log may be written just after its reply to the client.
_RECEIPT_TRIES = 5
_RECEIPT_WAIT_S = 0.2


def transfer(end: MobileEnd, request: Request) -> Transfer:
    """Move one object. Raises MeasurementError, OSError, ControlError where no receipt can be had."""
    moved = ObjectName(ObjectKind(SUFFIXES[request.application]), request.size_bytes, request.seed)
    is_download = request.direction is Direction.DOWN
    before = 0 if is_download else end.control.last_served_number()
    watch = Stopwatch()
    with breaking_off(request, watch), end.connect(request.port, prepare=request.prepare) as link:
        control = _Session(link)
        try:
            control.login(end.control.session, "pepscope")
            control.voidcmd("TYPE I")
            _, data_port = control.makepasv()
            watch = Stopwatch()
            with breaking_off(request, watch), end.connect(data_port, prepare=request.prepare) as data:
                watch.connected()
                flows = (Flow(data.getsockname()[1], data_port), Flow(link.getsockname()[1], request.port, "control"))
                control.sendcmd(f"{'RETR' if is_download else 'STOR'} {moved}")
                sha256 = _take(request, data, watch) if is_download else _give(request, data, moved)
                if is_download:
                    watch.ended()
            # Only now, since closing the data connection signals the end of an upload.
            status = control.voidresp()[:3]
            if not is_download:
                watch.ended()
            control.quit()
        finally:
            control.close()
    moved_bytes = watch.moved_bytes
    if not is_download:
        moved_bytes, sha256 = _receipt(end, before, str(moved))
    return timed(
        request,
        watch,
        moved,
        moved_bytes=moved_bytes,
        sha256=sha256,
        flows=flows,
        complete=status.startswith("2") and moved_bytes == request.size_bytes,
        status=status,
    )


class _Session(ftplib.FTP):
    """ftplib over a control connection that is there already."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__()
        self.sock, self.af = link, link.family
        self.host, self.port = link.getpeername()[:2]
        self.file = link.makefile("r", encoding="utf-8", errors="replace")
        try:
            self.welcome = self.getresp()
        except BaseException:
            self.close()
            raise


def _take(request: Request, data: socket.socket, watch: Stopwatch) -> str:
    digest = hashlib.sha256()
    while piece := data.recv(_READ_BYTES):
        watch.moved(len(piece))
        digest.update(piece)
        if request.on_bytes is not None:
            request.on_bytes(watch.moved_bytes)
    return digest.hexdigest()


def _give(request: Request, data: socket.socket, sent: ObjectName) -> str:
    given_bytes = 0
    for piece in sent.pieces():
        data.sendall(piece)
        given_bytes += len(piece)
        if request.on_bytes is not None:
            request.on_bytes(given_bytes)
    # Another holder of a descriptor of this connection would keep its close from reaching the peer.
    data.shutdown(socket.SHUT_WR)
    return ""


def _receipt(end: MobileEnd, before: int, name: str) -> tuple[int, str]:
    """What the server got, by its own log: FTP itself has no receipt."""
    for _ in range(_RECEIPT_TRIES):
        for entry in end.control.served(before):
            if entry.verb == "STOR" and entry.object == name and entry.is_over:
                return entry.received_bytes, entry.sha256
        time.sleep(_RECEIPT_WAIT_S)
    return 0, ""
