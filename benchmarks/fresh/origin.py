"""The server of an experiment: HTTP/1.1 and a chat, and a log of the token that each connection carried.

`python -m benchmarks.fresh.origin LOG CONGESTION_CONTROL PROTOCOL PORT...`, the protocol `tcp` or `mptcp`; the last
port is the chat's. HTTP requests name what they want in the query: `token`, `bytes` (answer's size), `delay` (s),
`pace` (bytes a second), `read` (bytes a second at which an upload is read), `reset` (reset after so many bytes),
`cacheable`.
"""

from __future__ import annotations

import base64
import json
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

_LINGER_RESET = struct.pack("ii", 1, 0)
_PIECE = 16_384

#: By name; 262 is IPPROTO_MPTCP of Linux, which this Python's `socket` may not name.
PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}


def body(name: str, length: int) -> bytes:
    """Text of this length whose lines all differ, the same for the same name."""
    source = random.Random(name).randbytes(length * 3 // 4 + 64)
    return base64.encodebytes(source)[:length]


def endpoint(name: tuple[object, ...]) -> str:
    """`address:port`, an IPv4-mapped address as IPv4."""
    return f"{str(name[0]).removeprefix('::ffff:')}:{name[1]}"


class Log:
    """One JSON object a line."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()

    def write(self, **entry: object) -> None:
        """Write an entry with its time."""
        with self._lock:
            self._file.write(json.dumps({"time": time.time(), **entry}) + "\n")


def send_paced(connection: socket.socket, data: bytes, bytes_s: float) -> None:
    """Send at no more than this rate; 0 is as fast as it goes."""
    if not bytes_s:
        connection.sendall(data)
        return
    begun = time.monotonic()
    for start in range(0, len(data), 4096):
        connection.sendall(data[start : start + 4096])
        time.sleep(max(0.0, (start + 4096) / bytes_s - (time.monotonic() - begun)))


def receive_exactly(connection: socket.socket, length: int, already: bytes, bytes_s: float) -> bytes:
    """Receive so many bytes at no more than this rate; shorter where the peer closed. Returns what came beyond."""
    got, begun = len(already), time.monotonic()
    beyond = already[length:]
    while got < length:
        piece = connection.recv(min(_PIECE, max(1, length - got)))
        if not piece:
            return b""
        got += len(piece)
        if bytes_s:
            time.sleep(max(0.0, got / bytes_s - (time.monotonic() - begun)))
    return beyond


def _serve_http(connection: socket.socket, log: Log, names: dict[str, object]) -> None:
    waiting = b""
    while True:
        while b"\r\n\r\n" not in waiting:
            piece = connection.recv(_PIECE)
            if not piece:
                return
            waiting += piece
        head, _, waiting = waiting.partition(b"\r\n\r\n")
        if head.startswith(b"PROXY "):  # a load balancer says so whom it serves (PROXY protocol, version 1)
            head = head.partition(b"\r\n")[2]
        request, *lines = head.decode("latin-1").split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        method, target, version = request.split(" ")
        wish = dict(parse_qsl(urlsplit(target).query))
        log.write(token=wish.get("token", ""), **names)
        waiting = receive_exactly(
            connection, int(headers.get("content-length", 0)), waiting, float(wish.get("read", 0))
        )
        time.sleep(float(wish.get("delay", 0)))
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        length = int(wish.get("bytes", 0))
        answer = b"" if method == "HEAD" else body(urlsplit(target).path, length)
        age = "max-age=600" if "cacheable" in wish else "no-store"
        connection.sendall(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nCache-Control: {age}\r\n"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n".encode()
        )
        if "reset" in wish:
            connection.sendall(answer[: int(wish["reset"])])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            return
        send_paced(connection, answer, float(wish.get("pace", 0)))
        if not keep:
            return


def _serve_chat(connection: socket.socket, log: Log, names: dict[str, object]) -> None:
    """The first line is the token; every further line begins with the size of the requested answer."""
    lines = connection.makefile("rb")
    token = lines.readline().decode().strip()
    log.write(token=token, **names)
    for number, line in enumerate(lines):
        length = int(line.split()[0])
        connection.sendall(body(f"{token}/{number}", length))


def _serve(connection: socket.socket, log: Log, *, chat: bool) -> None:
    names: dict[str, object] = {"local": endpoint(connection.getsockname()), "peer": endpoint(connection.getpeername())}
    try:
        with connection:
            (_serve_chat if chat else _serve_http)(connection, log, names)
    except (OSError, ValueError) as error:
        log.write(error=str(error), **names)


def _listen(port: int, congestion_control: str, protocol: int, log: Log, *, chat: bool) -> None:
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if protocol == socket.IPPROTO_TCP:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 128)  # takes effect where the kernel allows it
    listener.bind(("::", port))
    listener.listen(128)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, log), kwargs={"chat": chat}, daemon=True).start()


def main() -> None:
    """Listen on every port until killed."""
    log, congestion_control, ports = Log(sys.argv[1]), sys.argv[2], [int(port) for port in sys.argv[4:]]
    protocol = PROTOCOLS[sys.argv[3]]
    for port in ports:
        threading.Thread(
            target=_listen,
            args=(port, congestion_control, protocol, log),
            kwargs={"chat": port == ports[-1]},
            daemon=True,
        ).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
