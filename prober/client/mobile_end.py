"""The mobile's hand on the network while a task is measured: connections to the server, transfers, held back ACKs."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakSet

from pepscope.captures.direction import Direction
from prober.client.capabilities import Capability
from prober.client.transfer import Transfer
from prober.errors import ControlError, ImpossibleError, MeasurementError, UnreachableError
from prober.protocol.application import Application
from prober.protocol.objects import ObjectKind
from prober.protocol.plain_requests import Reading, object_target

if TYPE_CHECKING:
    from prober.client.control_client import ControlClient
    from prober.host.hold.ack_hold import AckHold
    from prober.protocol.control_messages import About

#: Five SYNs, sent at 0, 1, 3, 7 and 15 s (RFC 6298: from 1 s, doubling), and as long as the last one is waited for: who
#: answers none of them does not answer. A port that a firewall drops must not cost all of a task's time.
CONNECT_S = 31.0

#: Called with a socket before it connects: for options that must be in the SYN.
Prepare = Callable[[socket.socket], None]


class MobileEnd:
    """What `Experiment.measure` gets. Nothing that it does takes longer than what is left of the task's time."""

    def __init__(
        self,
        control: ControlClient,
        about: About,
        *,
        host: str,
        address: str,
        task_limit_s: float,
        expected_round_trip_s: float,
        certificate_sha256: str = "",
        lacking: Mapping[Capability, str] | None = None,
    ) -> None:
        """`address` is what `host` was resolved to, once; `lacking` holds the missing capabilities, with reasons.

        A task may take `task_limit_s`; `expected_round_trip_s` is what the plan assumes of the path.
        """
        self.expected_round_trip_s = expected_round_trip_s
        self._task_limit_s = task_limit_s
        self.control = control
        self.about = about
        self.host = host
        self.address = address
        self.certificate_sha256 = certificate_sha256
        self.lacking: Mapping[Capability, str] = lacking or {}
        self._deadline_s = time.monotonic() + task_limit_s
        self._is_overdue = False
        self._open: WeakSet[socket.socket] = WeakSet()
        #: Ports that answered no SYN while the server did answer.
        self._silent_ports: set[int] = set()

    @property
    def family(self) -> socket.AddressFamily:
        """IPv4 or IPv6, as the server's address has it."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    @property
    def remaining_s(self) -> float:
        """What is left of the task's time. Raises MeasurementError where nothing is."""
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise MeasurementError(_overdue(self._task_limit_s))
        return left_s

    def port(self, application: Application) -> int:
        """Where the server offers an application; for raw TCP the free port, which no middlebox has a reason to split.

        Raises ImpossibleError where it does not.
        """
        ports = self.about.ports
        free = ports.tcp[0] if ports.tcp else 0
        port = {
            Application.FTP: ports.ftp,
            Application.HTTP_DATA: ports.http,
            Application.HTTP_IMAGE: ports.http,
            Application.HTTPS: ports.https,
            Application.TCP: free,
        }[application]
        if not port:
            raise ImpossibleError(f"the server does not offer {application}")
        return port

    def object_target(self, size_bytes: int, seed: int, kind: ObjectKind | str, *, cache_s: int = 0) -> str:
        """The path of an object on the server's HTTP port; equal sizes, seeds and kinds name equal bytes."""
        return object_target(self.control.session, kind, size_bytes, seed, cache_s=cache_s)

    def connect(self, port: int, *, timeout_s: float | None = None, prepare: Prepare | None = None) -> socket.socket:
        """A TCP connection to the server's address. Raises OSError as the kernel gives it, MeasurementError.

        `prepare` gets the socket before it connects. Connecting waits `timeout_s`, without it `CONNECT_S`; reads and
        writes wait no longer than the task has time. Where a port did not answer for `CONNECT_S`, although the server
        did, further connections without `timeout_s` fail at once: a blocked port costs a run one such time.
        """
        if timeout_s is None and port in self._silent_ports:
            raise MeasurementError(_blocked(port))
        link = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            if prepare is not None:
                prepare(link)
            link.settimeout(min(CONNECT_S if timeout_s is None else timeout_s, self.remaining_s))
            link.connect((self.address, port))
            link.settimeout(self.remaining_s)
        except TimeoutError:
            link.close()
            if timeout_s is None and self.remaining_s > 0 and self._server_answers():
                self._silent_ports.add(port)
                raise MeasurementError(_blocked(port)) from None
            raise
        except BaseException:
            link.close()
            raise
        return self.watch(link)

    def _server_answers(self) -> bool:
        """Whether the control channel works, so that a port's silence is the port's. Raises UnreachableError."""
        try:
            self.control.clock()
        except UnreachableError:
            raise
        except ControlError:
            return False
        return True

    def watch(self, link: socket.socket) -> socket.socket:
        """Have a socket shut down when the task's time is over; sockets of `connect` are."""
        self._open.add(link)
        return link

    def transfer(
        self,
        application: Application,
        direction: Direction,
        size_bytes: int,
        *,
        seed: int | None = None,
        port: int | None = None,
        prepare: Prepare | None = None,
        on_bytes: Callable[[int], None] | None = None,
        cache_s: int = 0,
        reading: Reading | None = None,
    ) -> Transfer:
        """Move one object as an application does. Raises MeasurementError where it breaks off, ImpossibleError.

        Without `seed` the object is a new one. `port` is another port than the application's own,
        `prepare` gets each socket before it connects, `on_bytes` is called with how much has moved so far, and what it
        raises ends the transfer. `cache_s` is how long the server allows the answer to be kept (HTTP),
        `reading` how it is to read an upload (all but FTP).
        """
        from prober.client.applications import Request, client

        request = Request(
            application=application,
            direction=direction,
            size_bytes=size_bytes,
            seed=secrets.randbelow(1 << 32) if seed is None else seed,
            port=self.port(application) if port is None else port,
            prepare=prepare,
            on_bytes=on_bytes,
            cache_s=cache_s,
            reading=reading or Reading(),
        )
        return client(application)(self, request)

    def hold_acks(self, ports: int | tuple[tuple[int, int], ...], delay_s: float) -> AckHold:
        """Hold back what the mobile acknowledges to a port of the server, or to ranges of them: a context.

        In order, by `delay_s`, but for SYN and RST. Raises ImpossibleError where the mobile cannot, with the reason.
        """
        if Capability.MOBILE_HOLD in self.lacking:
            raise ImpossibleError(self.lacking[Capability.MOBILE_HOLD])
        from prober.host.hold.ack_hold import AckHold
        from prober.host.hold.packet_rules import HeldTraffic

        ranges = ((ports, ports),) if isinstance(ports, int) else ports
        return AckHold(HeldTraffic(ranges, host=self.address), delay_s)

    @contextlib.contextmanager
    def task(self) -> Iterator[None]:
        """One task's time, from now: when it is over every socket that is still open is shut down.

        Raises MeasurementError where the task took longer.
        """
        limit_s = self._task_limit_s
        self._deadline_s = time.monotonic() + limit_s
        self._is_overdue = False
        watchdog = threading.Timer(limit_s, self._end)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        except (OSError, MeasurementError) as error:
            if self._is_overdue:
                raise MeasurementError(_overdue(limit_s)) from error
            raise
        else:
            # A read that ended by this shutdown may have looked like one that the other end closed.
            if self._is_overdue:
                raise MeasurementError(_overdue(limit_s))
        finally:
            watchdog.cancel()
            for link in list(self._open):
                link.close()
            self._open.clear()

    def _end(self) -> None:
        self._is_overdue = True
        for link in list(self._open):
            # The method of the plain socket: that of a TLS socket is not made for another thread.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(link, socket.SHUT_RDWR)


def _blocked(port: int) -> str:
    return f"port {port} of the server did not answer for {CONNECT_S:g} s, although the server did: it is blocked"


def _overdue(limit_s: float) -> str:
    return f"the task took longer than limits.task_s, {limit_s:g} s"
