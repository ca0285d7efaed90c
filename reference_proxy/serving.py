"""One connection from its client's wish to its truth."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from itertools import count
from typing import TYPE_CHECKING, Protocol

from reference_proxy.allow_list import AllowList
from reference_proxy.configuration import Interception, Mode
from reference_proxy.consistency import read_address
from reference_proxy.destinations import Destinations, dial
from reference_proxy.errors import ProxyError, RefusedError
from reference_proxy.interception import AskedError, Wish, learn
from reference_proxy.limits import Budget
from reference_proxy.passages import AtOnce, Passage, Stored
from reference_proxy.sockets import LegSettings, end_points, reset, show
from reference_proxy.split import Relay, RelaySettings
from reference_proxy.truth import Truth
from reference_proxy.udp_tunnel import TunnelClientEnd, open_tunnel

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Iterator

    from reference_proxy.configuration import Configuration
    from reference_proxy.http_exchange import HttpServices
    from reference_proxy.limits import Complaints
    from reference_proxy.metrics import Counts
    from reference_proxy.sockets import Address
    from reference_proxy.truth import TruthWriter
    from reference_proxy.udp_tunnel import TunnelServerEnd
    from reference_proxy.window_adaptation import Gate

logger = logging.getLogger("reference_proxy")

#: How much of what a refused client has said already is taken out of its way, in pieces.
UNREAD_PIECES = 16
UNREAD_BYTES = 64 << 10


class Living(Protocol):
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
        self, configuration: Configuration, counts: Counts, complaints: Complaints, truth: TruthWriter
    ) -> None:
        leg = configuration.server
        self._configuration = configuration
        self._counts = counts
        self._complaints = complaints
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
        self._live: set[Living] = set()
        self._http: HttpServices | None = None
        self._gate: Gate | None = None
        self._reports: asyncio.DatagramTransport | None = None
        self._tunnel: TunnelClientEnd | TunnelServerEnd | None = None
        self._stopped = False

    async def start(self, spawn: Callable[[Coroutine[None, None, None], str], bool]) -> None:
        """Open what a mode needs beside its listeners. Raises ProxyError."""
        configuration = self._configuration
        if configuration.mode is Mode.WINDOW_ADAPTATION:
            from reference_proxy.report_receiver import receive_reports
            from reference_proxy.window_adaptation import Gate

            self._gate = Gate(configuration.adaptation)
            self._reports = await receive_reports(
                configuration.adaptation, self._gate, self._counts, self._complaints, self._release
            )
        elif configuration.mode is Mode.STORE_AND_FORWARD:
            from reference_proxy.http_exchange import HttpServices

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
    def living(self, one: Living) -> Iterator[None]:
        """Have it end with the proxy, or when it is idle, for as long as it lives."""
        self._live.add(one)
        try:
            yield
        finally:
            self._live.discard(one)

    def complain(self, kind: str, message: str, **fields: object) -> None:
        """Count and log a refusal."""
        self._counts.refused[kind] += 1
        self._complaints.complain(kind, message, **fields)

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
            self.tell(truth)

    def _refuse(self, sock: socket.socket, truth: Truth, error: RefusedError) -> None:
        truth.ending = error.reason
        self.complain(error.reason, str(error), client=show(truth.mobile.remote), wished=truth.wished)
        if isinstance(error, AskedError) and error.answer:
            try:
                truth.mobile.given_bytes += sock.send(error.answer)
                # Closing would reset the connection, and the answer with it, if more had come than was read.
                for _ in range(UNREAD_PIECES):
                    if not sock.recv(UNREAD_BYTES):
                        break
            except OSError:
                pass
            sock.close()

    def tell(self, truth: Truth) -> None:
        """Write the truth of a connection that ended."""
        self._counts.add(truth)
        self._truth.write(truth)
        if logger.isEnabledFor(logging.INFO):
            fields = {
                "event": "closed",
                "number": truth.number,
                "client": show(truth.mobile.remote),
                "wished": truth.wished,
                "up": truth.server.given_bytes,
                "down": truth.mobile.given_bytes,
                "ending": truth.ending,
            }
            logger.info("connection ended", extra={"fields": fields})

    async def _serve(self, sock: socket.socket, truth: Truth) -> None:
        configuration = self._configuration
        limits = configuration.limits
        wish = await learn(
            sock,
            configuration.interception,
            self._target,
            header_bytes=limits.header_bytes,
            handshake_s=limits.handshake_s,
        )
        truth.wished = show((wish.host, wish.port))
        if self._stopped:
            raise RefusedError("stopped", "the proxy ends")
        if isinstance(self._tunnel, TunnelClientEnd):
            await self._tunnel.carry(sock, wish, truth)
        elif self._http is not None and self._is_http(wish):
            await self._exchange(sock, wish, truth)
        else:
            await self._relay(sock, wish, truth)

    def _is_http(self, wish: Wish) -> bool:
        explicit = self._configuration.interception is Interception.EXPLICIT
        return bool(wish.http_request) or (not explicit and wish.port in self._configuration.store.http_ports)

    def spoofed(self, truth: Truth) -> Address | None:
        """The address that the server is to see, if not ours."""
        return truth.mobile.remote if self._configuration.interception is Interception.TRANSPARENT else None

    async def connect(self, wish: Wish, truth: Truth) -> socket.socket:
        """The server's leg, and the client's being told. Raises RefusedError."""
        try:
            addresses = await self.destinations.resolve(wish)
            server = await dial(
                addresses,
                self._server_leg,
                spoofed=self.spoofed(truth),
                connect_s=self._configuration.limits.connect_s,
            )
        except RefusedError as error:
            raise AskedError(error, wish.answers.refusal(error) if wish.answers else b"") from None
        truth.server.local, truth.server.remote = end_points(server)
        truth.server_connected_ns = time.time_ns()
        return server

    async def _relay(self, sock: socket.socket, wish: Wish, truth: Truth) -> None:
        server = await self.connect(wish, truth)
        try:
            if wish.answers and (acceptance := wish.answers.acceptance()):
                await asyncio.get_running_loop().sock_sendall(sock, acceptance)
        except OSError:
            reset(server)
            raise
        truth.manner = "stored" if self._configuration.mode is Mode.STORE_AND_FORWARD else "relayed"
        passages = self._passage(down=False), self._passage(down=True)
        relay = Relay(asyncio.get_running_loop(), (sock, server), passages, self.relay_settings, truth)
        with self.living(relay):
            relay.start(wish.for_server)
            await relay.over

    def _passage(self, *, down: bool) -> Passage:
        store = self._configuration.store
        if self._configuration.mode is Mode.STORE_AND_FORWARD:
            return Stored(store.pause_s, store.object_bytes, self.relay_settings.buffer_bytes, self._store_budget)
        if self._gate is not None and down:
            from reference_proxy.window_adaptation import Gated

            return Gated(self._gate)
        return AtOnce()

    async def _exchange(self, sock: socket.socket, wish: Wish, truth: Truth) -> None:
        from reference_proxy.http_exchange import HttpExchange

        assert self._http is not None
        truth.manner = "stored"
        exchange = HttpExchange(self._http, sock, wish, truth, self.spoofed(truth))
        with self.living(exchange):
            await exchange.run()
