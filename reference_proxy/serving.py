"""One connection from its accepted socket to its line of ground truth."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from itertools import count
from typing import TYPE_CHECKING, Protocol

from reference_proxy.configuration import Interception, Mode
from reference_proxy.errors import ProxyError, RefusedError
from reference_proxy.interception.allow_list import AllowList
from reference_proxy.interception.destinations import Destinations, dial
from reference_proxy.interception.requested_destination import (
    AnsweredRefusalError,
    RequestedDestination,
    learn_destination,
)
from reference_proxy.limits import Asking, Budget
from reference_proxy.relay.release import ReleaseAtOnce, ReleasePolicy, StoreAndForward
from reference_proxy.relay.split import Relay, RelaySettings
from reference_proxy.sockets import LegSettings, end_points, read_address, reset, show
from reference_proxy.truth import Truth
from reference_proxy.tunnel.udp_tunnel import TunnelClientEnd, open_tunnel

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Iterator

    from reference_proxy.configuration import Configuration
    from reference_proxy.http.exchange import HttpServices
    from reference_proxy.limits import LimitedWarnings
    from reference_proxy.metrics import Counts
    from reference_proxy.relay.window_adaptation import Gate
    from reference_proxy.sockets import Address
    from reference_proxy.truth import TruthWriter
    from reference_proxy.tunnel.udp_tunnel import TunnelServerEnd

logger = logging.getLogger("reference_proxy")

#: How much of what a refused client has already sent is read and dropped, in pieces.
UNREAD_PIECES = 16
UNREAD_BYTES = 64 << 10


class OpenConnection(Protocol):
    """What serves a connection."""

    def advance(self) -> None:
        """See whether anything may leave that was held back."""

    def end_if_idle(self, now: float) -> None:
        """End the connection if nothing has moved for too long."""

    def stop(self) -> None:
        """End the connection now."""


class Server:
    """What all connections of a proxy share, and how one is served."""

    def __init__(
        self, configuration: Configuration, counts: Counts, warnings: LimitedWarnings, truth: TruthWriter
    ) -> None:
        leg = configuration.server
        self._configuration = configuration
        self._counts = counts
        self._warnings = warnings
        self._truth = truth
        self._numbers = count(1)
        self._target: Address | None = None
        if configuration.target:
            self._target = read_address(configuration.target, "target")
        self._server_leg = LegSettings(
            leg.congestion_control, leg.receive_buffer_bytes, leg.send_buffer_bytes, leg.window_clamp_bytes
        )
        self.relay_settings = RelaySettings(
            configuration.buffer_bytes, configuration.aborts, configuration.abort_delay_s, configuration.limits.idle_s
        )
        explicit = configuration.interception is Interception.EXPLICIT
        self.destinations = Destinations(
            AllowList(configuration.allow), needs_allowance=explicit or configuration.mode is Mode.UDP_TUNNEL
        )
        self._store_budget = Budget(configuration.store.memory_bytes)
        self._live: set[OpenConnection] = set()
        self.asking = Asking()
        self._http: HttpServices | None = None
        self._gate: Gate | None = None
        self._reports: asyncio.DatagramTransport | None = None
        self._tunnel: TunnelClientEnd | TunnelServerEnd | None = None
        self._stopped = False

    async def start(self, spawn: Callable[[Coroutine[None, None, None], str], bool]) -> None:
        """Open what a mode needs beside its listeners. Raises ProxyError."""
        configuration = self._configuration
        if configuration.mode is Mode.WINDOW_ADAPTATION:
            from reference_proxy.relay.report_receiver import receive_reports
            from reference_proxy.relay.window_adaptation import Gate

            self._gate = Gate(configuration.adaptation)
            self._reports = await receive_reports(
                configuration.adaptation, self._gate, self._counts, self._warnings, self._release
            )
        elif configuration.mode is Mode.STORE_AND_FORWARD:
            from reference_proxy.http.exchange import HttpServices

            self._http = HttpServices(configuration, self.destinations, self._server_leg, self._store_budget)
        elif configuration.mode is Mode.UDP_TUNNEL:
            self._tunnel = await open_tunnel(configuration, self, spawn)

    def _release(self) -> None:
        """A step of the control law has begun."""
        for relay in list(self._live):
            relay.advance()

    def end_idle(self, now: float) -> None:
        """End what has been idle for too long."""
        if self._gate is not None:
            self._gate.notice_silence(now)
        if self._tunnel is not None:
            self._tunnel.forget_idle(now)
        for one in list(self._live):
            one.end_if_idle(now)

    def stop(self) -> None:
        """End every connection."""
        self._stopped = True
        for one in list(self._live):
            one.stop()

    async def close(self) -> None:
        """Close what was opened beside the listeners."""
        if self._reports is not None:
            self._reports.close()
        if self._tunnel is not None:
            self._tunnel.close()
        if self._http is not None:
            self._http.close()

    @contextlib.contextmanager
    def tracked(self, one: OpenConnection) -> Iterator[None]:
        """Have it end with the proxy, or when it is idle, for as long as it lives."""
        self._live.add(one)
        try:
            yield
        finally:
            self._live.discard(one)

    def warn(self, kind: str, message: str, **fields: object) -> None:
        """Count and log a refusal."""
        self._counts.refused[kind] += 1
        self._warnings.warn(kind, message, **fields)

    def new_truth(self) -> Truth:
        """The truth of a connection that begins."""
        return Truth(next(self._numbers), self._configuration.mode, self._configuration.interception)

    async def serve(self, sock: socket.socket) -> None:
        """Serve an accepted connection to its end."""
        truth = self.new_truth()
        truth.mobile.local, truth.mobile.remote = end_points(sock)
        try:
            await self._serve(sock, truth)
        except RefusedError as error:
            self._refuse(sock, truth, error)
        except ProxyError as error:
            self._refuse(sock, truth, RefusedError("unreachable", str(error)))
        except OSError:
            self._refuse(sock, truth, RefusedError("left", "the client left while it was answered"))
        except asyncio.CancelledError:
            truth.ending = truth.ending or "stopped"
            raise
        finally:
            reset(sock)
            self.report(truth)

    def _refuse(self, sock: socket.socket, truth: Truth, error: RefusedError) -> None:
        truth.ending = error.reason
        self.warn(error.reason, str(error), client=show(truth.mobile.remote), requested=truth.requested)
        if isinstance(error, AnsweredRefusalError) and error.answer:
            try:
                truth.mobile.given_bytes += sock.send(error.answer)
                # Closing would reset the connection, and the answer with it, if more had come than was read.
                for _ in range(UNREAD_PIECES):
                    if not sock.recv(UNREAD_BYTES):
                        break
            except OSError:
                pass
            sock.close()

    def report(self, truth: Truth) -> None:
        """Write the truth of a connection that ended."""
        self._counts.add(truth)
        self._truth.write(truth)
        if logger.isEnabledFor(logging.INFO):
            fields = {
                "event": "closed",
                "number": truth.number,
                "client": show(truth.mobile.remote),
                "requested": truth.requested,
                "up": truth.server.given_bytes,
                "down": truth.mobile.given_bytes,
                "ending": truth.ending,
            }
            logger.info("connection ended", extra={"fields": fields})

    async def _serve(self, sock: socket.socket, truth: Truth) -> None:
        configuration = self._configuration
        limits = configuration.limits
        with self._asked(truth):
            requested = await learn_destination(
                sock,
                configuration.interception,
                self._target,
                header_bytes=limits.header_bytes,
                handshake_s=limits.handshake_s,
            )
        truth.requested = show((requested.host, requested.port))
        if self._stopped:
            raise RefusedError("stopped", "the proxy ends")
        if isinstance(self._tunnel, TunnelClientEnd):
            await self._tunnel.carry(sock, requested, truth)
        elif self._http is not None and self._is_http(requested):
            await self._exchange(sock, requested, truth)
        else:
            await self._relay(sock, requested, truth)

    @contextlib.contextmanager
    def _asked(self, truth: Truth) -> Iterator[None]:
        """A client asks; it can be displaced meanwhile."""

        def displaced() -> None:
            truth.ending = "displaced"
            self.warn(
                "displaced",
                "a client without a complete request made room for another",
                client=show(truth.mobile.remote),
            )

        with self.asking.tracked(truth.mobile.remote[0] if truth.mobile.remote else "", displaced):
            yield

    def _is_http(self, requested: RequestedDestination) -> bool:
        explicit = self._configuration.interception is Interception.EXPLICIT
        return bool(requested.http_request) or (not explicit and requested.port in self._configuration.store.http_ports)

    def spoofed(self, truth: Truth) -> Address | None:
        """The address that the server is to see, if not ours."""
        return truth.mobile.remote if self._configuration.interception is Interception.TRANSPARENT else None

    async def connect(self, requested: RequestedDestination, truth: Truth) -> socket.socket:
        """Connect to the server; an explicit client gets the refusal. Raises RefusedError."""
        try:
            addresses = await self.destinations.resolve(requested)
            server = await dial(
                addresses,
                self._server_leg,
                spoofed=self.spoofed(truth),
                connect_s=self._configuration.limits.connect_s,
            )
        except RefusedError as error:
            raise AnsweredRefusalError(error, requested.answers.refusal(error) if requested.answers else b"") from None
        truth.server.local, truth.server.remote = end_points(server)
        truth.server_connected_ns = time.time_ns()
        return server

    async def _relay(self, sock: socket.socket, requested: RequestedDestination, truth: Truth) -> None:
        server = await self.connect(requested, truth)
        try:
            if requested.answers and (acceptance := requested.answers.acceptance()):
                await asyncio.get_running_loop().sock_sendall(sock, acceptance)
        except OSError:
            reset(server)
            raise
        truth.manner = "stored" if self._configuration.mode is Mode.STORE_AND_FORWARD else "relayed"
        policies = self._release_policy(down=False), self._release_policy(down=True)
        relay = Relay(asyncio.get_running_loop(), (sock, server), policies, self.relay_settings, truth)
        with self.tracked(relay):
            relay.start(requested.for_server)
            await relay.over

    def _release_policy(self, *, down: bool) -> ReleasePolicy:
        store = self._configuration.store
        if self._configuration.mode is Mode.STORE_AND_FORWARD:
            return StoreAndForward(
                store.pause_s, store.object_bytes, self.relay_settings.buffer_bytes, self._store_budget
            )
        if self._gate is not None and down:
            from reference_proxy.relay.window_adaptation import GatedRelease

            return GatedRelease(self._gate)
        return ReleaseAtOnce()

    async def _exchange(self, sock: socket.socket, requested: RequestedDestination, truth: Truth) -> None:
        from reference_proxy.http.exchange import HttpExchange

        assert self._http is not None
        truth.manner = "stored"
        exchange = HttpExchange(self._http, sock, requested, truth, self.spoofed(truth), lambda: self._asked(truth))
        with self.tracked(exchange):
            await exchange.run()
