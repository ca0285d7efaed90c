"""The real server as a process on loopback, and answers by script where a real server would not give them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prober.client.control_client import ControlClient
from prober.client.mobile_end import MobileEnd
from prober.plan import Plan
from prober.protocol.control_messages import Key

PEPSCOPE = Path(sys.executable).with_name("pepscope")
_FREE = ("control", "http", "https", "ftp", "tcp", "udp_echo", "dead", "http_free", "https_free", "ftp_free")


@dataclass
class Serving:
    """A server that runs."""

    process: subprocess.Popen[str]
    key: str
    control_port: int

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.control_port}"

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


@contextlib.contextmanager
def serving(
    state: Path,
    *,
    ports: Sequence[str] = tuple(f"{name}=0" for name in _FREE),
    command: Sequence[str] = (),
    listen: str = "127.0.0.1",
    options: Sequence[str] = (),
) -> Iterator[Serving]:
    """Start a server, after the words of `command`, and end it. Its ports are free ones unless told."""
    # Below what Linux gives to outgoing connections, and another range for each process that tests.
    first_data_port = 20_100 + os.getpid() % 100 * 64
    data_ports = f"ftp_data={first_data_port}-{first_data_port + 63}"
    options = [*options, *(text for port in (*ports, data_ports) for text in ("--port", port))]
    process = subprocess.Popen(
        [*command, str(PEPSCOPE), "probe", "serve", "--listen", listen, "--state", str(state), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        key = process.stdout.readline().split()[1]
        mobile = process.stdout.readline().split()
        yield Serving(process, key, int(mobile[-1].rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@contextlib.contextmanager
def mobile_end(serving: Serving, plan: Plan) -> Iterator[MobileEnd]:
    """The mobile's end of a running server, without captures."""
    with ControlClient("127.0.0.1", serving.control_port, serving.key, patience_s=2.0) as control:
        fingerprint = Key.parse(serving.key).fingerprint
        yield MobileEnd(
            control,
            control.about(),
            host="localhost",
            address="127.0.0.1",
            task_limit_s=plan.limits.task_s,
            expected_round_trip_s=plan.rates.round_trip_time_s,
            certificate_sha256=fingerprint,
        )


@contextlib.contextmanager
def scripted(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port of loopback whose every connection is handed to `answer`, on a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    with link, contextlib.suppress(OSError):
                        answer(link)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def without_root() -> list[str]:
    """A prefix that runs a command without any capability; empty where we have none to drop."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"] if os.geteuid() == 0 else []
