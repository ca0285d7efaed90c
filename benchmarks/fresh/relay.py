"""A transparent proxy of our own, for what no packaged one does: spoofs addresses and ports, relays, stores, rewrites.

`python -m benchmarks.fresh.relay LOG SETTINGS`, settings in JSON: `port`, `mode` (`relay`, `store`, `recompress`,
`cache`), `spoof` (`both`, `address`, `none`), `congestion_control`, `fast_open` (towards the mobile). The listening
port gets its connections by TPROXY. The log says of every answer what the proxy did to it.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.fresh.origin import Log, endpoint

_IP_TRANSPARENT, _IPV6_TRANSPARENT = 19, 75
_PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Settings:
    """See the module's docstring."""

    port: int = 8888
    mode: str = "relay"
    spoof: str = "both"
    congestion_control: str = "cubic"
    fast_open: bool = False


@dataclass(slots=True)
class Message:
    """One HTTP message."""

    head: bytes
    body: bytes

    @property
    def target(self) -> str:
        """Path of a request, without its query."""
        return urlsplit(self.head.split(b" ")[1].decode()).path

    def bytes(self) -> bytes:
        """As on the wire."""
        return self.head + b"\r\n\r\n" + self.body


def _transparent(family: int, settings: Settings) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
    else:
        made.setsockopt(socket.SOL_IP, _IP_TRANSPARENT, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, settings.congestion_control.encode())
    return made


def _towards_server(near: socket.socket, settings: Settings) -> socket.socket:
    far = _transparent(near.family, settings)
    peer = near.getpeername()
    if settings.spoof != "none":
        far.bind((peer[0], peer[1] if settings.spoof == "both" else 0))
    far.connect(near.getsockname()[:2])
    return far


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on until the end; what breaks one side breaks the other."""
    try:
        while piece := source.recv(_PIECE_BYTES):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def _relay(near: socket.socket, settings: Settings, log: Log) -> None:
    with _towards_server(near, settings) as far:
        log.write(done="relayed", client=endpoint(near.getpeername()), server_side=endpoint(far.getsockname()))
        up = threading.Thread(target=pump, args=(near, far), daemon=True)
        up.start()
        pump(far, near)
        up.join()


def _message(source: socket.socket) -> Message | None:
    """Take in one whole message; None at the end of the connection."""
    waiting = b""
    while b"\r\n\r\n" not in waiting:
        if not (piece := source.recv(_PIECE_BYTES)):
            return None
        waiting += piece
    head, _, body = waiting.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == b"content-length":
            length = int(value)
    parts = [body]
    missing = length - len(body)
    while missing > 0 and (piece := source.recv(_PIECE_BYTES)):
        parts.append(piece)
        missing -= len(piece)
    return Message(head, b"".join(parts))


def _recompressed(answer: Message) -> Message:
    body = gzip.compress(answer.body, 1)
    lines = [line for line in answer.head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    return Message(b"\r\n".join([*lines, b"Content-Encoding: gzip", b"Content-Length: %d" % len(body)]), body)


def _message_by_message(near: socket.socket, settings: Settings, log: Log, cache: dict[str, Message]) -> None:
    far: socket.socket | None = None
    client = endpoint(near.getpeername())
    while (request := _message(near)) is not None:
        answer = cache.get(request.target) if settings.mode == "cache" else None
        done, last_in_s = "answered from the cache", time.monotonic()
        if answer is None:
            far = far or _towards_server(near, settings)
            far.sendall(request.bytes())
            answer = _message(far)
            if answer is None:
                return
            done, last_in_s = "stored, then forwarded", time.monotonic()
            cache[request.target] = answer
        if settings.mode == "recompress":
            answer = _recompressed(answer)
        first_out_s = time.monotonic()
        log.write(
            done=done, client=client, server_side=endpoint(far.getsockname()) if far else None,
            first_out_after_last_in_s=first_out_s - last_in_s,
        )  # fmt: skip
        near.sendall(answer.bytes())
        if b"connection: close" in request.head.lower():
            break
    if far is not None:
        far.close()


def _handle(near: socket.socket, settings: Settings, log: Log, cache: dict[str, Message]) -> None:
    with near:
        try:
            if settings.mode == "relay":
                _relay(near, settings, log)
            else:
                _message_by_message(near, settings, log, cache)
        except OSError as error:
            log.write(error=str(error))


def _listen(family: int, settings: Settings, log: Log, cache: dict[str, Message]) -> None:
    listener = _transparent(family, settings)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if settings.fast_open:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 128)
    listener.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", settings.port))
    listener.listen(128)
    while True:
        near, _ = listener.accept()
        threading.Thread(target=_handle, args=(near, settings, log, cache), daemon=True).start()


def main() -> None:
    """Listen until killed."""
    log, settings = Log(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    cache: dict[str, Message] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        threading.Thread(target=_listen, args=(family, settings, log, cache), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
