"""A server on this host that says what a function makes of each request, over plain TCP or TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def answering(answer: Callable[[bytes], bytes], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Its port, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer, context), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def _serve(server: socket.socket, answer: Callable[[bytes], bytes], context: ssl.SSLContext | None) -> None:
    while True:
        try:
            link, _ = server.accept()
        except OSError:
            return
        with link, contextlib.suppress(OSError):
            link.settimeout(60)
            spoken = link if context is None else context.wrap_socket(link, server_side=True)
            with spoken:
                spoken.sendall(answer(spoken.recv(65_536)))
