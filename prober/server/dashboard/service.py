"""The life of a dashboard: it listens, gives up every privilege, serves and judges, and ends on a signal."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import secrets
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pepscope.errors import PepscopeError
from prober.errors import ServerError
from prober.host.tls import over_tls
from prober.server.dashboard.judged_archives import JudgedArchives
from prober.server.dashboard.readers import Readers
from prober.server.dashboard.web_pages import WebPages
from prober.server.identity import MARKER, default_token, fingerprint_in
from prober.server.keys.key_file import KeyFile
from prober.server.keys.key_ring import KeyRing
from prober.server.privileges import give_up_privileges
from prober.server.services.http_connection import HttpConnection, MalformedHeadError
from prober.server.settings import LimitsTable
from prober.server.sockets.admission import Admission, Complaints, Rate
from prober.server.sockets.connections import Acceptor, Connection, show
from prober.server.sockets.listening import listen

logger = logging.getLogger("prober")

DEFAULT_PORT = 8450
#: How soon a new archive is noticed.
SWEEP_S = 2.0
_LIMITS = LimitsTable(connections=100, connections_per_address=50, idle_s=60.0, keep_s=60.0)


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """What a dashboard shows, and where."""

    #: Of the probe server.
    state: Path
    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    #: A PEM file with private key and certificates; without one the server's own where it listens beyond loopback.
    certificate: Path | None = None
    #: Where verdicts and pages are kept; may be thrown away.
    judged: Path | None = None

    @property
    def is_secure(self) -> bool:
        """Whether it speaks TLS: everywhere but on loopback."""
        return self.certificate is not None or not ipaddress.ip_address(self.address).is_loopback


def run(settings: DashboardSettings, ready: Callable[[str], None]) -> None:
    """Serve until a signal; `ready` is called with the address once it can be opened. Raises ServerError."""
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        with dashboard(settings, lambda: give_up_privileges(settings.state, needed=0)) as (address, sweep):
            ready(address)
            while not ending.wait(SWEEP_S):
                sweep()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def dashboard(
    settings: DashboardSettings, before_serving: Callable[[], object] = lambda: None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """A dashboard that serves while this context lasts: its address, and what is to be done every few seconds."""
    if not (settings.state / MARKER).exists():
        raise ServerError(
            f"the state directory must be a probe server's, got {settings.state}; choose one with --state"
        )
    with contextlib.ExitStack() as closing:
        tls = _tls(settings)
        port = listen("dashboard", [settings.address], settings.port)
        closing.callback(port.close)
        # A revoked default key has no token; no client has this one.
        token = default_token(settings.state) or secrets.token_urlsafe(32)
        keys = KeyRing(KeyFile(settings.state), token)
        try:
            judged = JudgedArchives(settings.state, settings.judged or settings.state / "judged")
        except OSError as error:
            raise ServerError(f"{error.filename} cannot be used: {error.strerror}; choose one with --judged") from None
        before_serving()
        judged.start()
        closing.callback(judged.close)
        readers = Readers(keys, Rate(_LIMITS.refusals_per_minute / 60, _LIMITS.refusals_per_minute))
        pages = WebPages(judged, readers, settings.is_secure)
        complaints = Complaints()
        rate = Rate(_LIMITS.connections_per_s, _LIMITS.connections_at_once)
        acceptor = Acceptor(Admission(_LIMITS.connections, _LIMITS.connections_per_address, rate), complaints)
        acceptor.add(port, lambda connection: _serve(connection, pages, tls))
        acceptor.start()
        closing.callback(acceptor.close)
        scheme = "http" if tls is None else "https"

        def sweep() -> None:
            try:
                readers.refresh()
                judged.look()
            except (PepscopeError, OSError) as error:
                complaints.complain("dashboard", str(error))

        yield f"{scheme}://{show(settings.address, port.number)}/", sweep


def _serve(connection: Connection, pages: WebPages, tls: ssl.SSLContext | None) -> None:
    connection.sock.settimeout(_LIMITS.head_s)
    if tls is not None:
        sock = over_tls(tls, connection.sock, server_side=True, do_handshake_on_connect=False)
        connection.sock = sock
        sock.do_handshake()
    http = HttpConnection(connection.sock, _LIMITS, connection.accepted_s)
    try:
        pages.serve(http, connection.address)
    except MalformedHeadError as error:
        http.refuse(error.status, "this is not HTTP/1.1")
    http.linger()


def _tls(settings: DashboardSettings) -> ssl.SSLContext | None:
    if not settings.is_secure:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    file = settings.certificate
    if file is None:
        fingerprint_in(settings.state)
        file = settings.state / "certificate.pem"
    try:
        context.load_cert_chain(file)
    except (OSError, ssl.SSLError) as error:
        raise ServerError(f"{file} must hold a private key and its certificate as PEM: {error}") from None
    return context
