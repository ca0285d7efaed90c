"""UDP tunnel: Split-TCP whose mobile leg is carried in UDP (as CDMA-II in seed 004, section IV-A).

        server ---- TCP leg ---- [ server end ] ==== UDP leg ==== [ client end ] ---- TCP ---- program
                                                                       (on the mobile)

The client end runs on the mobile: it takes the programs' connections (explicitly, or diverted) and carries their
bytes in datagrams to the server end, which makes the TCP connections to the servers. On the mobile's link there is no
TCP at all.

A datagram's source address proves nothing. So an OPEN without the right token is answered with a datagram that is no
larger, and remembered nowhere; only who receives the token at its address gets a connection, and only to destinations
on the server end's allow-list. There is no encryption: an observer on the path can read and forge the datagrams, as
with TCP.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeAlias

from reference_proxy.configuration import TunnelEnd
from reference_proxy.errors import MalformedError, ProxyError, RefusedError
from reference_proxy.interception.requested_destination import AnsweredRefusalError, RequestedDestination
from reference_proxy.sockets import end_points, family_of, read_address, show
from reference_proxy.tunnel.datagram import DatagramKind, TunnelDatagram, decode_destination, encode_destination
from reference_proxy.tunnel.relay import TunnelRelay
from reference_proxy.tunnel.stream import TunnelStream

if TYPE_CHECKING:
    from reference_proxy.configuration import Configuration
    from reference_proxy.serving import Server
    from reference_proxy.sockets import Address
    from reference_proxy.truth import Truth

Spawn: TypeAlias = Callable[[Coroutine[None, None, None], str], bool]
Key: TypeAlias = tuple["Address", int]

#: Datagrams of all streams share one socket: a burst of a full window each must not overflow it at once.
SOCKET_BUFFER_BYTES = 4 << 20

#: An OPEN is sent again after so long: RFC 6298's first timeout.
OPEN_AGAIN_S = 1.0

#: The last acknowledgement may be lost: for so long a stream that ended well answers retransmissions. Twice the
#: largest timeout that a path of one second of round-trip time gets.
LINGER_S = 6.0

STREAM_LIMIT = 1 << 32


class TunnelEndPoint(asyncio.DatagramProtocol, ABC):
    """What both ends have: a socket, and streams by address and number."""

    def __init__(self, configuration: Configuration, server: Server) -> None:
        self._configuration = configuration
        self._server = server
        self._relays: dict[Key, TunnelRelay] = {}
        self._lingering: dict[Key, tuple[TunnelStream, float]] = {}
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self, sock: socket.socket) -> None:
        """Begin to receive."""
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)
        self._transport = transport

    def close(self) -> None:
        """Receive nothing more."""
        if self._transport is not None:
            self._transport.close()

    def forget_idle(self, now: float) -> None:
        """Remove streams that ended a while ago."""
        for key in [key for key, (_, until) in self._lingering.items() if until <= now]:
            del self._lingering[key]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """One datagram."""
        address = addr[:2]
        try:
            datagram = TunnelDatagram.decode(data)
            self._handle(datagram, address)
        except MalformedError as error:
            self._server.warn("malformed-datagram", str(error), sender=show(address))

    def _handle(self, datagram: TunnelDatagram, address: Address) -> None:
        key = (address, datagram.stream)
        relay = self._relays.get(key)
        if datagram.kind in (DatagramKind.DATA, DatagramKind.FINISH, DatagramKind.RESET) and self._is_token_right(
            datagram, address
        ):
            if relay is not None:
                relay.handle_datagram(datagram)
            elif key in self._lingering:
                self._answer_late(key, datagram)
            elif not self._handle_opening(datagram, address) and datagram.kind is not DatagramKind.RESET:
                self._send(TunnelDatagram(DatagramKind.RESET, datagram.stream, datagram.token), address)
        elif datagram.kind in (DatagramKind.OPEN, DatagramKind.CHALLENGE):
            self._handle_opening(datagram, address)

    def _answer_late(self, key: Key, datagram: TunnelDatagram) -> None:
        stream, _ = self._lingering[key]
        now = asyncio.get_running_loop().time()
        stream.handle_datagram(now, datagram)
        answer = stream.poll_transmit(now)
        if answer is not None:
            self._send(answer, key[0])

    @abstractmethod
    def _is_token_right(self, datagram: TunnelDatagram, address: Address) -> bool:
        """Whether the peer may send datagrams of this stream."""

    @abstractmethod
    def _handle_opening(self, datagram: TunnelDatagram, address: Address) -> bool:
        """What concerns no stream yet; False for what concerns none at all."""

    def _send(self, datagram: TunnelDatagram, address: Address) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(datagram.encode(), address)

    async def _relay(
        self, key: Key, token: int, sock: socket.socket, from_tcp: bytes, truth: Truth, *, tcp_is_mobile: bool
    ) -> None:
        address, number = key
        tunnel = self._configuration.tunnel
        window = max(tunnel.window_bytes, len(from_tcp))
        stream = TunnelStream(number, token, piece_bytes=tunnel.payload_bytes, window_bytes=window)

        def send(datagram: TunnelDatagram) -> None:
            if datagram.kind is DatagramKind.RESET:
                datagram = TunnelDatagram(DatagramKind.RESET, number, token)
            self._send(datagram, address)

        relay = TunnelRelay(sock, stream, send, self._server.relay_settings, truth, tcp_is_mobile=tcp_is_mobile)
        self._relays[key] = relay
        try:
            with self._server.tracked(relay):
                if not tcp_is_mobile:
                    # Even without TCP data yet, the client end waits for the confirmation of the connection.
                    send(TunnelDatagram(DatagramKind.DATA, number, token, window=window))
                relay.start(from_tcp)
                await relay.over
        finally:
            del self._relays[key]
            if truth.ending == "finished":
                self._lingering[key] = (stream, asyncio.get_running_loop().time() + LINGER_S)


class TunnelServerEnd(TunnelEndPoint):
    """The split point: datagrams on one side, TCP to the servers on the other."""

    def __init__(self, configuration: Configuration, server: Server, spawn: Spawn) -> None:
        super().__init__(configuration, server)
        self._spawn = spawn
        self._secret = secrets.token_bytes(32)
        self._opening: set[Key] = set()

    def _token(self, address: Address) -> int:
        """A token that only a receiver at this address gets: each stream has its own port, and one token serves all."""
        digest = hashlib.blake2s(address[0].encode("ascii"), key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big") or 1

    def _is_token_right(self, datagram: TunnelDatagram, address: Address) -> bool:
        return datagram.token == self._token(address)

    def _handle_opening(self, datagram: TunnelDatagram, address: Address) -> bool:
        key = (address, datagram.stream)
        if datagram.kind is not DatagramKind.OPEN:
            return key in self._opening
        if not self._is_token_right(datagram, address):
            self._send(TunnelDatagram(DatagramKind.CHALLENGE, datagram.stream, self._token(address)), address)
        elif key in self._relays:
            self._send(TunnelDatagram(DatagramKind.DATA, datagram.stream, datagram.token, window=0), address)
        elif key not in self._opening and key not in self._lingering:
            host, port = decode_destination(datagram.payload)
            self._opening.add(key)
            if not self._spawn(self._serve(key, datagram.token, RequestedDestination(host, port)), address[0]):
                self._opening.discard(key)
                self._server.warn("full", "a tunnel's stream is refused: no more connections are served")
                self._send(
                    TunnelDatagram(DatagramKind.RESET, datagram.stream, datagram.token, payload=b"full"), address
                )
        return True

    async def _serve(self, key: Key, token: int, requested: RequestedDestination) -> None:
        address, number = key
        truth = self._server.new_truth()
        truth.requested = show((requested.host, requested.port))
        truth.mobile.protocol = "udp"
        truth.mobile.local = read_address(self._configuration.tunnel.listen, "tunnel.listen")
        truth.mobile.remote = address
        try:
            sock = await self._server.connect(requested, truth)
            self._opening.discard(key)
            await self._relay(key, token, sock, b"", truth, tcp_is_mobile=False)
        except RefusedError as error:
            truth.ending = error.reason
            self._server.warn(error.reason, str(error), client=show(address), requested=truth.requested)
            self._send(TunnelDatagram(DatagramKind.RESET, number, token, payload=error.reason.encode("ascii")), address)
        except asyncio.CancelledError:
            truth.ending = truth.ending or "stopped"
            raise
        finally:
            self._opening.discard(key)
            self._server.report(truth)


class _ClientPort(TunnelEndPoint):
    """The mobile's end of one stream: each has a port of its own, as each TCP connection would."""

    def __init__(self, configuration: Configuration, server: Server, end: TunnelClientEnd, number: int) -> None:
        super().__init__(configuration, server)
        self._end = end
        self._number = number
        self._opened: asyncio.Future[None] | None = None

    def _is_token_right(self, datagram: TunnelDatagram, address: Address) -> bool:
        return address == self._end.far and datagram.token == self._end.token

    def _handle_opening(self, datagram: TunnelDatagram, address: Address) -> bool:
        opened = self._opened
        if address != self._end.far or datagram.stream != self._number or opened is None or opened.done():
            return False
        if datagram.kind is DatagramKind.CHALLENGE:
            self._end.token = datagram.token
            opened.cancel()
        elif datagram.kind is DatagramKind.RESET:
            reason = datagram.payload.decode("ascii", "replace") or "unreachable"
            opened.set_exception(RefusedError(reason, f"the tunnel's server end refuses: {reason}"))
        elif datagram.kind in (DatagramKind.DATA, DatagramKind.FINISH):
            # What the datagram carries is lost with it and will be sent again.
            opened.set_result(None)
        return True

    async def ask(self, requested: RequestedDestination, connect_s: float) -> None:
        """Request the stream until the server end accepts or refuses. Raises RefusedError."""
        destination = encode_destination(requested.host, requested.port)
        try:
            async with asyncio.timeout(connect_s):
                while True:
                    opened = self._opened = asyncio.get_running_loop().create_future()
                    datagram = TunnelDatagram(DatagramKind.OPEN, self._number, self._end.token, payload=destination)
                    self._send(datagram, self._end.far)
                    done, _ = await asyncio.wait([opened], timeout=OPEN_AGAIN_S)
                    if done and not opened.cancelled():
                        opened.result()
                        return
        except TimeoutError:
            message = f"the tunnel's server end did not open within {connect_s:g} s"
            raise RefusedError("connect-timeout", message) from None

    async def relay(self, sock: socket.socket, from_tcp: bytes, truth: Truth) -> None:
        """Carry the connection to its end."""
        await self._relay((self._end.far, self._number), self._end.token, sock, from_tcp, truth, tcp_is_mobile=True)


class TunnelClientEnd:
    """The mobile's end: TCP of programs on one side, datagrams on the other."""

    def __init__(self, configuration: Configuration, server: Server) -> None:
        self._configuration = configuration
        self._server = server
        self._ports: set[_ClientPort] = set()
        self.far = read_address(configuration.tunnel.server, "tunnel.server")
        #: Sent once by the server end, for all streams of this mobile.
        self.token = 0

    async def carry(self, sock: socket.socket, requested: RequestedDestination, truth: Truth) -> None:
        """Carry an accepted connection to its end. Raises RefusedError."""
        truth.server.protocol = "udp"
        truth.server.remote = self.far
        port = _ClientPort(self._configuration, self._server, self, secrets.randbelow(STREAM_LIMIT))
        try:
            self._server.destinations.refuse_loop(requested.host, requested.port)
            udp = _bound((_nearest(self.far), 0))
            truth.server.local = end_points(udp)[0]
            await port.open(udp)
            self._ports.add(port)
            await port.ask(requested, self._configuration.limits.connect_s)
            truth.server_connected_ns = time.time_ns()
            if requested.answers and (acceptance := requested.answers.acceptance()):
                await asyncio.get_running_loop().sock_sendall(sock, acceptance)
            await port.relay(sock, requested.for_server, truth)
        except RefusedError as error:
            raise AnsweredRefusalError(error, requested.answers.refusal(error) if requested.answers else b"") from None
        finally:
            # The server end may ask again for the last acknowledgement.
            asyncio.get_running_loop().call_later(LINGER_S, self._close, port)

    def _close(self, port: _ClientPort) -> None:
        self._ports.discard(port)
        port.close()

    def forget_idle(self, now: float) -> None:
        """Ports close by themselves."""

    def close(self) -> None:
        """Receive nothing more."""
        for port in list(self._ports):
            self._close(port)


async def open_tunnel(configuration: Configuration, server: Server, spawn: Spawn) -> TunnelClientEnd | TunnelServerEnd:
    """One end of a tunnel, receiving. Raises ProxyError."""
    tunnel = configuration.tunnel
    if tunnel.end is TunnelEnd.CLIENT:
        return TunnelClientEnd(configuration, server)
    end = TunnelServerEnd(configuration, server, spawn)
    await end.open(_bound(read_address(tunnel.listen, "tunnel.listen")))
    return end


def _nearest(far: Address) -> str:
    """Our address on the way to `far`; asking for it sends nothing."""
    with socket.socket(family_of(far[0]), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(far)
        except OSError as error:
            raise ProxyError(f"there is no route to the tunnel's server end {show(far)}: {error.strerror}") from None
        return str(probe.getsockname()[0])


def _bound(address: Address) -> socket.socket:
    sock = socket.socket(family_of(address[0]), socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
    try:
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ProxyError(f"datagrams cannot be received at {show(address)}: {error.strerror}") from None
    return sock
