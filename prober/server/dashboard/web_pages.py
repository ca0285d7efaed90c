"""The dashboard's HTTP: which page a request gets, and who may see it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, unquote

from pepscope.plugins import writer
from prober.server.archives.stored_archive import ArchiveRecord
from prober.server.dashboard.judged_archives import JudgedArchives
from prober.server.dashboard.readers import Readers
from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.services.http_connection import HttpConnection, Request
from prober.server.sockets.networks import networks_of

COOKIE = "pepscope-login"
#: A form with one key.
_MOST_FORM_BYTES = 4096
_STORED = re.compile(r"/(runs|archives)/([A-Za-z0-9][A-Za-z0-9._-]{0,39})/([0-9a-f]{64})")
_PIECE_BYTES = 1 << 16

#: Our own pages run no script at all. A run's page does; it is given an origin of its own, so that nothing in an
#: archive could act as the reader even if it got into the page.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_RUN_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: all of its content, or a file."""

    status: int
    content: bytes | Path
    content_type: str = "text/html; charset=utf-8"
    headers: Sequence[tuple[str, str]] = ()
    policy: str = _PAGE_POLICY


@dataclass(frozen=True, slots=True)
class WebPages:
    """Answers requests; used by many threads."""

    judged: JudgedArchives
    readers: Readers
    #: Whether the browser comes over TLS.
    is_secure: bool

    def serve(self, http: HttpConnection, address: str) -> None:
        """Answer requests until the peer is done. Raises OSError, RefusedError for what is no HTTP."""
        while (request := http.next_request()) is not None:
            try:
                response = self.answer(request, http.small_content(_MOST_FORM_BYTES), address)
            except RefusedError as error:
                response = self._message(error.status, "refused", f"{_sentence(str(error))}")
            self._send(http, request, response)

    def answer(self, request: Request, body: bytes, address: str) -> Response:
        """What a request gets. Raises RefusedError, ServerError, OSError."""
        path, _, _ = request.target.partition("?")
        match request.method, path:
            case "POST", "/login":
                return self._log_in(body, address)
            case "POST", "/logout":
                self.readers.log_out(self._login(request))
                return self._redirect("/login", self._cookie("", 0))
            case (("GET" | "HEAD"), "/login"):
                return self._page("dashboard-login", 200)
            case (("GET" | "HEAD"), _):
                reader = self.readers.find(self._login(request))
                return self._redirect("/login") if reader is None else self._read(path, reader)
        raise RefusedError(405, f"the dashboard is read only; it has no {request.method[:20]!a}")

    def _read(self, path: str, reader: ClientKey) -> Response:
        """A page for someone who is logged in."""
        only = None if reader.reads_all else reader.name
        if match := _STORED.fullmatch(path):
            kind, client, sha256 = match.groups()
            found = self.judged.archive(client, sha256) if only in (None, client) else None
            if found is None:
                return self._message(404, "not found", "There is no such archive; it may have been deleted.", reader)
            return self._archive(*found) if kind == "archives" else self._run(client, sha256, reader)
        room, _, quoted = path.removeprefix("/").partition("/")
        name = unquote(quoted)
        stored = self.judged.runs(only)
        if path == "/":
            return self._page("dashboard-overview", 200, stored, reader.name)
        if room == "networks" and name in (networks := stored.networks()):
            return self._page("dashboard-network", 200, name, networks[name], reader.name)
        if room == "clients" and name in stored.clients():
            return self._page("dashboard-client", 200, name, stored, reader.name)
        return self._message(404, "not found", "There is no such page.", reader)

    def _run(self, client: str, sha256: str, reader: ClientKey) -> Response:
        page = self.judged.page(client, sha256)
        if page is not None:
            return Response(200, page, policy=_RUN_POLICY)
        stored = next((each for each in self.judged.runs(client).runs if each.sha256 == sha256), None)
        if stored is not None and stored.fault:
            return self._message(200, stored.name, f"{stored.name} cannot be judged: {stored.fault}.", reader)
        text = "The archive is being judged; the page appears by itself."
        return self._page(
            "dashboard-message", 200, "being judged", text, reader.name, next_page=f"/runs/{client}/{sha256}"
        )

    def _archive(self, record: ArchiveRecord, path: Path) -> Response:
        # The name has letters, digits, dots, dashes and underscores only.
        disposition = ("Content-Disposition", f'attachment; filename="{record.name}"')
        return Response(200, path, "application/zip", [disposition])

    def _log_in(self, body: bytes, address: str) -> Response:
        try:
            given = parse_qs(body.decode("ascii"), max_num_fields=5).get("key", [""])[0]
        except ValueError:
            given = ""
        try:
            name = self.readers.log_in(given, networks_of(address)[0])
        except RefusedError as error:
            return self._page("dashboard-login", error.status, _sentence(str(error)))
        return self._redirect("/", self._cookie(name, None))

    def _login(self, request: Request) -> str:
        try:
            morsel = SimpleCookie(request.header("cookie")).get(COOKIE)
        except CookieError:
            morsel = None
        return "" if morsel is None else morsel.value

    def _cookie(self, value: str, age_s: int | None) -> tuple[str, str]:
        age = "" if age_s is None else f"; Max-Age={age_s}"
        secure = "; Secure" if self.is_secure else ""
        return "Set-Cookie", f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}"

    def _redirect(self, where: str, *headers: tuple[str, str]) -> Response:
        return Response(303, b"", headers=[("Location", where), *headers])

    def _message(self, status: int, title: str, text: str, reader: ClientKey | None = None) -> Response:
        return self._page("dashboard-message", status, title, text, "" if reader is None else reader.name)

    def _page(self, name: str, status: int, *values: object, **more: object) -> Response:
        return Response(status, writer(name)(*values, **more).encode())

    def _send(self, http: HttpConnection, request: Request, response: Response) -> None:
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Security-Policy", response.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
            *response.headers,
        ]
        if isinstance(response.content, bytes):
            http.answer(request, response.status, headers, response.content)
            return
        with response.content.open("rb") as file:
            http.begin(response.status, headers, response.content.stat().st_size)
            if request.method != "HEAD":
                while piece := file.read(_PIECE_BYTES):
                    http.send(piece)
            http.finish()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
