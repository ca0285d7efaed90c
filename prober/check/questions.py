"""The first bytes of ordinary connections: a request for a page's head, or a TLS handshake's first flight."""

from __future__ import annotations

import contextlib
import ipaddress
import ssl

from prober.check.targets import Target


def question(target: Target) -> bytes:
    """What a client of this target says first."""
    return _client_hello(target.host) if target.tls else _head_request(target)


def http_status(head: bytes) -> int | None:
    """The status of an HTTP answer; None where it is none."""
    words = head.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return None
    return int(words[1])


def http_field(head: bytes, name: str) -> str:
    """What can be printed of a header field of an HTTP answer; empty where it is not there."""
    for line in head.split(b"\r\n\r\n", 1)[0].split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name.lower().encode():
            return "".join(each for each in value.strip().decode("latin-1") if each.isprintable())
    return ""


def _head_request(target: Target) -> bytes:
    return (
        f"HEAD / HTTP/1.1\r\nHost: {target.host}\r\nUser-Agent: pepscope-check\r\nConnection: close\r\n\r\n"
    ).encode("ascii", "replace")


def _client_hello(host: str) -> bytes:
    context = ssl.create_default_context()
    if _is_address(host):
        context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    handshake = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=None if _is_address(host) else host)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return outgoing.read()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
