"""UDP echo, for round-trip times that no TCP proxy has a hand in.

A datagram begins with the name of a session that lives; it comes back as it is. So an answer is never longer than its
question, and a host that forges a source address has no session to do it with.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading

from prober.protocol.control_messages import is_session
from prober.server.context import ServiceContext
from prober.server.refusal import RefusedError
from prober.server.sockets.admission import Rate
from prober.server.sockets.listening import Port

_SESSION_BYTES = 26
_WAKE_S = 0.5


class UdpEcho:
    """A thread that echoes."""

    def __init__(self, context: ServiceContext, port: Port) -> None:
        self._context, self._port = context, port
        self._rate = Rate(context.limits.datagrams_per_s, context.limits.datagrams_per_s)
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="pepscope-udp-echo", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._is_ending = True
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in self._port.sockets:
                selector.register(sock, selectors.EVENT_READ)
            while not self._is_ending:
                for key, _ in selector.select(_WAKE_S):
                    self._echo(key.fileobj)  # type: ignore[arg-type]

    def _echo(self, sock: socket.socket) -> None:
        most = self._context.limits.datagram_bytes
        with contextlib.suppress(OSError):
            # One byte more than allowed identifies longer ones, which get no answer.
            data, peer = sock.recvfrom(most + 1)
            name = data[:_SESSION_BYTES].decode("ascii", "replace")
            session = self._context.sessions.find(name) if len(data) <= most and is_session(name) else None
            if session is None or not self._rate.take(name):
                return
            try:
                session.take(2 * len(data))
            except RefusedError:
                return
            sock.sendto(data, peer)
