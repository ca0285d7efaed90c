"""TLS on a connected socket that is closed wherever that fails."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import Any


class _ResetClosed(ssl.SSLSocket):
    """Closed once it turns out that its peer has reset the connection.

    `wrap_socket` asks for the peer first, and until Python 3.12 leaves a socket open that has none any more.
    """

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None


def over_tls(
    context: ssl.SSLContext,
    sock: socket.socket,
    *,
    server_hostname: str | None = None,
    server_side: bool = False,
    do_handshake_on_connect: bool = True,
) -> ssl.SSLSocket:
    """`wrap_socket`, which takes `sock` over and leaves nothing open where it fails. Raises OSError, ValueError."""
    context.sslsocket_class = _ResetClosed
    return context.wrap_socket(
        sock,
        server_side=server_side,
        do_handshake_on_connect=do_handshake_on_connect,
        server_hostname=server_hostname,
    )
