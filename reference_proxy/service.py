"""The life of a proxy: it listens, serves each connection in its own task, drains on SIGTERM, stops on a second."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import signal
import socket
from typing import TYPE_CHECKING

from pepscope.command_line.metrics import serve_metrics
from reference_proxy.configuration import Interception, Mode, TunnelEnd
from reference_proxy.consistency import relay_limit
from reference_proxy.limits import Admission, LimitedWarnings
from reference_proxy.metrics import Counts, ProxyCollector
from reference_proxy.serving import Server
from reference_proxy.sockets import LegSettings, listen, read_address, reset, show
from reference_proxy.truth import TruthWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from reference_proxy.configuration import Configuration
    from reference_proxy.configuration import Leg as LegConfiguration
    from reference_proxy.sockets import Address

logger = logging.getLogger("reference_proxy")

BACKLOG = 1024

#: Connections taken from a listener before others get their turn.
ACCEPTED_AT_ONCE = 64

SWEEP_S = 0.25

#: What a stopped relay may take to write its truth.
STOP_S = 0.25

#: No descriptors or memory left: try again a little later, since no event reports when there are some.
ACCEPT_PAUSE_S = 0.1

#: Full, and nobody's request is awaited: look again after so long.
ROOM_PAUSE_S = 0.05

_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def leg_settings(leg: LegConfiguration) -> LegSettings:
    """The part of a leg's configuration that sockets have."""
    return LegSettings(leg.congestion_control, leg.receive_buffer_bytes, leg.send_buffer_bytes, leg.window_clamp_bytes)


class Service:
    """One running proxy."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        limits = configuration.limits
        self._admission = Admission(min(limits.connections, relay_limit(configuration)), limits.connections_per_client)
        self._warnings = LimitedWarnings()
        self._counts = Counts()
        self._truth = TruthWriter(configuration.truth)
        self._listeners: list[socket.socket] = []
        #: Clients of the tasks that serve, until they are counted no more.
        self._tasks: dict[asyncio.Task[None], str | None] = {}
        self._paused = False
        self._is_looking = False
        self._draining = asyncio.Event()
        self._stopping = asyncio.Event()
        self._server = Server(configuration, self._counts, self._warnings, self._truth)

    async def run(self, ready: Callable[[list[Address]], None]) -> None:
        """Serve until a signal. Raises ProxyError where it cannot begin."""
        loop = asyncio.get_running_loop()
        configuration = self._configuration
        stop_metrics: Callable[[], None] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._handle_signal)
        sweeper = loop.create_task(self._sweep())
        try:
            self._open_listeners()
            await self._server.start(self._spawn_tunnelled)
            if configuration.metrics:
                address = read_address(configuration.metrics, "metrics")
                collector = ProxyCollector(self._counts, lambda: self._admission.admitted)
                stop_metrics = serve_metrics(*address, collector)
            own = [sock.getsockname()[:2] for sock in self._listeners]
            self._server.destinations.avoid(own)
            self._resume()
            ready(own)
            await self._draining.wait()
            await self._drain()
        finally:
            self._close_listeners()
            self._server.stop()
            await self._end_tasks()
            await self._server.close()
            sweeper.cancel()
            if stop_metrics is not None:
                stop_metrics()
            self._truth.close()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _handle_signal(self) -> None:
        if self._draining.is_set():
            self._stopping.set()
        self._draining.set()

    def _open_listeners(self) -> None:
        configuration = self._configuration
        if configuration.mode is Mode.UDP_TUNNEL and configuration.tunnel.end is TunnelEnd.SERVER:
            return
        transparent = configuration.interception.needs_rules
        for text in configuration.listen:
            address = read_address(text, "listen")
            leg = leg_settings(configuration.mobile)
            self._listeners.append(listen(address, leg, transparent=transparent, backlog=BACKLOG))
            if configuration.interception is Interception.EXPLICIT and not address[0].startswith(("127.", "::1")):
                logger.info(
                    "explicit clients may come from other machines",
                    extra={"fields": {"event": "listens-widely", "listen": show(address)}},
                )

    def _close_listeners(self) -> None:
        self._pause()
        for sock in self._listeners:
            sock.close()
        self._listeners.clear()

    def _pause(self) -> None:
        for sock in self._listeners:
            asyncio.get_running_loop().remove_reader(sock)
        self._paused = True

    def _resume(self) -> None:
        for sock in self._listeners:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)
        self._paused = False

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if self._admission.is_full and not self._make_room():
                # The kernel's queue holds the next ones, the others wait.
                self._warnings.warn("full", "as many connections as allowed: no more are accepted for now")
                self._pause()
                if not self._is_looking:
                    self._is_looking = True
                    asyncio.get_running_loop().call_later(ROOM_PAUSE_S, self._look_for_room)
                return
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._warnings.warn("no-resources", f"a connection cannot be accepted: {error.strerror}")
                self._pause()
                asyncio.get_running_loop().call_later(ACCEPT_PAUSE_S, self._resume_if_paused)
                return
            self._serve_admitted(sock, peer[0])

    def _serve_admitted(self, sock: socket.socket, client: str) -> None:
        self._counts.accepted += 1
        if not self._admission.admit(client):
            self._counts.refused["too-many-of-client"] += 1
            self._warnings.warn("too-many-of-client", "a client has as many connections as allowed", client=client)
            reset(sock)
            return
        sock.setblocking(False)
        self._spawn(self._server.serve(sock), client)

    def _spawn_tunnelled(self, serving: Coroutine[None, None, None], client: str) -> bool:
        """Serve what came by the tunnel, if there is room."""
        if self._draining.is_set() or not self._admission.admit(client):
            serving.close()
            return False
        self._counts.accepted += 1
        self._spawn(serving, client)
        return True

    def _spawn(self, serving: Coroutine[None, None, None], client: str) -> None:
        task = asyncio.get_running_loop().create_task(serving)
        self._tasks[task] = client
        task.add_done_callback(self._ended)

    def _make_room(self) -> bool:
        """End a connection whose client has not completed its request; whether there is one."""
        task = self._server.asking.displace()
        if task is None:
            return False
        self._release(task)
        return True

    def _release(self, task: asyncio.Task[None]) -> None:
        client = self._tasks.get(task)
        if client is not None:
            self._tasks[task] = None
            self._admission.release(client)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._release(task)
        del self._tasks[task]
        self._resume_if_paused()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a connection ended by an error of ours", exc_info=error, extra={"fields": {"event": "bug"}})

    def _look_for_room(self) -> None:
        """Resume once a client asks that could make room; those that were accepted last had not begun to."""
        self._is_looking = self._paused and not (
            self._draining.is_set() or self._server.asking or not self._admission.is_full
        )
        if self._is_looking:
            asyncio.get_running_loop().call_later(ROOM_PAUSE_S, self._look_for_room)
        elif self._paused and not self._draining.is_set():
            self._resume()

    def _resume_if_paused(self) -> None:
        if self._paused and not self._draining.is_set() and not self._admission.is_full:
            self._resume()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            self._server.end_idle(loop.time())
            self._warnings.flush()

    async def _end_tasks(self) -> None:
        """Relays have been stopped; what still shakes hands or dials is cut off."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drain(self) -> None:
        """Let what runs finish, for so long as allowed or until the second signal."""
        self._close_listeners()
        drain_s = self._configuration.limits.drain_s
        logger.info("draining", extra={"fields": {"event": "draining", "connections": len(self._tasks)}})
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            async with asyncio.timeout(drain_s):
                while self._tasks and not stopping.done():
                    await asyncio.wait([*self._tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            pass
        stopping.cancel()
        if self._tasks:
            self._warnings.warn("stopped", "connections are ended", connections=len(self._tasks))


def run(configuration: Configuration, ready: Callable[[list[Address]], None]) -> None:
    """Run a proxy until a signal ends it. Raises ProxyError.

    On asyncio's own loop, not on uvloop's, which loses aborts: docs/decisions/009-event-loop-of-the-proxy.md.
    """

    # Two descriptors a connection: the kernel's default for programs (1024) is for those that do not know better.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    async def main() -> None:
        await Service(configuration).run(ready)

    asyncio.run(main())
