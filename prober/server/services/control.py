"""The control channel: HTTP and JSON over TLS, for clients with a key, whose token is checked before anything else."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pepscope.errors import PepscopeError
from pepscope.strict_reading import read_as, shown
from prober.errors import MalformedMessageError
from prober.host import kernel_clock
from prober.protocol.control_messages import (
    MOST_MESSAGE_BYTES,
    REQUEST_FIELD,
    SESSION_FIELD,
    About,
    ArchiveOffer,
    CaptureRequest,
    Clock,
    HoldRequest,
    SessionGrant,
    SilenceRequest,
)
from prober.protocol.json_documents import parse_json
from prober.server.archives.archive_store import ArchiveStore
from prober.server.context import ServiceContext
from prober.server.instruments.session_instruments import Instruments
from prober.server.keys.client_key import ClientKey
from prober.server.keys.key_ring import KeyRing
from prober.server.refusal import RefusedError
from prober.server.services.answers import Answers
from prober.server.services.archive_parts import ARCHIVE_PATH, offer_archive, take_part
from prober.server.services.http_connection import HttpConnection, MalformedHeadError, Request
from prober.server.services.http_objects import secure
from prober.server.sessions import Session
from prober.server.sockets.connections import Connection
from prober.server.sockets.networks import networks_of

logger = logging.getLogger("prober")

_MOST_BODY_BYTES = 64 << 10
_REQUEST_NAME = re.compile(r"[0-9a-f]{16}")
_CAPTURE = re.compile(r"/v1/captures/([0-9a-f]{16})(/finish)?")
_LEASE = re.compile(r"/v1/(holds|silences)/([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Control:
    """The control channel's service."""

    context: ServiceContext
    instruments: Instruments
    about: About
    keys: KeyRing
    answers: Answers
    archives: ArchiveStore

    def serve(self, connection: Connection) -> None:
        """Answer requests until the peer is done."""
        secure(connection, self.context)
        http = HttpConnection(connection.sock, self.context.limits, connection.accepted_s)
        try:
            while (request := http.next_request()) is not None:
                try:
                    key = self._key(request)
                except RefusedError as error:
                    if self.context.refusals.take(networks_of(connection.address)[0]):
                        _answer(http, request, error.status, _error(str(error)), is_last=True)
                    self.context.complaints.complain("wrong-token", str(error), peer=connection.peer)
                    break
                if not self._serve(_Asked(self, connection, request, http, key)):
                    break
        except MalformedHeadError as error:
            http.refuse(error.status, "this is not HTTP/1.1")
        http.linger()

    def _key(self, request: Request) -> ClientKey:
        """Whose request it is. Raises RefusedError."""
        scheme, _, token = request.header("authorization").partition(" ")
        return self.keys.find(token if scheme.lower() == "bearer" else "")

    def _serve(self, asked: _Asked) -> bool:
        """Answer one request; whether the connection can go on."""
        http, request = asked.http, asked.request
        try:
            self.context.know(asked.connection, asked.key)
            part = ARCHIVE_PATH.fullmatch(asked.path)
            if request.method == "PUT" and part:
                status, data = asked.answer(b"", lambda: asked.take_part(part[1]))
                _answer(http, request, status, data)
                return True
            body = http.small_content(_MOST_BODY_BYTES)
            capture = _CAPTURE.fullmatch(asked.path)
            if request.method == "GET" and capture and not capture[2]:
                return asked.send_capture(capture[1])
            name = request.header(REQUEST_FIELD)
            if request.method in ("POST", "DELETE") and _REQUEST_NAME.fullmatch(name):
                # Each key has names of its own: nobody gets another's answer.
                status, data = self.answers.once(f"{asked.key.token_sha256} {name}", lambda: asked.answer(body))
            else:
                status, data = asked.answer(body)
        except RefusedError as error:
            _answer(http, request, error.status, _error(str(error)), is_last=True)
            return False
        _answer(http, request, status, data)
        return True


class _Asked:
    """One request, understood step by step."""

    def __init__(
        self, control: Control, connection: Connection, request: Request, http: HttpConnection, key: ClientKey
    ) -> None:
        self.request, self.http, self.key = request, http, key
        self.path, _, query = request.target.partition("?")
        self._query = query
        self._control, self.connection = control, connection
        # Within a /64 a client changes its address as it likes (RFC 8981).
        self._address = networks_of(connection.address)[0]

    def answer(self, body: bytes, do: Callable[[], dict[str, Any]] | None = None) -> tuple[int, bytes]:
        """Status and JSON, also for an invalid request."""
        try:
            document = do() if do is not None else self._do(body)
        except MalformedMessageError as error:
            return 400, _error(str(error))
        except RefusedError as error:
            return error.status, _error(str(error))
        except (PepscopeError, OSError) as error:
            return 500, _error(str(error))
        return 200, json.dumps(document).encode()

    def _do(self, body: bytes) -> dict[str, Any]:
        control, sessions = self._control, self._control.context.sessions
        match self.request.method, self.path:
            case "GET", "/v1/about":
                return control.about.to_json()
            case "GET", "/v1/clock":
                return Clock(time.time_ns(), time.monotonic_ns(), bool(kernel_clock.is_synchronised())).to_json()
            case "POST", "/v1/sessions":
                session = self._opened()
                sessions.renew(session)
                return SessionGrant(session.name, control.context.limits.session_s).to_json()
            case "DELETE", "/v1/sessions":
                session = self._session()
                sessions.end(session)
                control.instruments.end_of(session)
                _log("session-ended", session)
                return {}
            case "POST", "/v1/archives":
                offered = read_as(ArchiveOffer, parse_json(body, "the request"), MalformedMessageError)
                return offer_archive(control.archives, self.key, offered).to_json()
            case "GET", "/v1/served":
                return self._session().log.page(self._whole("after")).to_json()
            case "POST", "/v1/captures" | "/v1/holds" | "/v1/silences":
                return self._begin(parse_json(body, "the request"))
            case "DELETE", path if archive := ARCHIVE_PATH.fullmatch(path):
                control.archives.withdraw(self.key, archive[1])
                return {}
        return self._continue(control.instruments)

    def _begin(self, document: Mapping[str, Any]) -> dict[str, Any]:
        session, instruments = self._session(), self._control.instruments
        limits = self._control.context.limits
        match self.path:
            case "/v1/captures":
                capture = read_as(CaptureRequest, document, MalformedMessageError)
                name = instruments.start_capture(session, self.connection.local_address, capture.snap_bytes)
                _log("capture", session, label=shown(capture.label), capture=name)
                return {"capture": name}
            case "/v1/silences":
                silence = read_as(SilenceRequest, document, MalformedMessageError)
                lease_s = limits.lease_s if silence.lease_s is None else silence.lease_s
                name = instruments.begin_silence(session, silence.port, lease_s)
                _log("silence", session, port=silence.port, lease_s=lease_s)
                return {"silence": name}
        hold = read_as(HoldRequest, document, MalformedMessageError)
        if hold.delay_s > limits.hold_delay_s:
            raise MalformedMessageError(f"delay_s must be at most {limits.hold_delay_s:g}, got {hold.delay_s:g}")
        lease_s = limits.lease_s if hold.lease_s is None else hold.lease_s
        name = instruments.begin_hold(session, hold.port, hold.delay_s, lease_s)
        _log("hold", session, port=hold.port, delay_s=hold.delay_s, lease_s=lease_s)
        return {"hold": name}

    def _continue(self, instruments: Instruments) -> dict[str, Any]:
        """The answer about a lease that began earlier."""
        capture, lease = _CAPTURE.fullmatch(self.path), _LEASE.fullmatch(self.path)
        match self.request.method:
            case "POST" if capture and capture[2]:
                return instruments.finish_capture(self._session(), capture[1]).to_json()
            case "DELETE" if capture and not capture[2]:
                instruments.delete_capture(self._session(), capture[1])
                return {}
            case "DELETE" if lease and lease[1] == "holds":
                return instruments.end_hold(self._session(), lease[2]).to_json()
            case "DELETE" if lease:
                instruments.end_silence(self._session(), lease[2])
                return {}
        raise RefusedError(404, f"the control channel has no {shown(self.request.method)} {shown(self.path)}")

    def take_part(self, sha256: str) -> dict[str, Any]:
        """Store a part of an archive; what is there of it then. Raises RefusedError, MalformedMessageError, OSError."""
        site = networks_of(self.connection.address)[1]
        offset = self._whole("offset")
        return take_part(self._control.archives, self.key, sha256, offset, self.http.content(), site).to_json()

    def send_capture(self, name: str) -> bool:
        """Send a packed capture; whether the connection can go on."""
        try:
            capture = self._control.instruments.captures.find(self._session(), name)
            offset = self._whole("offset")
            summary = capture.finish()
        except (RefusedError, MalformedMessageError) as error:
            status = error.status if isinstance(error, RefusedError) else 400
            _answer(self.http, self.request, status, _error(str(error)))
            return True
        self.http.begin(200, [("Content-Type", "application/gzip")], max(0, summary.packed_bytes - offset))
        for piece in capture.read(offset):
            self.http.send(piece)
        self.http.finish()
        return True

    def _session(self) -> Session:
        """The session that the request belongs to, renewed. Raises RefusedError."""
        sessions = self._control.context.sessions
        session = sessions.find_own(self.request.header(SESSION_FIELD), self.key, self._address)
        sessions.renew(session)
        return session

    def _opened(self) -> Session:
        """The session that is asked for again, or a new one. Raises RefusedError."""
        sessions = self._control.context.sessions
        with contextlib.suppress(RefusedError):
            return sessions.find_own(self.request.header(SESSION_FIELD), self.key, self._address)
        session = sessions.open(self.key, self._address)
        _log("session", session, peer=self.connection.peer, key=self.key.name)
        return session

    def _whole(self, name: str) -> int:
        text = dict(parse_qsl(self._query)).get(name, "0")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise MalformedMessageError(f"{name} must be a whole number, got {shown(text)}")
        return int(text)


def _log(event: str, session: Session, **fields: object) -> None:
    # Only the beginning: a reader of the log must not be able to use the session.
    logger.info(event, extra={"fields": {"event": event, "session": session.name[:6], **fields}})


def _error(sentence: str) -> bytes:
    return json.dumps({"error": sentence}).encode()


def _answer(http: HttpConnection, request: Request, status: int, data: bytes, *, is_last: bool = False) -> None:
    if len(data) > MOST_MESSAGE_BYTES:
        status, data = 500, _error("the answer would be longer than a message may be")
    headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
    http.answer(request, status, [*headers, ("Connection", "close")] if is_last else headers, data)
