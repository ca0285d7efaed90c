"""What answers at the servers behind and beside nginx, for all of them in one process.

`python -m benchmarks.one_ended.site SETTINGS READY`: JSON list of `{"namespace", "unix"}`. In each namespace UDP echo
(7), DNS (53), NTP (123) and QUIC-like packets (443) are answered; with `unix`, also the greeting protocol (TCP 2525)
and, on that socket, the pages that nginx asks for: `/dyn?bytes=N&delay=S`, `/dyn?pictures=URL,URL`, uploads.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from benchmarks.fresh.namespaces import enter
from benchmarks.one_ended.datagrams import dns_answer, ntp_answer, quic_answers
from benchmarks.one_ended.plan import GREETING

_ECHO, _DNS, _NTP, _QUIC = 7, 53, 123, 443
_QUIC_COMPUTE_S = (0.0005, 0.003)
#: What all pages are cut from.
TEXT = random.Random(1).randbytes(1_000_000).hex().encode()


class Datagrams(asyncio.DatagramProtocol):
    """Answers on one UDP port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._transport: asyncio.DatagramTransport | None = None
        self._peers: dict[bytes, bytes] = {}
        self._names: dict[Any, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.DatagramTransport)
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer, QUIC a little later than the rest: it computes."""
        transport = self._transport
        assert transport is not None
        if self._port == _QUIC:
            own = self._names.setdefault(addr, os.urandom(8))
            answers = quic_answers(data, own, self._peers)
            wait = random.uniform(*_QUIC_COMPUTE_S)
            asyncio.get_running_loop().call_later(wait, _send_all, transport, answers, addr)
            return
        answer = {_DNS: dns_answer, _NTP: ntp_answer}.get(self._port, bytes)
        transport.sendto(answer(data), addr)


def _send_all(transport: asyncio.DatagramTransport, answers: list[bytes], address: tuple[str | Any, int]) -> None:
    for one in answers:
        transport.sendto(one, address)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak first, then answer every line at once, as SMTP does (RFC 5321)."""
    try:
        writer.write(b"220 mail.example ESMTP ready\r\n")
        while line := await reader.readline():
            word = line[:4].upper()
            if word == b"EHLO":
                writer.write(b"250-mail.example\r\n250-SIZE 10000000\r\n250 PIPELINING\r\n")
            elif word == b"DATA":
                writer.write(b"354 go on\r\n")
            elif word == b"QUIT":
                writer.write(b"221 bye\r\n")
                break
            elif line == b".\r\n" or word in (b"MAIL", b"RCPT", b"NOOP"):
                writer.write(b"250 OK\r\n")
        await writer.drain()
    except OSError:
        return
    finally:
        writer.close()


async def serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One HTTP/1.0 exchange with nginx."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        await reader.readexactly(int(headers.get("content-length", 0)))
        wish = dict(parse_qsl(urlsplit(first.split(" ")[1]).query))
        await asyncio.sleep(float(wish.get("delay", 0)))
        page, kind = TEXT[: int(wish.get("bytes", 200))], "text/plain"
        if "pictures" in wish:
            kind = "text/html"
            tags = "".join(f'<img src="{source}">' for source in wish["pictures"].split(","))
            page = f"<!DOCTYPE html><html><body>{tags}</body></html>".encode()
        writer.write(
            f"HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(page)}\r\n"
            "Cache-Control: no-store\r\n\r\n".encode()
            + page
        )
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return
    finally:
        writer.close()


def _bound(kind: socket.SocketKind, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if kind == socket.SOCK_STREAM:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.bind(("0.0.0.0", port))
    made.setblocking(False)
    return made


async def _serve(sites: list[dict[str, Any]], ready: Path) -> None:
    loop = asyncio.get_running_loop()
    kept: list[object] = []
    for site in sites:
        enter(site["namespace"])
        for port in (_ECHO, _DNS, _NTP, _QUIC):
            udp = _bound(socket.SOCK_DGRAM, port)
            kept.append(await loop.create_datagram_endpoint(lambda port=port: Datagrams(port), sock=udp))  # type: ignore[misc]
        if site["unix"]:
            kept.append(await asyncio.start_server(greet, sock=_bound(socket.SOCK_STREAM, GREETING)))
            kept.append(await asyncio.start_unix_server(serve_page, site["unix"], limit=4_000_000))
            Path(site["unix"]).chmod(0o777)
    ready.touch()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
