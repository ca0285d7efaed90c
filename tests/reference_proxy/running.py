"""A proxy in a process of its own on loopback, and servers to reach through it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
TIMEOUT_S = 300.0

Address = tuple[str, int]


class Proxy:
    """A running proxy: its address, its log and its truth file."""

    def __init__(self, process: subprocess.Popen[str], truth: Path) -> None:
        self.process = process
        self._truth = truth
        self._held = ""
        self.log: list[dict[str, Any]] = []
        ready = self.await_event("ready")
        listening = json.loads(ready["listen"])
        self.address: Address = ("127.0.0.1", int(listening[0].rpartition(":")[2])) if listening else ("", 0)

    def await_event(self, event: str) -> dict[str, Any]:
        """Wait until the log has a line of this event that has not been given yet."""
        assert self.process.stderr is not None
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for line in self.log:
                if line.get("event") == event and not line.get("given"):
                    line["given"] = True
                    return line
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self.process.stderr], [], [], left_s)[0]:
                raise AssertionError(f"no {event} in {self.log}")
            chunk = os.read(self.process.stderr.fileno(), 65_536).decode()
            *lines, self._held = (self._held + chunk).split("\n")
            self.log += [json.loads(line) for line in lines]
            if not chunk:
                raise AssertionError(f"the proxy ended without {event}: {self.log} {self._held}")

    def truth(self, count: int = 1) -> list[dict[str, Any]]:
        """The first `count` lines of the truth, once they are written."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            lines = self._truth.read_text().splitlines() if self._truth.exists() else []
            if len(lines) >= count:
                return [json.loads(line) for line in lines]
            assert time.monotonic() < deadline, f"{len(lines)} lines of truth, not {count}"
            time.sleep(0.02)

    def connect(self) -> socket.socket:
        """A connection to the proxy."""
        return socket.create_connection(self.address, timeout=TIMEOUT_S)

    def ask(self, target: Address, extra: bytes = b"") -> socket.socket:
        """A connection through the proxy (SOCKS5)."""
        sock = self.connect()
        sock.sendall(b"\x05\x01\x00")
        assert sock.recv(2, socket.MSG_WAITALL) == b"\x05\x00"
        sock.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(target[0]) + target[1].to_bytes(2, "big") + extra)
        assert sock.recv(10, socket.MSG_WAITALL)[1] == 0
        return sock

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


@contextlib.contextmanager
def proxy(directory: Path, mode: str, *options: str) -> Iterator[Proxy]:
    """Run `pepscope proxy`; it is ended whatever happens."""
    truth = directory / "truth.jsonl"
    command = [PEPSCOPE, "proxy", mode, "--listen", "127.0.0.1:0", "--allow", "127.0.0.1", "--truth", str(truth)]
    with subprocess.Popen([*command, "--log-format", "json", *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Proxy(process, truth)
        finally:
            if process.poll() is None:
                process.kill()


@contextlib.contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[Address]:
    """A server on loopback whose connections `handle` gets, each in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_handle, args=(handle, sock), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _handle(handle: Callable[[socket.socket], None], sock: socket.socket) -> None:
    sock.settimeout(TIMEOUT_S)
    with sock, contextlib.suppress(OSError):
        handle(sock)


def echo(sock: socket.socket) -> None:
    """Answer the whole of what came, once its sender has finished."""
    data = received(sock)
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def received(sock: socket.socket) -> bytes:
    """All until the end."""
    data = bytearray()
    while piece := sock.recv(65_536):
        data += piece
    return bytes(data)


def abort(sock: socket.socket) -> None:
    """Close with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


__all__ = ["Proxy", "abort", "echo", "proxy", "received", "serving"]
