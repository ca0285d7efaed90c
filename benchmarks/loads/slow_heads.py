"""A client beside many that send their request one byte at a time: `python -m benchmarks.loads.slow_heads server`.

So many connections at a time, from addresses of loopback in several /24 networks, each send a byte of a request head
every so often and are made again when they end. Meanwhile another address asks for something small, four times a
second, on a new connection each time, and asks again at once where it is refused. What it waited goes to standard
output as JSON, before the attack and during it; the exit status is 1 where it ever waited longer than a second.

`server` is `pepscope probe serve`, whose plain HTTP is asked; `proxy` is `pepscope proxy split`, asked explicitly.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.server
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prober.client.control_client import ControlClient

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
PATIENCE_S = 60.0
MOST_WAIT_S = 1.0
#: A /48 for documentation (RFC 3849).
SITE = "2001:db8:9"
_IP_FREEBIND = 15
HEAD = b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"y" * 10_000
_SERVICES = ("control", "http", "https", "ftp", "tcp", "udp_echo", "dead", "http_free", "https_free", "ftp_free")

#: Asks once; raises OSError where it was refused or got no answer.
Ask = Callable[[], None]


async def trickle(port: int, source: str, interval_s: float) -> None:
    """One slow connection after the other."""
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(sock=await connected(port, source))
            try:
                for place in range(len(HEAD)):
                    writer.write(HEAD[place : place + 1])
                    await writer.drain()
                    await asyncio.sleep(interval_s)
            finally:
                writer.transport.abort()
        await asyncio.sleep(interval_s)


async def connected(port: int, source: str) -> socket.socket:
    """A connection from an address of this host, listed or not."""
    is_ipv6 = ":" in source
    sock = socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_IP, _IP_FREEBIND, 1)
        sock.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(sock, ("::1" if is_ipv6 else "127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    return sock


async def attack(port: int, connections: int, addresses: int, interval_s: float, is_ipv6: bool) -> None:
    """All of them, for ever."""
    sources = [f"127.{9 + place // 250}.{place % 250}.{place % 200 + 1}" for place in range(addresses)]
    if is_ipv6:
        sources = [f"{SITE}:{place:x}::1" for place in range(addresses)]
    slow = [trickle(port, sources[number % addresses], interval_s) for number in range(connections)]
    await asyncio.gather(*slow)


@contextlib.contextmanager
def attacked(port: int, options: argparse.Namespace) -> Iterator[None]:
    """Attack from a process of its own."""
    words = [str(port), str(options.connections), str(options.addresses), str(options.interval), str(options.ipv6)]
    with subprocess.Popen([sys.executable, "-m", "benchmarks.loads.slow_heads", "attack", *words]) as process:
        try:
            yield
        finally:
            process.kill()


def waits(ask: Ask, seconds: float) -> list[float]:
    """How long each question took until it was answered, with all repetitions."""
    found = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        while True:
            with contextlib.suppress(OSError):
                ask()
                break
            if time.monotonic() - began > PATIENCE_S:
                break
            time.sleep(0.01)
        found.append(time.monotonic() - began)
        time.sleep(0.25)
    return found


def said(port: int, head: str) -> None:
    """Ask on a new connection. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.sendall(head.encode())
        if b" 200 " not in sock.recv(1000)[:20]:
            raise ConnectionError


@contextlib.contextmanager
def running_server(directory: str, listen: Sequence[str] = ("127.0.0.1",)) -> Iterator[tuple[dict[str, int], str]]:
    """A probe server: its ports by name, and its key."""
    first = 20_000 + os.getpid() % 1000 * 4
    ports = [word for name in _SERVICES for word in ("--port", f"{name}=0")]
    command = [PEPSCOPE, "probe", "serve", "--state", directory, *ports]
    command += [word for address in listen for word in ("--listen", address)]
    command += ["--port", f"ftp_data={first}-{first + 3}", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        key = process.stdout.readline().split()[1]
        found = json.loads(process.stderr.readline())["ports"]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            yield found, key
        finally:
            process.terminate()


@contextlib.contextmanager
def probe_server(directory: str, listen: Sequence[str] = ("127.0.0.1",)) -> Iterator[tuple[int, Ask]]:
    """A probe server with a session: its HTTP port, and a question to it."""
    with running_server(directory, listen) as (found, key), ControlClient("127.0.0.1", found["control"], key) as mobile:
        head = f"GET /echo/{mobile.session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        yield found["http"], lambda: said(found["http"], head)


@contextlib.contextmanager
def proxy(_directory: str) -> Iterator[tuple[int, Ask]]:
    """An explicit proxy and a server behind it: its port, and a question by it."""
    handler = http.server.SimpleHTTPRequestHandler
    handler.log_message = lambda *_: None  # type: ignore[method-assign]
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PEPSCOPE, "proxy", "split", "--listen", f"127.0.0.1:{port}", "--allow", "127.0.0.0/8"]
    with subprocess.Popen([*command, "--log-format", "json"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "ready" not in process.stderr.readline():
            pass
        threading.Thread(target=process.stderr.read, daemon=True).start()
        at = f"127.0.0.1:{origin.server_port}"
        head = f"GET http://{at}/LICENSE HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
        try:
            yield port, lambda: said(port, head)
        finally:
            process.terminate()
            origin.shutdown()


def main() -> int:
    """Measure, or attack."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.argv[1:2] == ["attack"]:
        to_port, connections, addresses, interval, is_ipv6 = sys.argv[2:]
        asyncio.run(attack(int(to_port), int(connections), int(addresses), float(interval), is_ipv6 == "True"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=("server", "proxy"))
    parser.add_argument("--connections", type=int, default=3000)
    parser.add_argument("--addresses", type=int, default=300, help="in as many /24 networks, up to 250 a /16")
    parser.add_argument("--ipv6", action="store_true", help="from /64 networks of one /48; the server alone")
    parser.add_argument("--interval", type=float, default=0.5, help="seconds between two bytes of a connection")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as running:
        if options.ipv6:
            subprocess.run(["ip", "-6", "route", "replace", "local", f"{SITE}::/48", "dev", "lo"], check=True)
            target = probe_server(directory, ("127.0.0.1", "::1"))
        else:
            target = probe_server(directory) if options.target == "server" else proxy(directory)
        port, ask = running.enter_context(target)
        before = waits(ask, 3.0)
        with attacked(port, options):
            during = waits(ask, options.seconds)
    found = {
        name: {"questions": len(took), "median_s": round(statistics.median(took), 4), "worst_s": round(max(took), 3)}
        for name, took in (("before", before), ("during", during))
    }
    print(json.dumps({**vars(options), **found}))
    return int(max(during) > MOST_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
