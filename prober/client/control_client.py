"""The mobile's side of the control channel: HTTP and JSON over TLS to the one server whose certificate is pinned."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import secrets
import ssl
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pepscope.strict_reading import shown
from prober.errors import ControlError, MalformedMessageError, UnreachableError
from prober.protocol.control_messages import (
    MOST_MESSAGE_BYTES,
    REQUEST_FIELD,
    SESSION_FIELD,
    About,
    CaptureSummary,
    Clock,
    HoldReport,
    Key,
    Refusal,
    Served,
    ServedPage,
    SessionGrant,
)
from prober.protocol.json_documents import parse_json

T = TypeVar("T")

#: Between two tries, doubling from the first to the second.
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
#: How long the server may take to answer; it finishes captures and installs rules in a second or two.
ANSWER_S = 20.0
#: The mobile may have all bytes before the server has the last acknowledgement, which takes half a round trip.
SETTLE_S = 2.0
#: A capture is read in pieces of this size, and unpacked into at most the announced size.
PIECE_BYTES = 1 << 16

_SESSION_OVER = 410


@dataclass(slots=True)
class ServerHold:
    """An ACK hold at the server; `report` is there once it ended."""

    name: str
    report: HoldReport | None = None


class ControlClient:
    """Asks the server for what a measurement needs at its end.

    Every method raises ControlError where the server refuses or answers what cannot be understood, and
    UnreachableError where it did not answer for `patience_s`; shorter interruptions only take time, and asking again
    does nothing twice. Not for several threads at once.
    """

    def __init__(
        self, host: str, port: int, key: Key | str, *, patience_s: float = 120.0, answer_s: float = ANSWER_S
    ) -> None:
        """Nothing is sent yet. `host` is a name or an address. Raises MalformedMessageError for a key that is none."""
        self._key = Key.parse(key) if isinstance(key, str) else key
        self.host, self.port = host, port
        self._patience_s, self._answer_s = patience_s, answer_s
        self._connection: _PinnedConnection | None = None
        self._grant: SessionGrant | None = None
        self._renewed_s = 0.0
        self._is_closed = False

    def about(self) -> About:
        """What the server is and can."""
        return About.from_json(self.ask("GET", "about"))

    @property
    def session(self) -> str:
        """The name of a session that lives; opened when first asked for, renewed and replaced when need be."""
        if self._grant is None or time.monotonic() - self._renewed_s > self._grant.expires_s / 3:
            self._grant = SessionGrant.from_json(self.ask("POST", "sessions"))
            self._renewed_s = time.monotonic()
        return self._grant.session

    def start_capture(self, label: str, snap_bytes: int) -> str:
        """Begin to capture at the server; the capture's name."""
        return self._begin("captures", {"label": label, "snap_bytes": snap_bytes}, "capture")

    def finish_capture(self, capture: str) -> CaptureSummary:
        """End a capture; what it holds."""
        return CaptureSummary.from_json(self.ask("POST", f"captures/{capture}/finish", {}))

    def fetch_capture(self, capture: str, path: str | Path) -> CaptureSummary:
        """End a capture where that is still to be done, and write it to `path`. Raises OSError too.

        The file exists only if it is complete by the server's digest.
        """
        summary = self.finish_capture(capture)
        path = Path(path)
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file:
                _Unpacking(summary, file.write).fill(lambda offset: self._packed(capture, offset))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return summary

    def delete_capture(self, capture: str) -> None:
        """Have the server delete a capture."""
        self.ask("DELETE", f"captures/{capture}")

    @contextlib.contextmanager
    def hold_acks(self, port: int, delay_s: float, lease_s: float) -> Iterator[ServerHold]:
        """Have the server hold back its ACKs on connections to its `port`; it ends by itself after `lease_s`."""
        hold = ServerHold(self._begin("holds", {"port": port, "delay_s": delay_s, "lease_s": lease_s}, "hold"))
        try:
            yield hold
        except BaseException:
            # The lease ends it where the server cannot be reached; the first error is the one to report.
            with contextlib.suppress(ControlError):
                self.ask("DELETE", f"holds/{hold.name}")
            raise
        hold.report = HoldReport.from_json(self.ask("DELETE", f"holds/{hold.name}"))

    @contextlib.contextmanager
    def silence(self, port: int, lease_s: float) -> Iterator[None]:
        """Have the server leave SYNs to `port` unanswered; connections that are there go on."""
        silence = self._begin("silences", {"port": port, "lease_s": lease_s}, "silence")
        try:
            yield
        except BaseException:
            with contextlib.suppress(ControlError):
                self.ask("DELETE", f"silences/{silence}")
            raise
        self.ask("DELETE", f"silences/{silence}")

    def served(self, after: int = 0, settle_s: float = SETTLE_S) -> list[Served]:
        """All that began at the server in this session with numbers above `after`, as it saw it.

        What is under way may end for up to `settle_s`; what then still is, is given as it is (`is_over`).
        """
        deadline_s = time.monotonic() + settle_s
        while True:
            entries = self._all_served(after)
            if all(entry.is_over for entry in entries) or time.monotonic() >= deadline_s:
                return entries
            time.sleep(min(FIRST_PAUSE_S, settle_s))

    def last_served_number(self) -> int:
        """The number of the last entry so far, for `served` later."""
        return self._served_page(1 << 62).last

    def clock(self) -> Clock:
        """The server's clocks."""
        return Clock.from_json(self.ask("GET", "clock"))

    def close(self) -> None:
        """End the session and the connection, for good; the server would end both by itself. Raises nothing."""
        if self._grant is not None and not self._is_closed:
            with contextlib.suppress(ControlError, OSError, http.client.HTTPException):
                self._exchange("DELETE", "sessions", None, secrets.token_hex(8))
        self._grant = None
        self._disconnect()
        self._is_closed = True

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all_served(self, after: int) -> list[Served]:
        entries: list[Served] = []
        while True:
            page = self._served_page(entries[-1].number if entries else after)
            entries += page.entries
            if not page.entries or page.entries[-1].number >= page.last:
                return entries

    def _served_page(self, after: int) -> ServedPage:
        return ServedPage.from_json(self._ask_in_session("GET", f"served?after={after}"))

    def _begin(self, what: str, body: Mapping[str, Any], field: str) -> str:
        """Ask for something that belongs to the session; its name. A session that is over is replaced once."""
        try:
            answer = self._ask_in_session("POST", what, body)
        except _SessionOverError:
            answer = self._ask_in_session("POST", what, body)
        name = answer.get(field)
        if not isinstance(name, str) or not name.isalnum() or len(name) > 100:
            raise MalformedMessageError(f"{field} must be letters and digits, 100 at most, got {shown(name)}")
        return name

    def _ask_in_session(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Ask for something that only a session can have; the session goes along in the header."""
        assert self.session
        return self.ask(method, path, body)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The answer to one message below /v1/."""
        name = secrets.token_hex(8)
        return parse_json(self._patiently(lambda: self._exchange(method, path, body, name)), "the server's answer")

    def send_part(self, path: str, part: bytes) -> Mapping[str, Any]:
        """The answer to a piece of a file, sent once: raises UnreachableError as soon as the connection breaks off."""
        try:
            data = self._exchange("PUT", path, part, secrets.token_hex(8))
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            raise UnreachableError(f"the server at {self.host} port {self.port}: {_reason(error)}") from None
        return parse_json(data, "the server's answer")

    def _packed(self, capture: str, offset: int) -> Iterator[bytes]:
        """The packed capture from `offset`, as far as the connection lasts."""
        response = self._patiently(lambda: self._respond("GET", f"captures/{capture}?offset={offset}", None, "0"))
        try:
            while piece := response.read(PIECE_BYTES):
                yield piece
        except (OSError, http.client.HTTPException):
            self._disconnect()

    def _patiently(self, attempt: Any) -> Any:
        """Try until it works, with growing pauses, for as long as patience lasts."""
        deadline_s = time.monotonic() + self._patience_s
        pause_s = FIRST_PAUSE_S
        while True:
            was_kept = self._connection is not None
            try:
                return attempt()
            except (OSError, http.client.HTTPException) as error:
                self._disconnect()
                if was_kept and not isinstance(error, TimeoutError | _LaterError):
                    # The server closes idle connections; that is no failure of the path.
                    continue
                if time.monotonic() + pause_s > deadline_s:
                    raise UnreachableError(
                        f"the server at {self.host} port {self.port} did not answer for {self._patience_s:g} s: "
                        f"{_reason(error)}"
                    ) from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | bytes | None, name: str) -> bytes:
        response = self._respond(method, path, body, name)
        data = response.read(MOST_MESSAGE_BYTES + 1)
        if len(data) > MOST_MESSAGE_BYTES:
            self._disconnect()
            raise MalformedMessageError(f"the server's answer must have at most {MOST_MESSAGE_BYTES} bytes")
        return data

    def _respond(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, name: str
    ) -> http.client.HTTPResponse:
        """The head of a successful answer. Raises the refusal, or OSError and HTTPException where no answer arrives."""
        if self._is_closed:
            raise ControlError("the control channel is closed")
        if self._connection is None:
            self._connection = _PinnedConnection(self.host, self.port, self._key.fingerprint, self._answer_s)
        headers = {"Authorization": f"Bearer {self._key.token}", REQUEST_FIELD: name}
        if self._grant is not None:
            headers[SESSION_FIELD] = self._grant.session
        data = json.dumps(body).encode() if isinstance(body, Mapping) else body
        if data is not None:
            headers["Content-Type"] = "application/json" if isinstance(body, Mapping) else "application/octet-stream"
        self._connection.request(method, f"/v1/{path}", data, headers)
        response = self._connection.getresponse()
        if self._grant is not None:
            self._renewed_s = time.monotonic()
        if response.status // 100 != 2:
            raise self._refusal(response)
        return response

    def _refusal(self, response: http.client.HTTPResponse) -> Exception:
        data = response.read(MOST_MESSAGE_BYTES)
        try:
            sentence = Refusal.from_json(parse_json(data, "the refusal")).error
        except MalformedMessageError:
            sentence = f"the server answered {response.status} and did not say why"
        if response.status == _SESSION_OVER:
            self._grant = None
            return _SessionOverError(sentence)
        if response.status in (429, 503):
            # Too many at once, or not yet: worth asking again.
            return _LaterError(sentence)
        return ControlError(sentence)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class _PinnedConnection(http.client.HTTPSConnection):
    """A connection to the host with the pinned certificate; the standard library, too, reconnects by `connect`."""

    def __init__(self, host: str, port: int, fingerprint: str, timeout_s: float) -> None:
        # The certificate is the server's own: it is known by its fingerprint, not by a signature or a name.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        super().__init__(host, port, timeout=timeout_s, context=tls)
        self._fingerprint = fingerprint

    def connect(self) -> None:
        """Connect, and check the certificate before the first message. Raises ControlError, OSError."""
        where = f"{self.host} port {self.port}"
        try:
            super().connect()
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            # The path broke off in the handshake.
            self.close()
            raise
        except ssl.SSLError as error:
            self.close()
            raise ControlError(
                f"{where} must offer TLS as the server's control channel does: {_reason(error)}"
            ) from None
        certificate = self.sock.getpeercert(binary_form=True) or b""
        if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), self._fingerprint):
            self.close()
            raise ControlError(
                f"the host that answers at {where} has another certificate than the key names: the key is another "
                "server's, or a middlebox terminates TLS"
            )


class _SessionOverError(ControlError):
    """The session ended, at the server's end."""


class _LaterError(OSError):
    """The server asks for patience."""


class _Unpacking:
    """A packed capture on its way into a file, however many connections that takes."""

    def __init__(self, summary: CaptureSummary, write: Any) -> None:
        self._summary = summary
        self._write = write
        self._unpacker = zlib.decompressobj(wbits=31)
        self._digest = hashlib.sha256()
        self._taken_bytes = self._made_bytes = 0

    def fill(self, pieces_from: Any) -> None:
        """Take pieces until all are there. Raises MalformedMessageError for what is not what was announced."""
        while self._taken_bytes < self._summary.packed_bytes:
            before = self._taken_bytes
            for piece in pieces_from(self._taken_bytes):
                self._take(piece)
            if self._taken_bytes == before:
                raise MalformedMessageError("the server sent less of a capture than it announced")
        if self._digest.hexdigest() != self._summary.sha256 or not self._unpacker.eof:
            raise MalformedMessageError("the capture that arrived must be equal to the server's")

    def _take(self, piece: bytes) -> None:
        self._taken_bytes += len(piece)
        room = self._summary.size_bytes - self._made_bytes
        try:
            made = self._unpacker.decompress(piece, room + 1)
        except zlib.error:
            raise MalformedMessageError("the capture that arrived is not compressed as the server announced") from None
        if len(made) > room or self._unpacker.unconsumed_tail or self._taken_bytes > self._summary.packed_bytes:
            raise MalformedMessageError("the server sent more of a capture than it announced")
        self._made_bytes += len(made)
        self._digest.update(made)
        self._write(made)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
