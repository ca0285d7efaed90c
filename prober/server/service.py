"""The life of a server: it listens, serves, sweeps up what is overdue, and on a signal ends everything it began."""

from __future__ import annotations

import contextlib
import logging
import resource
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pepscope
from pepscope.errors import PepscopeError
from prober.host.host_description import describe_host
from prober.protocol.control_messages import SCHEMA, About, Key, Ports
from prober.protocol.objects import ObjectKind, object_bytes
from prober.protocol.pictures import LEAST_BYTES
from prober.server.archives.archive_store import ArchiveStore
from prober.server.context import ServiceContext
from prober.server.identity import Identity, StateDirectory
from prober.server.instruments.means import DirectMeans, MakeMeans
from prober.server.instruments.privileged.pipe import HelperMeans
from prober.server.instruments.session_instruments import Instruments, means_settings
from prober.server.keys.client_key import ClientKey
from prober.server.keys.key_file import KeyFile
from prober.server.keys.key_ring import KeyRing
from prober.server.metrics import ServerCollector, serve_server_metrics
from prober.server.privileges import give_up_privileges
from prober.server.services.answers import Answers
from prober.server.services.control import Control
from prober.server.services.ftp import FtpService
from prober.server.services.http_objects import serve_http, serve_https
from prober.server.services.raw_tcp import serve_raw_tcp
from prober.server.services.udp_echo import UdpEcho
from prober.server.sessions import Session, Sessions
from prober.server.settings import LimitsTable, ServerSettings
from prober.server.sockets.admission import Admission, Complaints, Rate
from prober.server.sockets.connections import Acceptor
from prober.server.sockets.listening import Port, listen

logger = logging.getLogger("prober")

SWEEP_S = 0.5

Ready = Callable[[Key, Ports, About], None]


def run(settings: ServerSettings, ready: Ready) -> None:
    """Serve until a signal; `ready` is called once all services listen. Raises ServerError."""
    # A descriptor a connection: the kernel's default for programs (1024) is for those that do not know better.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ending = threading.Event()
    caught: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        ending.set()

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        with running(settings, lambda state: give_up_privileges(state, needed=0), HelperMeans) as (key, about, sweep):
            ready(key, about.ports, about)
            while not ending.wait(SWEEP_S):
                sweep()
            logger.info("ending", extra={"fields": {"event": "ending", "signal": signal.Signals(caught[0]).name}})
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def running(
    settings: ServerSettings,
    before_serving: Callable[[Path], object] = lambda _: None,
    make_means: MakeMeans = lambda settings, _: DirectMeans(settings, lambda: secrets.token_hex(8)),
) -> Iterator[tuple[Key, About, Callable[[], None]]]:
    """A server that serves while this context lasts: its key, its description, and what is to be done twice a second.

    `before_serving` is called with the state directory once all ports are bound, and what needs privileges is made,
    while there is one thread.
    """
    with contextlib.ExitStack() as closing:
        state = StateDirectory(settings.state_directory)
        closing.callback(state.close)
        identity = state.identity()
        listeners = _Listeners(settings, closing)
        for kind in ObjectKind:
            # What objects are made of is made once: the first request should not be the one that waits for it.
            object_bytes(kind, LEAST_BYTES, 0)
        directory = closing.enter_context(state.captures())
        context = _context(settings.limits, identity)
        means = make_means(means_settings(settings.limits, listeners.ports, directory), state.path)
        closing.callback(means.close)
        before_serving(state.path)
        instruments = Instruments(
            settings.limits, listeners.ports, listeners.by_number, directory, settings.interface, means
        )
        closing.callback(instruments.close)
        about = _about(settings.limits, listeners.ports, instruments)
        keys = KeyRing(KeyFile(state.path), identity.key.token)
        archives = ArchiveStore(state.path, settings.archives, settings.retention)
        closing.callback(archives.close)
        control = Control(context, instruments, about, keys, Answers(), archives)
        if settings.metrics:
            closing.callback(serve_server_metrics(settings.metrics, ServerCollector(context, instruments, archives)))
        served = _serve(settings, context, listeners, control, closing)
        yield identity.key, about, _Sweep(context, instruments, keys, archives, served).run


class _Sweep:
    """What is done twice a second: ending what is overdue, too large, or of a key that is accepted no longer."""

    def __init__(
        self,
        context: ServiceContext,
        instruments: Instruments,
        keys: KeyRing,
        archives: ArchiveStore,
        served: _Served,
    ) -> None:
        self._context, self._instruments, self._keys, self._served = context, instruments, keys, served
        self._archives = archives

    def run(self) -> None:
        """Sweep once."""
        for step in (self._end_revoked, self._end_expired, self._end_leases, self._end_archives):
            try:
                step()
            except (PepscopeError, OSError) as error:
                self._context.complaints.complain(step.__name__.removeprefix("_end_"), str(error))

    def _end_revoked(self) -> None:
        for key in self._keys.refresh():
            self._end(self._context.sessions.end_of(key, f"the key {key.name} was revoked"), "session-revoked")
            self._served.end_of(key)

    def _end_expired(self) -> None:
        self._end(self._context.sessions.expired(), "session-expired")

    def _end_leases(self) -> None:
        self._instruments.sweep(lambda session: self._context.sessions.find(session.name) is session)

    def _end_archives(self) -> None:
        self._archives.sweep()

    def _end(self, sessions: list[Session], event: str) -> None:
        for session in sessions:
            self._instruments.end_of(session)
            fields = {"event": event, "session": session.name[:6], "key": session.key.name}
            logger.info(event, extra={"fields": fields})


class _Listeners:
    """Every port that is declared, and no other."""

    def __init__(self, settings: ServerSettings, closing: contextlib.ExitStack) -> None:
        wanted = settings.ports

        def open_port(name: str, number: int, kind: int = socket.SOCK_STREAM) -> Port:
            port = listen(name, settings.listen, number, kind)
            closing.callback(port.close)
            return port

        # The well-known ports first: it is those that may not be had.
        self.http = [open_port("http", wanted.http), open_port("http_free", wanted.http_free)]
        self.https = [open_port("https", wanted.https), open_port("https_free", wanted.https_free)]
        self.ftp = [open_port("ftp", wanted.ftp), open_port("ftp_free", wanted.ftp_free)]
        self.control = open_port("control", wanted.control)
        self.tcp = [open_port("tcp", number) for number in wanted.tcp]
        self.udp_echo = open_port("udp_echo", wanted.udp_echo, socket.SOCK_DGRAM)
        self.dead = open_port("dead", wanted.dead)
        self.dead.never_answer()
        self.by_number = {port.number: port for port in (*self.http, *self.https, *self.ftp, *self.tcp)}
        self.ports = Ports(
            self.control.number,
            self.http[0].number,
            self.https[0].number,
            self.ftp[0].number,
            tuple(port.number for port in self.tcp),
            self.udp_echo.number,
            self.dead.number,
            self.http[1].number,
            self.https[1].number,
            self.ftp[1].number,
            (wanted.ftp_data[0], wanted.ftp_data[1]),
        )


def _context(limits: LimitsTable, identity: Identity) -> ServiceContext:
    rate = Rate(limits.connections_per_s, limits.connections_at_once)
    return ServiceContext(
        limits,
        Sessions(limits),
        Admission(limits.connections, limits.connections_per_address, rate, limits.connections_per_network),
        Complaints(),
        Rate(limits.refusals_per_minute / 60, limits.refusals_per_minute),
        identity.tls(),
    )


def _about(limits: LimitsTable, ports: Ports, instruments: Instruments) -> About:
    reported = (
        "object_bytes",
        "session_bytes",
        "capture_bytes",
        "captures_kept",
        "datagram_bytes",
        "connections_per_address",
    )
    numbers = {name: int(getattr(limits, name)) for name in reported}
    numbers |= {name: int(getattr(limits, name)) for name in ("lease_s", "hold_delay_s", "idle_s", "transfer_s")}
    description = describe_host(None)
    settings = description.pop("settings")
    host = {name: str(value) for name, value in (*description.items(), *settings.items())}
    return About(SCHEMA, pepscope.__version__, ports, instruments.capabilities(), numbers, host)


def _serve(
    settings: ServerSettings,
    context: ServiceContext,
    listeners: _Listeners,
    control: Control,
    closing: contextlib.ExitStack,
) -> _Served:
    acceptor = Acceptor(context.admission, context.complaints)
    for port in listeners.http:
        acceptor.add(port, serve_http(context))
    for port in listeners.https:
        acceptor.add(port, serve_https(context))
    for port in listeners.tcp:
        acceptor.add(port, serve_raw_tcp(context))
    acceptor.add(listeners.control, control.serve)
    data_ports = (settings.ports.ftp_data[0], settings.ports.ftp_data[1])
    acceptor.start()
    closing.callback(acceptor.close)
    ftp = FtpService(context, listeners.ftp, data_ports)
    ftp.start()
    closing.callback(ftp.close)
    echo = UdpEcho(context, listeners.udp_echo)
    echo.start()
    closing.callback(echo.close)
    return _Served(acceptor, ftp)


@dataclass(frozen=True, slots=True)
class _Served:
    """What connections are served by."""

    acceptor: Acceptor
    ftp: FtpService

    def end_of(self, key: ClientKey) -> None:
        """End every connection on behalf of a key."""
        self.acceptor.end_of(key)
        self.ftp.end_of(key)
