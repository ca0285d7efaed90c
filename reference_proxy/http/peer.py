"""One HTTP/1.1 connection: h11 over a socket, with byte counts. h11 implements the protocol, this moves its bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import h11

from reference_proxy.errors import MalformedError, RefusedError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from reference_proxy.truth import LegTruth

READ_BYTES = 256 << 10

Event: TypeAlias = "h11.Request | h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage"


class HttpPeer:
    """The client of an exchange, whom we serve, or the server, whom we ask."""

    def __init__(
        self,
        sock: socket.socket,
        truth: LegTruth,
        header_bytes: int,
        moved: Callable[[], None],
        *,
        we_serve: bool,
    ) -> None:
        """`moved` is called whenever bytes went either way."""
        self.sock = sock
        self.protocol = h11.Connection(h11.SERVER if we_serve else h11.CLIENT, max_incomplete_event_size=header_bytes)
        self._truth = truth
        self._moved = moved
        self._header_bytes = header_bytes

    async def next_event(self) -> Event | None:
        """The peer's next event; None once it has closed. Raises RefusedError for invalid HTTP, OSError."""
        while True:
            try:
                event = self.protocol.next_event()
            except h11.RemoteProtocolError as error:
                if error.error_status_hint == 431:
                    raise RefusedError("header-too-large", "the head of a message is too large") from None
                raise MalformedError(f"the message must be HTTP: {error}") from None
            if event is h11.NEED_DATA:
                await self._receive()
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return None
            else:
                return event  # type: ignore[return-value]

    async def has_more(self) -> bool:
        """Wait until the peer sends anything; False where it closed first."""
        if not self.protocol.trailing_data[0]:
            await self._receive()
        return bool(self.protocol.trailing_data[0])

    async def _receive(self) -> None:
        if self.protocol.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        data = await asyncio.get_running_loop().sock_recv(self.sock, READ_BYTES)
        self._truth.taken_bytes += len(data)
        self._moved()
        try:
            self.protocol.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise MalformedError(f"the message must be HTTP: {error}") from None

    async def send(self, event: h11.Event) -> None:
        """Say something. Raises OSError."""
        data = self.protocol.send(event)
        if data:
            await self._send_bytes(data)

    async def _send_bytes(self, data: bytes) -> None:
        # In parts, so that a slow receiver is seen to be alive.
        view = memoryview(data)
        for start in range(0, len(view), READ_BYTES):
            part = view[start : start + READ_BYTES]
            await asyncio.get_running_loop().sock_sendall(self.sock, part)
            self._truth.given_bytes += len(part)
            self._moved()
