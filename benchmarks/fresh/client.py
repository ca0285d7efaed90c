"""The mobile of an experiment: opens the configured connections and logs which of them carried which token.

`python -m benchmarks.fresh.client JOBS LOG`: a JSON list of `Job`, all at once, each from its own start time.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fresh.origin import PROTOCOLS, Log, body, endpoint, receive_exactly, send_paced

_LINGER_RESET = struct.pack("ii", 1, 0)
_TCP_FASTOPEN_CONNECT = 30  # linux/tcp.h
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """One connection: to `host`:`port` (through `proxy`, (kind, host, port), kind `http`, `socks5` or `tls`).

    `requests` are HTTP requests in turn: `{"name", "token", "bytes", "put", "query"}`; `chat` are the lines of a chat
    as pairs of sizes sent and asked for. `read_bytes_s` reads slowly, `receive_buffer` limits the window, `gap_s` waits
    between requests, `abort_after` resets the connection after so many bytes of the first answer (0: at once).
    `fast_open` sends the first data in the SYN where a cookie is known (RFC 7413); `protocol` is `tcp` or `mptcp`.
    """

    host: str
    port: int
    requests: list[dict[str, Any]] = field(default_factory=list)
    chat: list[tuple[int, int]] = field(default_factory=list)
    token: str = ""
    start_s: float = 0.0
    gap_s: float = 0.0
    read_bytes_s: float = 0.0
    send_bytes_s: float = 0.0
    receive_buffer: int = 0
    abort_after: int | None = None
    congestion_control: str = "cubic"
    proxy: tuple[str, str, int] | None = None
    source_port: int = 0
    fast_open: bool = False
    protocol: str = "tcp"


def _connect(job: Job) -> socket.socket:
    kind, host, port = job.proxy or ("", job.host, job.port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM, PROTOCOLS[job.protocol])
    connection.settimeout(PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, job.congestion_control.encode())
    if job.receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, job.receive_buffer)
    if job.source_port:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("", job.source_port))
    if job.fast_open:
        connection.setsockopt(socket.IPPROTO_TCP, _TCP_FASTOPEN_CONNECT, 1)
    connection.connect((host, port))
    if kind == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(connection)
    if kind == "socks5":
        connection.sendall(b"\x05\x01\x00")
        connection.recv(2)
        connection.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(job.host) + struct.pack(">H", job.port))
        if connection.recv(64)[1] != 0:
            raise OSError("the SOCKS server refused")
    return connection


def _read_head(connection: socket.socket) -> tuple[dict[str, str], bytes]:
    waiting = b""
    while b"\r\n\r\n" not in waiting:
        piece = connection.recv(4096)
        if not piece:
            raise OSError("closed before the answer")
        waiting += piece
    head, _, rest = waiting.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if " 200 " not in lines[0]:
        raise OSError(f"refused: {lines[0]}")
    return {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}, rest


def _get(connection: socket.socket, job: Job, request: dict[str, Any], *, last: bool) -> None:
    host = f"[{job.host}]" if ":" in job.host else job.host
    path = f"/{request['name']}?token={request['token']}&bytes={request['bytes']}{request.get('query', '')}"
    if job.proxy is not None and job.proxy[0] == "http":
        path = f"http://{host}:{job.port}{path}"
    upload = int(request.get("put", 0))
    head = (
        f"{'PUT' if upload else 'GET'} {path} HTTP/1.1\r\nHost: {host}:{job.port}\r\nUser-Agent: fresh/1\r\n"
        f"Connection: {'close' if last else 'keep-alive'}\r\n"
    )
    if upload:
        head += f"Content-Length: {upload}\r\n"
    connection.sendall(head.encode() + b"\r\n")
    if upload:
        send_paced(connection, body(request["token"], upload), job.send_bytes_s)
    headers, rest = _read_head(connection)
    if job.abort_after is not None:
        receive_exactly(connection, job.abort_after, rest, 0)
        return
    if "content-length" in headers:
        receive_exactly(connection, int(headers["content-length"]), rest, job.read_bytes_s)
        return
    while connection.recv(65_536):
        pass  # a rewriting proxy that closes at the end


def _chat(connection: socket.socket, job: Job) -> None:
    chance = random.Random(job.token)
    connection.sendall(f"{job.token}\n".encode())
    for sent, asked in job.chat:
        line = f"{asked} ".encode()
        connection.sendall(line + body(job.token + str(asked), 2 * sent).replace(b"\n", b"+")[:sent] + b"\n")
        receive_exactly(connection, asked, b"", 0)
        time.sleep(job.gap_s * chance.random() * 2)


def run(job: Job, log: Log) -> None:
    """Carry out one job."""
    time.sleep(job.start_s)
    tokens = [request["token"] for request in job.requests] or [job.token]
    try:
        with _connect(job) as connection:
            # With Fast Open there is no peer yet: the SYN waits for the first data.
            peer = (job.host, job.port) if job.fast_open else connection.getpeername()
            log.write(tokens=tokens, local=endpoint(connection.getsockname()), peer=endpoint(peer), port=job.port)
            if job.abort_after is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            for number, request in enumerate(job.requests):
                time.sleep(job.gap_s if number else 0)
                _get(connection, job, request, last=number == len(job.requests) - 1)
            if job.chat:
                _chat(connection, job)
    except OSError as error:
        log.write(tokens=tokens, error=str(error))


def main() -> None:
    """Carry out all jobs and wait for them."""
    jobs = [Job(**entry) for entry in json.loads(Path(sys.argv[1]).read_text())]
    log = Log(sys.argv[2])
    threads = [threading.Thread(target=run, args=(job, log), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


if __name__ == "__main__":
    main()
