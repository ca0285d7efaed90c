"""`box.py MODE PORT...`: a host's server (`serve`), or what terminates connections that a router hands over.

`split` accepts and relays to where the client wanted to go; `portal` answers everything with a redirection; `shut`
takes connections and closes them without a word once the client has spoken.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys

_ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST of linux/netfilter_ipv4.h, and IP6T_SO_ORIGINAL_DST
_ANSWER = b"HTTP/1.1 200 OK\r\nServer: host\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_REDIRECTION = b"HTTP/1.1 302 Found\r\nLocation: http://login.example/\r\nContent-Length: 0\r\n\r\n"


def destination(link: socket.socket) -> tuple[str, int]:
    """Where the client wanted to go."""
    if link.family == socket.AF_INET6 and not link.getsockname()[0].startswith("::ffff:"):
        data = link.getsockopt(socket.IPPROTO_IPV6, _ORIGINAL_DESTINATION, 28)
        return socket.inet_ntop(socket.AF_INET6, data[8:24]), struct.unpack_from("!H", data, 2)[0]
    data = link.getsockopt(socket.IPPROTO_IP, _ORIGINAL_DESTINATION, 16)
    return socket.inet_ntoa(data[4:8]), struct.unpack_from("!H", data, 2)[0]


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both ways at once, until one side has ended."""
    try:
        where = destination(writer.get_extra_info("socket"))
        far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(*where), 20)
    except (OSError, TimeoutError):
        writer.close()
        return
    await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def say(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer to whatever comes, then the end."""
    try:
        if await reader.read(65_536) and answer:
            writer.write(answer)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def main(mode: str, ports: list[int]) -> None:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if mode == "split":
            await relay(reader, writer)
        else:
            await say({"serve": _ANSWER, "portal": _REDIRECTION, "shut": b""}[mode], reader, writer)

    for port in ports:
        link = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)
        await asyncio.start_server(served, sock=link)
    if mode != "serve":
        os.setuid(65_534)  # so that a rule on the same host can spare what the box itself sends
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [int(port) for port in sys.argv[2:]]))
