"""HTTP/1.1 between the ends of a live path: one connection, pages with think times between them."""

from __future__ import annotations

import http.client
import io
import random
from collections.abc import Callable, Mapping
from typing import Any

from reference_sim.live_path.flow_side import Side

_MOST_LINE_BYTES = 65_536
_CHUNK_BYTES = 1 << 18


def request(method: str, host: str, path: str, least_bytes: int = 0, body_bytes: int | None = None) -> bytes:
    """The head of a request; without a body padded to `least_bytes`, as a simulation's."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "User-Agent: pepscope", "Accept: */*"]
    if body_bytes is not None:
        lines += ["Content-Type: application/octet-stream", f"Content-Length: {body_bytes}"]
    head = "\r\n".join(lines) + "\r\n"
    padding = "X-Padding: "
    missing = least_bytes - len(head) - 2 - len(padding) - 2
    if missing > 0:
        head += f"{padding}{'x' * missing}\r\n"
    return f"{head}\r\n".encode()


def response(body_bytes: int) -> bytes:
    """The head of a good answer."""
    return (
        "HTTP/1.1 200 OK\r\nServer: pepscope\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {body_bytes}\r\n\r\n"
    ).encode()


def fetch_pages(side: Side, entry: Mapping[str, Any], host: str, path: str, chance: random.Random) -> None:
    """Ask for pages one after the other, with exponential times between them, and close."""
    head = request("GET", host, path, entry["request_bytes"])
    mean_s = entry["think_time_mean_s"]
    for number in range(entry["pages"]):
        if number and mean_s > 0:
            side.wait(chance.expovariate(1 / mean_s))
        ask(side, "GET", [head])
    side.finish()


def ask(side: Side, method: str, parts: list[bytes | memoryview]) -> None:
    """One request and its whole answer. Raises OSError where the answer breaks off or is no HTTP."""
    started_s = side.now()
    for part in parts:
        side.send(part)
    answer = http.client.HTTPResponse(_Readable(side), method=method)  # type: ignore[arg-type]
    try:
        answer.begin()
        while answer.read(_CHUNK_BYTES):
            pass
    except http.client.HTTPException as error:
        raise OSError(f"an answer must be HTTP: {error or type(error).__name__}") from error
    taken_s = side.now() - started_s
    side.end.answers += 1
    side.end.answer_time_s += taken_s
    side.end.longest_answer_s = max(side.end.longest_answer_s, taken_s)


class _Readable:
    """As much of a socket as HTTPResponse needs."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def makefile(self, _mode: str) -> io.BufferedReader:
        return self._side.reader()


def serve(side: Side, answer: Callable[[str], memoryview]) -> None:
    """Answer requests with what `answer` gives for their paths, until the client is done. Raises OSError."""
    incoming = side.reader()
    while line := incoming.readline(_MOST_LINE_BYTES):
        words = line.decode("latin-1").split()
        try:
            headers = http.client.parse_headers(incoming)
            left = int(headers.get("Content-Length", "0"))
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"a request must be HTTP: {error}") from error
        if len(words) != 3:
            raise OSError(f"a request must be HTTP: {line[:40]!r}")
        while left > 0 and (taken := len(incoming.read(min(left, _CHUNK_BYTES)))):
            left -= taken
        body = answer(words[1]) if words[0] == "GET" else memoryview(b"")
        side.send(response(len(body)) + bytes(body))  # in one write, as a simulated server
    side.finish()
