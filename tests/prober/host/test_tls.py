from __future__ import annotations

import gc
import socket
import ssl

import pytest

from prober.host.reset import reset_on_close
from prober.host.tls import over_tls


@pytest.mark.parametrize("is_server", [True, False])
def test_a_socket_that_was_reset_before_tls_is_not_left_open(is_server: bool) -> None:
    """Collected sockets that are open warn, and warnings fail tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        sock, _ = listener.accept()
    reset_on_close(peer)
    peer.close()
    with sock, pytest.raises(ConnectionResetError):
        over_tls(context, sock, server_side=is_server, server_hostname=None if is_server else "example.net")
    gc.collect()
