"""A long load on `pepscope proxy split` that means no good: `python -m benchmarks.loads.proxy_soak --seconds 1800`.

So many connections at a time on loopback, each of one kind drawn by chance: an upload answered with its checksum, a
download with its checksum at the end, a client that aborts in the middle, a server that does, a client that halves
its connection and listens on. Every byte of what is not aborted is accounted for at both ends. Meanwhile the proxy's
memory and descriptors are sampled: both must be flat, and in the end the descriptors must be those of the beginning.
All numbers go to standard output as JSON; the exit status is 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import resource
import signal
import socket
import struct
import subprocess
import sysconfig
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
HEAD = struct.Struct("!cI")
DIGEST_BYTES = 32
LARGEST_BYTES = 200_000
BUFFER_BYTES = 32_768
PATIENCE_S = 60.0
RESET = struct.pack("ii", 1, 0)

#: Kinds of connections and how many of a hundred are of each.
KINDS = {b"u": 35, b"d": 35, b"h": 10, b"a": 10, b"r": 10}

#: Growth of the last quarter's memory over the second's that is called flat: allocators fill their gaps first.
FLAT = 1.05


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with a reset."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Do what the first bytes say."""
    with suppress(OSError, asyncio.IncompleteReadError):
        kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
        if kind in (b"u", b"h"):
            data = await (reader.readexactly(length) if kind == b"u" else reader.read(-1))
            writer.write(hashlib.sha256(data).digest())
        elif kind == b"r":
            writer.write(bytes(length // 2))
            await writer.drain()
            abort(writer)
            return
        else:
            data = random.randbytes(length)
            writer.write(data)
            writer.write(hashlib.sha256(data).digest())
        await writer.drain()
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()


async def converse(kind: bytes, length: int, port: int) -> bool:
    """One connection; whether it went as it should."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(HEAD.pack(kind, length))
        if kind in (b"u", b"h"):
            data = random.randbytes(length)
            writer.write(data)
            if kind == b"h":
                writer.write_eof()
            return await reader.readexactly(DIGEST_BYTES) == hashlib.sha256(data).digest()
        if kind == b"d":
            data = await reader.readexactly(length)
            return await reader.readexactly(DIGEST_BYTES) == hashlib.sha256(data).digest()
        if kind == b"a":
            await reader.read(length // 3 + 1)
            abort(writer)
            return True
        try:
            return len(await reader.read(-1)) < length
        except ConnectionResetError:
            return True
    finally:
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()


def resources(pid: int) -> tuple[int, int]:
    """Resident bytes and open descriptors of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize(), len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Soak:
    """The load and what was seen."""

    def __init__(self, port: int, concurrent: int, seconds: float) -> None:
        self.port = port
        self.concurrent = concurrent
        self.until = time.monotonic() + seconds
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.active = 0
        self.most_active = 0
        self.samples: list[tuple[int, int, int]] = []

    async def client(self) -> None:
        """One connection after another."""
        while time.monotonic() < self.until:
            (kind,) = random.choices(list(KINDS), list(KINDS.values()))
            name = kind.decode()
            self.active += 1
            self.most_active = max(self.most_active, self.active)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    # Most of a connection's life is waiting, so that as many are open as wanted.
                    await asyncio.sleep(random.random())
                    fine = await converse(kind, random.randrange(1000, LARGEST_BYTES), self.port)
            except (OSError, asyncio.IncompleteReadError) as error:
                fine = False
                self.failed[f"{name}: {type(error).__name__}"] += 1
            self.active -= 1
            self.done[name] += 1
            if not fine:
                self.failed[name] += 1

    async def watch(self, pid: int) -> None:
        """Sample the proxy's resources."""
        while True:
            memory, descriptors = resources(pid)
            self.samples.append((memory, descriptors, self.active))
            await asyncio.sleep(0.5)


async def run(
    arguments: argparse.Namespace, proxy: subprocess.Popen[bytes], port: int, listener: socket.socket
) -> dict[str, object]:
    """The whole soak; what was seen."""
    server = await asyncio.start_server(serve, sock=listener, backlog=4096)
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    _, descriptors_before = resources(proxy.pid)
    soak = Soak(port, arguments.connections, arguments.seconds)
    watching = asyncio.create_task(soak.watch(proxy.pid))
    await asyncio.gather(*(soak.client() for _ in range(arguments.connections)))
    watching.cancel()
    await asyncio.sleep(1.0)
    _, descriptors_after = resources(proxy.pid)
    server.close()
    quarter = max(1, len(soak.samples) // 4)
    second = max(memory for memory, _, _ in soak.samples[quarter : 2 * quarter] or soak.samples)
    last = max(memory for memory, _, _ in soak.samples[-quarter:])
    return {
        "seconds": arguments.seconds,
        "connections": sum(soak.done.values()),
        "kinds": dict(soak.done),
        "most_at_once": soak.most_active,
        "most_descriptors": max(descriptors for _, descriptors, _ in soak.samples),
        "failed": dict(soak.failed),
        "memory_second_quarter_bytes": second,
        "memory_last_quarter_bytes": last,
        "memory_is_flat": last <= FLAT * second,
        "descriptors_before": descriptors_before,
        "descriptors_after": descriptors_after,
    }


def account(truth: Path) -> dict[str, int]:
    """The proxy's own account: endings, and connections that finished with bytes lost between their legs."""
    endings: Counter[str] = Counter()
    unequal = 0
    with truth.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            endings[one["ending"]] += 1
            mobile, server = one["mobile_leg"], one["server_leg"]
            equal = mobile["taken_bytes"] == server["given_bytes"] and server["taken_bytes"] == mobile["given_bytes"]
            unequal += one["ending"] == "finished" and not equal
    return {**endings, "finished_with_bytes_lost": unequal}


def main() -> int:
    """Load a proxy; exit status 1 where anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--connections", type=int, default=2000, help="at a time")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory, socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        truth = Path(directory, "truth.jsonl")
        command = [PEPSCOPE, "proxy", "split", "--listen", f"127.0.0.1:{port}", "--log-level", "warning"]
        command += ["--target", f"127.0.0.1:{listener.getsockname()[1]}", "--truth", str(truth)]
        limit = 2 * arguments.connections
        command += ["--set", f"buffer_bytes={BUFFER_BYTES}", "--set", f"limits.connections={limit}"]
        command += ["--set", f"limits.connections_per_client={limit}"]
        with subprocess.Popen(command) as proxy:
            try:
                seen = asyncio.run(run(arguments, proxy, port, listener))
            finally:
                proxy.send_signal(signal.SIGTERM)
                status = proxy.wait(60)
        seen |= {"exit_status": status, "truth": account(truth)}
    print(json.dumps(seen, indent=2))
    truthful = isinstance(seen["truth"], dict) and not seen["truth"]["finished_with_bytes_lost"]
    fine = truthful and not seen["failed"] and status == 0 and seen["memory_is_flat"]
    return 0 if fine and seen["descriptors_after"] == seen["descriptors_before"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
