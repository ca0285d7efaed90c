"""Accepting: one thread for all listeners, one for each connection that is let in, and an end for all of them."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pepscope.errors import PepscopeError
from prober.server.refusal import RefusedError
from prober.server.sockets.admission import Admission, Admitted, Complaints
from prober.server.sockets.listening import Port

logger = logging.getLogger("prober")

#: No descriptors or memory left: try again a little later, since there is no event when there are some.
_PAUSE_S = 0.1
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: How long connections may take to end once they were shut down.
_END_S = 3.0

_RESET = b"\1\0\0\0\0\0\0\0"


@dataclass(slots=True, eq=False)
class Connection:
    """An accepted connection."""

    sock: socket.socket
    #: Who it is with, in digits, and `ADDRESS:PORT` of it.
    address: str
    peer: str
    #: This end's address and port.
    local_address: str
    local_port: int
    admitted: Admitted = field(init=False)
    accepted_s: float = field(default_factory=time.monotonic)
    #: On whose behalf it is served, once that is known.
    owner: object = None


Serve = Callable[[Connection], None]


def reset(sock: socket.socket) -> None:
    """Close with a reset, dropping what is queued."""
    with contextlib.suppress(OSError):
        socket.socket.setsockopt(sock, socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()


def shut_down(sock: socket.socket) -> None:
    """End a connection that another thread serves."""
    with contextlib.suppress(OSError):
        # The plain socket's method: that of a TLS socket is not made for another thread.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def show(address: str, port: int) -> str:
    """`ADDRESS:PORT`, with brackets around IPv6."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Acceptor:
    """Serves the connections of many ports."""

    def __init__(self, admission: Admission, complaints: Complaints) -> None:
        self._admission, self._complaints = admission, complaints
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._living: dict[Connection, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="pepscope-accept", daemon=True)

    def add(self, port: Port, serve: Serve) -> None:
        """Have `serve` called with each connection to this port, in a thread of its own; before `start`."""
        for sock in port.sockets:
            self._selector.register(sock, selectors.EVENT_READ, serve)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Accept no more, shut every connection down, and wait a moment for their threads."""
        self._is_ending = True
        os.write(self._wake_write, b".")
        self._thread.join()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        with self._lock:
            living = dict(self._living)
        for connection in living:
            shut_down(connection.sock)
        deadline = time.monotonic() + _END_S
        for thread in living.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def end_of(self, owner: object) -> None:
        """Shut down every connection that is served on this behalf."""
        with self._lock:
            owned = [connection for connection in self._living if connection.owner is owner]
        for connection in owned:
            shut_down(connection.sock)

    def _run(self) -> None:
        while not self._is_ending:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._accept(key.fileobj, key.data)  # type: ignore[arg-type]

    def _accept(self, listener: socket.socket, serve: Serve) -> None:
        try:
            sock, name = listener.accept()
        except OSError as error:
            if error.errno in _OUT_OF_RESOURCES:
                self._complaints.complain("no-resources", f"a connection cannot be accepted: {error.strerror}")
                time.sleep(_PAUSE_S)
            return
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            local = sock.getsockname()
        except OSError:
            # It is over already.
            sock.close()
            return
        connection = Connection(sock, name[0], show(*name[:2]), local[0], local[1])
        try:
            connection.admitted = self._admission.admit(name[0], lambda: shut_down(connection.sock))
        except RefusedError as error:
            self._complaints.complain("refused", str(error), peer=connection.peer)
            reset(sock)
            return
        thread = threading.Thread(target=self._serve, args=(connection, serve), daemon=True)
        with self._lock:
            self._living[connection] = thread
        try:
            thread.start()
        except RuntimeError as error:
            self._complaints.complain("no-resources", f"a connection cannot be served: {error}")
            self._forget(connection)

    def _serve(self, connection: Connection, serve: Serve) -> None:
        try:
            serve(connection)
        except (OSError, PepscopeError):
            # The peer closed the connection, or was refused.
            pass
        except Exception:
            logger.exception("a connection ended by an error of ours", extra={"fields": {"event": "bug"}})
        finally:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):
            connection.sock.close()
        with self._lock:
            del self._living[connection]
        self._admission.release(connection.admitted)
