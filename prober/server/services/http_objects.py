"""Objects, uploads and echoes over HTTP and HTTPS."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping

from pepscope.strict_reading import shown
from prober.errors import MalformedMessageError
from prober.host.tls import over_tls
from prober.protocol.application import Application
from prober.protocol.plain_requests import Target
from prober.server.context import ServiceContext
from prober.server.refusal import RefusedError
from prober.server.served_log import Entry
from prober.server.services.http_connection import HttpConnection, MalformedHeadError, Request
from prober.server.services.slow_reading import SlowReading
from prober.server.sessions import Session
from prober.server.sockets.connections import Connection, reset
from prober.server.sockets.kernel_state import await_acknowledged, last_tcp_info, saved_syn

#: What looks like a session's name, in a head that is not HTTP.
_SESSION = re.compile(rb"[a-z2-7]{26}")
#: No head of a reasonable size names more.
_MOST_NAMES = 20


def serve_http(context: ServiceContext) -> Callable[[Connection], None]:
    """The service of the plain HTTP ports."""
    return lambda connection: _Service(context, connection, is_secure=False).run()


def serve_https(context: ServiceContext) -> Callable[[Connection], None]:
    """The service of the HTTPS ports."""

    def serve(connection: Connection) -> None:
        secure(connection, context)
        _Service(context, connection, is_secure=True).run()

    return serve


def secure(connection: Connection, context: ServiceContext) -> None:
    """Put TLS on a connection, within the time for a head. Raises OSError."""
    connection.sock.settimeout(context.limits.head_s)
    sock = over_tls(context.tls, connection.sock, server_side=True, do_handshake_on_connect=False)
    connection.sock = sock
    sock.do_handshake()


class _AbortError(Exception):
    """The server resets this connection, as it was asked to."""


class _Service:
    def __init__(self, context: ServiceContext, connection: Connection, *, is_secure: bool) -> None:
        self._context, self._connection = context, connection
        self._is_secure = is_secure
        self._http = HttpConnection(connection.sock, context.limits, connection.accepted_s)
        self._syn = saved_syn(connection.sock)
        self._requests = 0

    def run(self) -> None:
        """Answer requests until the peer is done."""
        try:
            while (request := self._http.next_request()) is not None:
                if not self._answer(request):
                    break
                self._requests += 1
        except MalformedHeadError as error:
            self._answer_malformed(error)
        except _AbortError:
            reset(self._connection.sock)
            return
        self._http.linger()

    def _answer(self, request: Request) -> bool:
        """Answer one request; whether the connection can go on."""
        try:
            target = Target.parse(request.target)
            session = self._context.session(target.session, self._connection)
        except MalformedMessageError as error:
            return self._refuse(request, 404, str(error))
        except RefusedError as error:
            return self._refuse(request, error.status, str(error))
        entry = self._entry(session, request, target)
        ending = "stopped"
        state: Mapping[str, int] = {}
        try:
            match target.verb:
                case "objects" if request.method in ("GET", "HEAD"):
                    self._send_object(session, request, target, entry)
                case "uploads" if request.method in ("PUT", "POST"):
                    self._take_upload(session, request, target, entry)
                case "echo":
                    self._echo(session, request, entry)
                case _:
                    raise RefusedError(405, f"the method must be one of {target.verb}, got {shown(request.method)}")
            ending, state = await_acknowledged(self._connection.sock, self._context.limits.idle_s)
        except RefusedError as error:
            ending = "refused"
            return self._refuse(request, error.status, str(error))
        except _AbortError:
            ending = "aborted-by-server"
            raise
        except TimeoutError:
            ending = "idle"
            raise
        except OSError:
            ending = "aborted-by-peer"
            raise
        finally:
            entry.end(ending, last_tcp_info(self._connection.sock) or state)
        return ending == "finished"

    def _entry(self, session: Session, request: Request, target: Target) -> Entry:
        is_picture = target.object is not None and target.object.kind.is_picture
        plain = Application.HTTP_IMAGE if is_picture else Application.HTTP_DATA
        announced = request.header("content-length")
        size_bytes = int(announced) if announced.isascii() and announced.isdigit() and len(announced) < 19 else -1
        return Entry(
            session.log,
            Application.HTTPS if self._is_secure else plain,
            self._connection.peer,
            self._connection.local_port,
            request.method,
            str(target.object or target.name or target.verb),
            size_bytes=target.object.size_bytes if target.object is not None else size_bytes,
            request_head=request.head,
            syn=self._syn,
            accepted_s=self._connection.accepted_s,
            requests_before=self._requests,
        )

    def _send_object(self, session: Session, request: Request, target: Target, entry: Entry) -> None:
        wanted = target.object
        assert wanted is not None
        for _ in self._http.content():
            raise RefusedError(400, "a request for an object must have no content")
        if wanted.size_bytes > self._context.limits.object_bytes:
            raise RefusedError(413, f"an object must have at most {self._context.limits.object_bytes} bytes")
        pieces = wanted.pieces()
        first = next(pieces, b"")
        cache = f"public, max-age={target.cache_s}" if target.cache_s else "no-store"
        headers = [
            ("Content-Type", wanted.kind.content_type),
            ("Cache-Control", cache),
            _think_time(request),
        ]
        self._http.begin(200, headers, wanted.size_bytes)
        if request.method == "HEAD":
            self._http.finish()
            return
        piece = first
        while piece:
            if target.abort_after_bytes:
                piece = piece[: target.abort_after_bytes - entry.sent_bytes]
            session.take(len(piece))
            self._http.send(piece)
            entry.sent(piece)
            if target.abort_after_bytes and entry.sent_bytes >= target.abort_after_bytes:
                raise _AbortError
            piece = next(pieces, b"")
        self._http.finish()

    def _take_upload(self, session: Session, request: Request, target: Target, entry: Entry) -> None:
        reading = SlowReading(self._connection.sock, target.reading)
        for piece in self._http.content():
            session.take(len(piece))
            entry.received(piece)
            reading.pause_if_due(entry.received_bytes)
            if entry.received_bytes > self._context.limits.object_bytes:
                raise RefusedError(413, f"an upload must have at most {self._context.limits.object_bytes} bytes")
            if target.abort_after_bytes and entry.received_bytes >= target.abort_after_bytes:
                raise _AbortError
        self._http.answer(request, 200, _json_headers(), json.dumps(reading.report(entry).to_json()).encode())

    def _echo(self, session: Session, request: Request, entry: Entry) -> None:
        for piece in self._http.content():
            session.take(len(piece))
            entry.received(piece)
        headers = [("Content-Type", "application/octet-stream"), ("Cache-Control", "no-store"), _think_time(request)]
        entry.sent(request.head)
        self._http.answer(request, 200, headers, request.head)

    def _refuse(self, request: Request, status: int, sentence: str) -> bool:
        body = f"{sentence}\n".encode("utf-8", "replace")
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ]
        with contextlib.suppress(Exception):
            # An answer that has begun cannot be refused any more; closing the connection signals the error.
            self._http.answer(request, status, headers, body)
        return False

    def _answer_malformed(self, error: MalformedHeadError) -> None:
        """Echo a request to a client with a session: how it arrived is what an experiment measures."""
        names = _SESSION.findall(error.head)[:_MOST_NAMES]
        session = next(filter(None, (self._context.sessions.find(name.decode("ascii")) for name in names)), None)
        if session is None:
            self._http.refuse(error.status, str(error))
            self._http.linger()
            return
        entry = Entry(
            session.log,
            Application.HTTPS if self._is_secure else Application.HTTP_DATA,
            self._connection.peer,
            self._connection.local_port,
            "",
            "malformed",
            request_head=error.head,
            syn=self._syn,
            accepted_s=self._connection.accepted_s,
            requests_before=self._requests,
        )
        try:
            entry.sent(error.head)
            self._http.refuse_with(error.status, "application/octet-stream", error.head)
            self._http.linger()
        finally:
            entry.end("malformed", last_tcp_info(self._connection.sock))


def _json_headers() -> list[tuple[str, str]]:
    return [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


def _think_time(request: Request) -> tuple[str, str]:
    """How long the server itself took, for experiments that time answers."""
    return "X-Think-Time", f"{time.monotonic() - request.arrived_s:.6f}"
