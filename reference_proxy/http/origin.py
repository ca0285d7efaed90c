"""Answers from origin servers, taken whole before anything is passed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import h11

from reference_proxy.errors import MalformedError, RefusedError
from reference_proxy.http.peer import HttpPeer
from reference_proxy.interception.destinations import dial
from reference_proxy.sockets import end_points, reset

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_proxy.http.freshness import Headers
    from reference_proxy.limits import Budget
    from reference_proxy.sockets import Address, LegSettings
    from reference_proxy.truth import LegTruth

#: Idempotent methods, which may be sent twice (RFC 9110, section 9.2.2).
IDEMPOTENT = frozenset({b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"})


@dataclass(frozen=True, slots=True)
class OriginRequest:
    """What is asked of a server; `headers` without framing."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes


@dataclass(slots=True)
class OriginAnswer:
    """An answer; where it may not be stored, or outgrew it, `is_whole` is False and the rest is still to be taken."""

    status: int
    headers: Headers
    body: bytearray = field(default_factory=bytearray)
    is_whole: bool = True


class _StaleConnectionError(Exception):
    """The server had closed a persistent connection before it answered."""


class Origin:
    """The server leg of one client: a persistent connection for its requests."""

    def __init__(
        self,
        settings: LegSettings,
        truth: LegTruth,
        budget: Budget,
        *,
        spoofed: Address | None,
        connect_s: float,
        header_bytes: int,
        object_bytes: int,
        takes_whole: Callable[[Headers], bool],
        moved: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._truth = truth
        self._budget = budget
        self._spoofed = spoofed
        self._connect_s = connect_s
        self._header_bytes = header_bytes
        self._object_bytes = object_bytes
        self._takes_whole = takes_whole
        self._moved = moved
        self._peer: HttpPeer | None = None
        self._address: Address | None = None
        self._taken_bytes = 0

    async def fetch(self, addresses: list[Address], request: OriginRequest) -> OriginAnswer:
        """Ask one of these addresses; the answer is whole, unless it is too large. Raises RefusedError."""
        if self._peer is not None and self._address in addresses:
            try:
                return await self._ask(request)
            except _StaleConnectionError:
                if request.method not in IDEMPOTENT:
                    raise RefusedError("unreachable", "the server closed the connection instead of answering") from None
        self._disconnect()
        sock = await dial(addresses, self._settings, spoofed=self._spoofed, connect_s=self._connect_s)
        self._truth.local, self._truth.remote = end_points(sock)
        self._peer = HttpPeer(sock, self._truth, self._header_bytes, self._moved, we_serve=False)
        self._address = sock.getpeername()[:2]
        try:
            return await self._ask(request)
        except _StaleConnectionError:
            raise RefusedError("unreachable", "the server closed the connection instead of answering") from None

    async def _ask(self, request: OriginRequest) -> OriginAnswer:
        assert self._peer is not None
        headers = list(request.headers)
        if request.body or request.method in (b"POST", b"PUT", b"PATCH"):
            headers.append((b"content-length", str(len(request.body)).encode("ascii")))
        try:
            await self._peer.send(h11.Request(method=request.method, target=request.target, headers=headers))
            if request.body:
                await self._peer.send(h11.Data(data=request.body))
            await self._peer.send(h11.EndOfMessage())
            head = await self._peer.next_event()
            while isinstance(head, h11.InformationalResponse):
                head = await self._peer.next_event()
        except (OSError, h11.LocalProtocolError):
            raise _StaleConnectionError from None
        except MalformedError as error:
            # h11 raises this also where a persistent connection was closed meanwhile.
            if self._peer.protocol.trailing_data == (b"", True):
                raise _StaleConnectionError from None
            raise RefusedError("unreachable", f"the server's answer must be HTTP: {error}") from None
        if not isinstance(head, h11.Response):
            raise _StaleConnectionError
        answer = OriginAnswer(head.status_code, list(head.headers))
        if self._takes_whole(answer.headers):
            await self._take(answer)
        else:
            answer.is_whole = False
        return answer

    async def _take(self, answer: OriginAnswer) -> None:
        while (piece := await self.next_piece()) is not None:
            answer.body += piece
            if len(answer.body) > self._object_bytes or not self.budget_more(len(piece)):
                answer.is_whole = False
                return

    def budget_more(self, count: int) -> bool:
        """Count bytes of a request to the object under way, if there is room for them."""
        if not self._budget.take(count):
            return False
        self._taken_bytes += count
        return True

    async def next_piece(self) -> bytes | None:
        """More of the answer's body; None at its end. Raises RefusedError where the server breaks off."""
        assert self._peer is not None
        try:
            event = await self._peer.next_event()
        except (OSError, RefusedError) as error:
            self._disconnect()
            raise RefusedError("unreachable", f"the server broke off its answer: {error}") from None
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise RefusedError("unreachable", "the server broke off its answer")
        self._keep()
        return None

    def _keep(self) -> None:
        """Reuse the connection, if both sides allow it."""
        assert self._peer is not None
        protocol = self._peer.protocol
        if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
            protocol.start_next_cycle()
        else:
            self._peer.sock.close()
            self._peer = None

    def release(self) -> None:
        """The object that was taken is no longer held."""
        self._budget.give_back(self._taken_bytes)
        self._taken_bytes = 0

    def close(self) -> None:
        """End the connection, and give all memory back."""
        self.release()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._peer is not None:
            if self._peer.protocol.their_state in (h11.IDLE, h11.DONE, h11.CLOSED):
                self._peer.sock.close()
            else:
                reset(self._peer.sock)
            self._peer = None
