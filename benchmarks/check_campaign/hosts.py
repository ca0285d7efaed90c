"""Servers of all hosts of a world in one process: `python -m benchmarks.check_campaign.hosts HOSTS` (JSON).

Each host speaks HTTP on port 80, TLS on port 443 with a certificate of its own, and, where it is listed for that,
answers DNS queries and QUIC packets over UDP. Commands come on standard input, a JSON object each: how long each host
thinks before it answers. The process ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import ssl
import struct
import sys
from dataclasses import dataclass
from functools import partial

import trustme

from benchmarks.check_campaign.inside import inside

PLAIN, TLS = 80, 443
_DNS = 53
_LONGEST_HEAD_BYTES = 16_384


@dataclass(slots=True)
class Host:
    """One host: how long it thinks before each answer, from and to, in seconds."""

    name: str
    thinks_s: tuple[float, float] = (0.0, 0.0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then end."""
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            await asyncio.sleep(random.uniform(*self.thinks_s))
            writer.write(self.answer(request))
            await writer.drain()
            writer.write_eof() if writer.can_write_eof() else None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        writer.close()

    def answer(self, request: bytes) -> bytes:
        """What this host says of a request; odd ones get an error of its own."""
        words = request.split(b"\r\n", 1)[0].split()
        status = "200 OK"
        if b"\r\nHost: pepscope-check.invalid" in request:
            status = "404 Not Found"
        elif not words or words[0] not in (b"GET", b"HEAD", b"OPTIONS"):
            status = "405 Method Not Allowed"
        return (
            f'HTTP/1.1 {status}\r\nServer: {self.name}\r\nETag: "{self.name}"\r\nContent-Length: 0\r\n'
            "Connection: close\r\n\r\n"
        ).encode()


class Datagrams(asyncio.DatagramProtocol):
    """Answers DNS queries, or QUIC packets of unknown versions."""

    def __init__(self, port: int) -> None:
        self._port = port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what answers."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """One answer for one datagram."""
        if self._port == _DNS and len(data) >= 12:
            answer = data[:2] + b"\x81\x80" + data[4:]
        elif self._port == TLS and len(data) >= 1_200:
            far, near = data[6:14], data[15:23]
            answer = b"\x80" + bytes(4) + b"\x08" + near + b"\x08" + far + struct.pack("!I", 1)
        else:
            return
        if isinstance(self._transport, asyncio.DatagramTransport):
            self._transport.sendto(answer, addr)


async def _main() -> None:
    hosts = []
    for given in json.loads(sys.argv[1]):
        host = Host(given["name"])
        hosts.append(host)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA(organization_name=given["name"]).issue_cert(given["name"]).configure_cert(context)
        with inside(given["namespace"]):
            for port, tls in ((PLAIN, None), (TLS, context)):
                link = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)
                await asyncio.start_server(host.serve, sock=link, ssl=tls, limit=_LONGEST_HEAD_BYTES)
            for port in given["udp"]:
                link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
                link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                link.bind(("::", port))
                await asyncio.get_running_loop().create_datagram_endpoint(partial(Datagrams, port), sock=link)
    asyncio.get_running_loop().add_reader(0, _obey, hosts)
    _say("ok")
    await asyncio.Event().wait()


def _obey(hosts: list[Host]) -> None:
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    for host, thinks_s in zip(hosts, json.loads(line)["think"], strict=True):
        host.thinks_s = tuple(thinks_s)
    _say("ok")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main())
