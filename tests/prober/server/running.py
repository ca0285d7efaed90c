"""A server within the test's own process, on free ports of loopback."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prober.client.control_client import ControlClient
from prober.protocol.control_messages import About, Key, Ports
from prober.server.service import running
from prober.server.settings import ServerSettings

#: Below what Linux gives to outgoing connections, and another range for each process that tests.
_FIRST_DATA_PORT = 12_000 + os.getpid() % 2000 * 4

FREE = {
    "control": 0, "http": 0, "https": 0, "ftp": 0, "tcp": [0, 0], "udp_echo": 0, "dead": 0, "http_free": 0,
    "https_free": 0, "ftp_free": 0, "ftp_data": [_FIRST_DATA_PORT, _FIRST_DATA_PORT + 3],
}  # fmt: skip
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Here:
    """A running server and a mobile that knows its key."""

    key: Key
    about: About
    control: ControlClient

    @property
    def ports(self) -> Ports:
        return self.about.ports

    @property
    def session(self) -> str:
        return self.control.session

    def connect(self, port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)

    def another(self) -> ControlClient:
        """Another mobile with the same key."""
        return ControlClient("127.0.0.1", self.ports.control, self.key, patience_s=2.0)


def settings(state: Path, **limits: Any) -> ServerSettings:
    return ServerSettings.from_mapping({"listen": ["127.0.0.1"], "state": str(state), "ports": FREE, "limits": limits})


@contextlib.contextmanager
def serving_here(state: Path, **limits: Any) -> Iterator[Here]:
    """Serve while this lasts; what is overdue is swept up as the command does it, only more often."""
    ending = threading.Event()
    with running(settings(state, **limits)) as (key, about, sweep):

        def keep_sweeping() -> None:
            while not ending.wait(0.05):
                sweep()

        sweeper = threading.Thread(target=keep_sweeping)
        sweeper.start()
        try:
            with ControlClient("127.0.0.1", about.ports.control, key, patience_s=2.0) as control:
                yield Here(key, about, control)
        finally:
            ending.set()
            sweeper.join()


def received(sock: socket.socket) -> bytes:
    """All until the end, or until a reset."""
    data = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65_536):
            data += piece
    return bytes(data)


def is_answered(port: int, timeout_s: float = 0.4) -> bool:
    """Whether a connection is made at all; loopback takes microseconds, so a timeout means that no socket answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s):
            return True
    except TimeoutError:
        return False
