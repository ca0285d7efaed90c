"""The traffic of one client host: `python -m benchmarks.one_ended.client JOBS LOG`, jobs as `traffic` draws them.

Every job is one thread that starts at its own time: a `curl` command, a connection of ours (`talk`: HTTP requests over
TCP or TLS; `greeting`), a page in Chromium (`browser`), or datagrams (`ping`, `udp`, `quic`). Errors are logged, they
do not stop the others.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.fresh.origin import Log
from benchmarks.one_ended.datagrams import (
    dns_query,
    icmp_echo,
    ntp_request,
    quic_handshake,
    quic_initial,
    quic_names,
    quic_short,
)
from benchmarks.one_ended.priority import CLIENTS, raise_threads

PATIENCE_S = 20.0
#: Receive buffer of clients that read slowly.
_SLOW_READER_BYTES = 40_000
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class ClosedError(OSError):
    """The other end closed the connection."""


class Talk:
    """One TCP connection, plain or TLS, whose client may think before each of its answers."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._think: tuple[float, float] | None = job.get("think")
        self._tls: ssl.SSLObject | None = None
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if job.get("read_bytes_s"):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_READER_BYTES)
        self._socket.bind((job["source"], 0))
        self._socket.connect((job["host"], job["port"]))
        time.sleep(job.get("idle_s", 0.0))
        if job.get("tls"):
            self._handshake(job)

    def _handshake(self, job: dict[str, Any]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = _VERSIONS[job["tls"]]
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=job["name"])
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._incoming.write(self._read_socket())
        self._flush()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self.think()
            self._socket.sendall(data)

    def _read_socket(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise ClosedError("the peer closed")
        return data

    def think(self) -> None:
        """Wait as long as this client thinks."""
        if self._think:
            time.sleep(random.uniform(*self._think))

    def send(self, data: bytes) -> None:
        """Send all of it."""
        if self._tls is None:
            self.think()
            self._socket.sendall(data)
        else:
            self._tls.write(data)
            self._flush()

    def receive(self) -> bytes:
        """Some bytes."""
        if self._tls is None:
            return self._read_socket()
        while True:
            try:
                data = self._tls.read(65_536)
            except ssl.SSLWantReadError:
                self._incoming.write(self._read_socket())
                continue
            if not data:
                raise ClosedError("the peer closed")
            return data

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def talk(job: dict[str, Any]) -> None:
    """HTTP requests in turn over one connection, or over several where the other end closes it."""
    connection = Talk(job)
    try:
        for number, request in enumerate(job["requests"]):
            time.sleep(request.get("gap_s", 0.0))
            try:
                _ask(connection, job, request)
            except ClosedError:
                if not number:
                    raise
                connection.close()
                connection = Talk({**job, "idle_s": 0.0})
                _ask(connection, job, request)
    finally:
        connection.close()


def _ask(connection: Talk, job: dict[str, Any], request: dict[str, Any]) -> None:
    upload = int(request.get("put", 0))
    head = f"{'POST' if upload else 'GET'} {request['path']} HTTP/1.1\r\nHost: {job['name']}\r\n"
    head += "User-Agent: talk/1\r\n" + (f"Content-Length: {upload}\r\n" if upload else "")
    connection.send(head.encode() + b"\r\n" + os.urandom(upload))
    _receive_answer(connection, job.get("read_bytes_s", 0))


def _receive_answer(connection: Talk, read_bytes_s: float) -> None:
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.receive()
    head, _, rest = got.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError(f"refused: {head[:40]!r}")
    lines = [line.lower() for line in head.split(b"\r\n")]
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
    missing = length - len(rest)
    while missing > 0:
        got_bytes = len(connection.receive())
        missing -= got_bytes
        if read_bytes_s:
            time.sleep(got_bytes / read_bytes_s)  # a slow reader


def greeting(job: dict[str, Any]) -> None:
    """The server speaks first, then a line each, as in SMTP."""
    connection = Talk(job)
    try:
        for line in (b"", b"EHLO client.example", b"MAIL FROM:<a@example>", b"RCPT TO:<b@example>", b"NOOP", b"QUIT"):
            if line:
                connection.send(line + b"\r\n")
            got = b""
            while not got.endswith(b"\r\n"):
                got += connection.receive()
    finally:
        connection.close()


def ping(job: dict[str, Any]) -> None:
    """ICMP echo, one a time interval."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.bind((job["source"], 0))
        identifier = random.randrange(1 << 16)
        for sequence in range(job["count"]):
            raw.sendto(icmp_echo(identifier, sequence), (job["host"], 0))
            time.sleep(job["interval_s"])


def udp(job: dict[str, Any]) -> None:
    """Requests to the echo (7), DNS (53) or NTP (123) port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((job["source"], 0))
        made.connect((job["host"], job["port"]))
        for number in range(job["count"]):
            known = {53: dns_query(random.randrange(1 << 16), f"w{number}.example"), 123: ntp_request()}
            made.send(known.get(job["port"], os.urandom(job.get("bytes", 64))))
            time.sleep(job["interval_s"])


def quic(job: dict[str, Any]) -> None:
    """A QUIC-like handshake and some requests."""
    own = os.urandom(8)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((job["source"], 0))
        made.connect((job["host"], 443))
        made.send(quic_initial(os.urandom(8), own))
        if not _answered(made, 3.0):
            return
        _, server = quic_names(made.recv(2000))
        time.sleep(random.uniform(0.0005, 0.003))
        made.send(quic_handshake(server, own, 80))
        for _ in range(job["count"]):
            made.send(quic_short(server, random.randrange(60, 300)))
            while _answered(made, 0.7):
                if len(made.recv(2000)) < 1000:
                    break


def _answered(made: socket.socket, patience_s: float) -> bool:
    return bool(select.select([made], [], [], patience_s)[0])


def curl(job: dict[str, Any]) -> None:
    """A curl command. Raises OSError with its message where it fails."""
    done = subprocess.run(
        ["curl", "-sS", "-k", "-o", "/dev/null", "--max-time", str(PATIENCE_S), *job["arguments"]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"curl: status {done.returncode}, {done.stderr.strip()[-100:]}")


def browser(job: dict[str, Any]) -> None:
    """A page in Chromium, with pictures from several servers. Raises OSError where it does not come."""
    rules = ",".join(f"MAP {name} {address}" for name, address in job["names"].items())
    with tempfile.TemporaryDirectory(prefix="pepscope-browser-") as profile:
        done = subprocess.run(
            [
                "chrt", "--other", "0", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-quic",
                "--disable-dev-shm-usage", "--ignore-certificate-errors", f"--user-data-dir={profile}",
                f"--host-resolver-rules={rules}", "--timeout=9000", "--dump-dom", job["url"],
            ],
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
    if "<img" not in done.stdout:
        raise OSError(f"chromium: {done.stderr.strip()[-100:]}")


_JOBS = {"browser": browser, "talk": talk, "greeting": greeting, "ping": ping, "udp": udp, "quic": quic, "curl": curl}


def run(job: dict[str, Any], begun: float, log: Log) -> None:
    """Carry out one job at its time."""
    time.sleep(max(0.0, begun + job["start_s"] - time.monotonic()))
    try:
        _JOBS[job["kind"]](job)
        log.write(done=job["kind"], port=job.get("port"))
    except (OSError, subprocess.TimeoutExpired) as error:
        log.write(error=str(error), kind=job["kind"], host=job.get("host"), port=job.get("port"))


def main() -> None:
    """Carry out all jobs and wait for them."""
    jobs = json.loads(Path(sys.argv[1]).read_text())
    raise_threads(0, CLIENTS)
    log, begun = Log(sys.argv[2]), time.monotonic()
    threading.stack_size(256 * 1024)
    threads = [threading.Thread(target=run, args=(job, begun, log), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    last = max((job["start_s"] for job in jobs), default=0.0)
    deadline = begun + last + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


if __name__ == "__main__":
    main()
