"""A TCP proxy for HTTP: whole requests in, whole answers out, and the chance to cache and shrink them in between.

        server ---- leg ---- [ object, cache, recompression ] ---- leg ---- mobile

What store-and-forward costs in time (nothing reaches the mobile before the last byte has come) it may win back in
bytes: the mobile gets an image at a lower quality, text compressed, or what another has fetched before (seed 004,
section IV: "data compression", and the fastest of all that was measured). Objects that outgrow `store.object_bytes`
are passed on as they come, once so much is held.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import h11

from reference_proxy.errors import RefusedError
from reference_proxy.http.cache import Answer, Cache, StoredResponse, Use, is_unmodified, validators
from reference_proxy.http.freshness import Headers, Heuristic, http_date, value, values
from reference_proxy.http.origin import Origin, OriginAnswer, OriginRequest
from reference_proxy.http.peer import HttpPeer
from reference_proxy.http.recompression import compress_text, may_transform, recompress_image
from reference_proxy.interception.request_target import end_to_end, host_field, read_target
from reference_proxy.interception.requested_destination import AnsweredRefusalError, http_refusal
from reference_proxy.sockets import show

if TYPE_CHECKING:
    import contextlib
    import socket
    from collections.abc import Callable

    from reference_proxy.configuration import Configuration
    from reference_proxy.interception.destinations import Destinations
    from reference_proxy.interception.requested_destination import RequestedDestination
    from reference_proxy.limits import Budget
    from reference_proxy.sockets import Address, LegSettings
    from reference_proxy.truth import Truth

#: Pictures that are encoded at the same time: more than the cores of a small machine only wait for each other.
ENCODERS = 2

SAFE = frozenset({b"GET", b"HEAD", b"OPTIONS", b"TRACE"})

_CONDITIONS = frozenset({b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since", b"if-range"})

_BODILESS = frozenset({204, 304})


class HttpServices:
    """What all exchanges of a proxy share."""

    def __init__(
        self, configuration: Configuration, destinations: Destinations, leg: LegSettings, budget: Budget
    ) -> None:
        store = configuration.store
        self.limits = configuration.limits
        self.store = store
        self.destinations = destinations
        self.leg = leg
        self.budget = budget
        heuristic = Heuristic(store.heuristic_share, store.heuristic_limit_s)
        self.cache = Cache(store.cache_bytes, store.cache_object_bytes, heuristic) if store.cache_bytes else None
        self.encoders = ThreadPoolExecutor(ENCODERS, "recompression")
        #: Names this process in Via, to recognise its own requests in a loop.
        self.pseudonym = f"pepscope-{secrets.token_hex(4)}".encode("ascii")

    def takes_whole(self, headers: Headers) -> bool:
        """Whether an answer's media type is one of those that are stored."""
        media_type = (value(headers, b"content-type") or b"").split(b";")[0].strip().lower().decode("latin-1")
        return any(fnmatchcase(media_type or "*/*", pattern.lower()) for pattern in self.store.content_types)

    def close(self) -> None:
        """End the threads."""
        self.encoders.shutdown(cancel_futures=True)


class HttpExchange:
    """All requests of one client's connection."""

    def __init__(
        self,
        services: HttpServices,
        sock: socket.socket,
        requested: RequestedDestination,
        truth: Truth,
        spoofed: Address | None,
        asked: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        """`asked` is entered while the client may be displaced: it has sent no whole request."""
        self._asked = asked
        self._services = services
        self._truth = truth
        self._requested = requested
        self._active_at = 0.0
        self._task: asyncio.Task[None] | None = None
        limits = services.limits
        self._client = HttpPeer(sock, truth.mobile, limits.header_bytes, self._moved, we_serve=True)
        if requested.http_request:
            self._client.protocol.receive_data(requested.http_request)
        self._origin = Origin(
            services.leg,
            truth.server,
            services.budget,
            spoofed=spoofed,
            connect_s=limits.connect_s,
            header_bytes=limits.header_bytes,
            object_bytes=services.store.object_bytes,
            takes_whole=services.takes_whole,
            moved=self._moved,
        )

    def _moved(self) -> None:
        self._active_at = asyncio.get_running_loop().time()

    def advance(self) -> None:
        """Nothing is held back that another could release."""

    def end_if_idle(self, now: float) -> None:
        """End the connection if nothing has moved for too long."""
        if now - self._active_at >= self._services.limits.idle_s:
            self._end("idle")

    def stop(self) -> None:
        """End the connection now."""
        self._end("stopped")

    def _end(self, ending: str) -> None:
        if self._task is not None and not self._truth.ending:
            self._truth.ending = ending
            self._task.cancel()

    async def run(self) -> None:
        """Serve requests until the client has no more. Raises RefusedError."""
        self._task = asyncio.current_task()
        self._moved()
        try:
            while await self._has_more():
                if not await self._serve_one():
                    break
            self._truth.ending = "finished"
            self._client.sock.close()
        except RefusedError as error:
            can_tell = self._client.protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE)
            raise AnsweredRefusalError(error, http_refusal(error) if can_tell else b"") from None
        except OSError:
            self._truth.ending = "mobile-aborted"
        finally:
            self._origin.close()

    async def _has_more(self) -> bool:
        with self._asked():
            return await self._client.has_more()

    async def _serve_one(self) -> bool:
        """Take one request, answer it; whether another may follow on this connection."""
        request, body = await self._take_request()
        self._truth.requests += 1
        headers = [(name, text) for name, text in end_to_end(list(request.headers)) if name != b"expect"]
        if any(self._services.pseudonym in text for text in values(headers, b"via")):
            raise RefusedError("loop", "this proxy has forwarded this request before")
        headers.append((b"via", b"1.1 " + self._services.pseudonym))
        await self._answer(request, headers, body)
        self._origin.release()
        protocol = self._client.protocol
        if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
            protocol.start_next_cycle()
            return True
        return False

    async def _take_request(self) -> tuple[h11.Request, bytes]:
        limits = self._services.limits
        try:
            # The deadline is for the head alone: a large body may take its time, as long as it moves.
            async with asyncio.timeout(limits.handshake_s):
                with self._asked():
                    request = await self._client.next_event()
        except TimeoutError:
            raise RefusedError("handshake-timeout", f"no complete request within {limits.handshake_s:g} s") from None
        if not isinstance(request, h11.Request):
            raise RefusedError("left", "the client closed the connection before its request was complete")
        body = bytearray()
        while isinstance(event := await self._client.next_event(), h11.Data):
            body += event.data
            if len(body) > self._services.store.object_bytes or not self._origin.budget_more(len(event.data)):
                raise RefusedError(
                    "too-large", f"a request must have at most {self._services.store.object_bytes} bytes"
                )
        return request, bytes(body)

    async def _answer(self, request: h11.Request, headers: Headers, body: bytes) -> None:
        method = bytes(request.method)
        addresses, target, uri, headers = await self._place(request, headers)
        cache = self._services.cache
        found = cache.look_up(method, uri, headers) if cache is not None else Answer(Use.FETCH)
        if found.use is Use.UNAVAILABLE:
            await self._send(method, headers, 504, [(b"cache-control", b"no-store")], b"not in the cache\n")
        elif found.use is Use.FRESH and found.stored is not None:
            self._truth.cache_hits += 1
            await self._send_stored(method, headers, found.stored)
        else:
            origin_request = OriginRequest(method, target, headers, body)
            await self._fetch(addresses, origin_request, uri, found)

    async def _place(self, request: h11.Request, headers: Headers) -> tuple[list[Address], bytes, bytes, Headers]:
        """Where to ask, for what, under which name to keep it, and the fields with the Host that goes with it."""
        destinations = self._services.destinations
        if self._requested.answers is None:
            if request.method == b"CONNECT":
                raise RefusedError("malformed", "CONNECT is for explicit proxies")
            # Whatever name the client uses, the server's answer is stored for clients of this address only.
            host = value(headers, b"host") or b""
            uri = b" ".join(
                (show((self._requested.host, self._requested.port)).encode("ascii"), host, bytes(request.target))
            )
            return await destinations.resolve(self._requested), bytes(request.target), uri, headers
        target = read_target(bytes(request.method), bytes(request.target))
        if not target.path:
            raise RefusedError("malformed", "CONNECT must be the first request of a connection")
        self._truth.requested = show((target.host, target.port))
        host = host_field(target)
        headers = [(b"host", host), *(field for field in headers if field[0] != b"host")]
        path = target.path.encode("ascii")
        return await destinations.resolve_name(target.host, target.port), path, host + path, headers

    async def _fetch(self, addresses: list[Address], request: OriginRequest, uri: bytes, found: Answer) -> None:
        cache = self._services.cache
        requested_at = time.time()
        asked = request
        if found.use is Use.VALIDATE and found.stored is not None:
            unconditional = [field for field in request.headers if field[0] not in _CONDITIONS]
            asked = OriginRequest(
                request.method, request.target, unconditional + validators(found.stored), request.body
            )
        answer = await self._origin.fetch(addresses, asked)
        if self._truth.server_connected_ns is None:
            self._truth.server_connected_ns = time.time_ns()
        if answer.status == 304 and found.use is Use.VALIDATE and found.stored is not None and cache is not None:
            self._truth.revalidated += 1
            answer_headers = end_to_end(answer.headers)
            await self._send_stored(
                request.method, request.headers, cache.freshen(uri, found.stored, answer_headers, requested_at)
            )
            return
        answer.headers = end_to_end(answer.headers)
        if value(answer.headers, b"date") is None:
            answer.headers.append((b"date", http_date(time.time())))
        if not answer.is_whole:
            await self._pass_on(answer)
            return
        headers, body = answer.headers, bytes(answer.body)
        if self._services.store.recompresses and request.method == b"GET" and may_transform(answer.status, headers):
            headers, body = await self._recompress(headers, body)
        if cache is not None:
            if request.method in SAFE:
                cache.store(request.method, uri, request.headers, (answer.status, headers, body), requested_at)
            elif answer.status < 400:
                cache.invalidate(uri)
        await self._send(request.method, request.headers, answer.status, headers, body)

    async def _recompress(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        store = self._services.store
        smaller = await asyncio.get_running_loop().run_in_executor(
            self._services.encoders, recompress_image, headers, body, store.image_quality, store.image_pixels
        )
        if smaller is None:
            return headers, body
        self._truth.recompressed += 1
        self._truth.recompression_saved_bytes += smaller.saved_bytes
        return smaller.headers, smaller.body

    async def _send_stored(self, method: bytes, request: Headers, stored: StoredResponse) -> None:
        age = (b"age", str(int(stored.age_s(time.time()))).encode("ascii"))
        headers = [*(field for field in stored.headers if field[0] != b"age"), age]
        if is_unmodified(request, stored):
            kept = (b"cache-control", b"content-location", b"date", b"etag", b"expires", b"vary", b"age")
            await self._send(method, request, 304, [field for field in headers if field[0] in kept], b"")
        else:
            await self._send(method, request, stored.status, headers, stored.body)

    async def _send(self, method: bytes, request: Headers, status: int, headers: Headers, body: bytes) -> None:
        """Give the client a whole answer."""
        via = (b"via", b"1.1 " + self._services.pseudonym)
        if self._services.store.compresses_text and method == b"GET" and may_transform(status, headers):
            smaller = await asyncio.get_running_loop().run_in_executor(
                self._services.encoders, compress_text, request, headers, body
            )
            if smaller is not None:
                self._truth.recompressed += 1
                self._truth.recompression_saved_bytes += smaller.saved_bytes
                headers, body = smaller.headers, smaller.body
        if method != b"HEAD" and status not in _BODILESS:
            length = (b"content-length", str(len(body)).encode("ascii"))
            headers = [*(field for field in headers if field[0] != b"content-length"), length]
        await self._client.send(h11.Response(status_code=status, headers=[*headers, via]))
        if body and method != b"HEAD" and status not in _BODILESS:
            await self._client.send(h11.Data(data=body))
        await self._client.send(h11.EndOfMessage())

    async def _pass_on(self, answer: OriginAnswer) -> None:
        """Give the client what is held of an answer that is not stored, then the rest as it comes."""
        via = (b"via", b"1.1 " + self._services.pseudonym)
        self._truth.manner = "relayed"
        await self._client.send(h11.Response(status_code=answer.status, headers=[*answer.headers, via]))
        if answer.body:
            await self._client.send(h11.Data(data=bytes(answer.body)))
        answer.body.clear()
        self._origin.release()
        while (piece := await self._origin.next_piece()) is not None:
            await self._client.send(h11.Data(data=piece))
        await self._client.send(h11.EndOfMessage())
