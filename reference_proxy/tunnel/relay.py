"""Between a TCP connection and a stream of a UDP tunnel: what `reference_proxy.relay.split` is between two of TCP."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from reference_proxy.configuration import Aborts
from reference_proxy.sockets import reset
from reference_proxy.tunnel.datagram import DatagramKind, TunnelDatagram

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_proxy.relay.split import RelaySettings
    from reference_proxy.truth import LegTruth, Truth
    from reference_proxy.tunnel.stream import TunnelStream

CHUNK_BYTES = 64 << 10


class TunnelRelay:
    """Passes bytes on until both directions have ended; `over` is then done."""

    def __init__(
        self,
        sock: socket.socket,
        stream: TunnelStream,
        send: Callable[[TunnelDatagram], None],
        settings: RelaySettings,
        truth: Truth,
        *,
        tcp_is_mobile: bool,
    ) -> None:
        """`send` takes datagrams to the other end of the tunnel."""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._stream = stream
        self._send = send
        self._settings = settings
        self._truth = truth
        self._tcp_is_mobile = tcp_is_mobile
        self._tcp: LegTruth = truth.mobile if tcp_is_mobile else truth.server
        self._udp: LegTruth = truth.server if tcp_is_mobile else truth.mobile
        self._is_read = self._is_written = self._is_shut = False
        self._has_finished = False
        self._aborted_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._active_at = self._loop.time()
        self.over: asyncio.Future[None] = self._loop.create_future()

    def start(self, from_tcp: bytes = b"") -> None:
        """Begin; `from_tcp` was read before."""
        if from_tcp:
            self._stream.write(from_tcp)
        self.advance()

    def handle_datagram(self, datagram: TunnelDatagram) -> None:
        """One datagram of this stream."""
        if self._aborted_at is None and not self.over.done():
            self._active_at = self._loop.time()
            self._stream.handle_datagram(self._active_at, datagram)
            self.advance()

    def advance(self) -> None:
        """Move all that can move."""
        if self.over.done() or self._aborted_at is not None:
            return
        stream = self._stream
        if stream.is_broken:
            self._break(by_tcp=False)
            return
        if not self._give():
            return
        now = self._loop.time()
        while (datagram := stream.poll_transmit(now)) is not None:
            self._udp.given_bytes += len(datagram.payload)
            self._send(datagram)
        if stream.is_delivered and self._is_shut:
            self._truth.ending = "finished"
            self._finish(aborts=False)
            return
        self._await_bytes(stream.room > 0 and not self._has_finished)
        self._await_room(stream.readable > 0)
        self._set_timer(stream.poll_timeout())

    def _give(self) -> bool:
        """Hand TCP what came by UDP; False if the connection is over."""
        stream = self._stream
        try:
            while stream.readable:
                count = self._sock.send(stream.peek(CHUNK_BYTES))
                stream.read(count)
                self._tcp.given_bytes += count
                self._udp.taken_bytes += count
            if stream.peer_finished and not self._is_shut:
                self._is_shut = True
                self._sock.shutdown(socket.SHUT_WR)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._break(by_tcp=True)
            return False
        return True

    def _take(self) -> None:
        try:
            data = self._sock.recv(min(self._stream.room, CHUNK_BYTES)) if self._stream.room else None
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._break(by_tcp=True)
            return
        if data:
            self._active_at = self._loop.time()
            self._tcp.taken_bytes += len(data)
            self._stream.write(data)
        elif data is not None:
            self._has_finished = True
            self._stream.finish()
        self.advance()

    def _handle_timer(self) -> None:
        self._timer = None
        self._stream.handle_timeout(self._loop.time())
        self.advance()

    def _break(self, *, by_tcp: bool) -> None:
        """One leg was aborted: the other follows as configured."""
        if self.over.done() or self._aborted_at is not None:
            return
        self._truth.ending = "mobile-aborted" if by_tcp == self._tcp_is_mobile else "server-aborted"
        self._aborted_at = self._loop.time()
        self._quiet()
        if by_tcp:
            reset(self._sock)
        if self._settings.aborts is Aborts.AT_ONCE:
            self._propagate()
        elif self._settings.aborts is Aborts.AFTER_DELAY:
            self._timer = self._loop.call_later(self._settings.abort_delay_s, self._propagate)

    def _propagate(self) -> None:
        if not self.over.done() and self._aborted_at is not None:
            self._truth.abort_propagated_after_s = round(self._loop.time() - self._aborted_at, 6)
            self._finish(aborts=True)

    def end_if_idle(self, now: float) -> None:
        """End the connection if nothing has moved for too long."""
        if now - self._active_at >= self._settings.idle_s and not self.over.done():
            self._truth.ending = self._truth.ending or "idle"
            self._finish(aborts=True)

    def stop(self) -> None:
        """End the connection now."""
        if not self.over.done():
            self._truth.ending = self._truth.ending or "stopped"
            self._finish(aborts=True)

    def _finish(self, *, aborts: bool) -> None:
        self._quiet()
        if aborts:
            reset(self._sock)
            if not self._stream.is_broken:
                self._send(TunnelDatagram(DatagramKind.RESET, 0))
        else:
            self._sock.close()
        self.over.set_result(None)

    def _quiet(self) -> None:
        self._await_bytes(wanted=False)
        self._await_room(wanted=False)
        self._set_timer(None)

    def _await_bytes(self, wanted: bool) -> None:
        if wanted != self._is_read:
            self._is_read = wanted
            if wanted:
                self._loop.add_reader(self._sock, self._take)
            else:
                self._loop.remove_reader(self._sock)

    def _await_room(self, wanted: bool) -> None:
        if wanted != self._is_written:
            self._is_written = wanted
            if wanted:
                self._loop.add_writer(self._sock, self.advance)
            else:
                self._loop.remove_writer(self._sock)

    def _set_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._handle_timer)
