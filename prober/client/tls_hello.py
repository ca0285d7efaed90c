"""The first message of a TLS client."""

from __future__ import annotations

import contextlib
import ssl


def client_hello() -> bytes:
    """The first flight of a TLS client (RFC 8446, section 4.1.2)."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()
