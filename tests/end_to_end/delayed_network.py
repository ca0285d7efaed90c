"""A client, a middle and a server in network namespaces, with links that take their time: real kernels."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.one_ended.links import Direction
from tests.end_to_end.network import READY_TIMEOUT_S, Network

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT, MIDDLE, SERVER = "10.213.7.2", "10.213.7.1", "10.213.8.2"
#: A capture that does not grow for so long is whole: no link takes as long.
_SILENCE_S = 1.0
_TOP = Path(__file__).parents[2]


@contextlib.contextmanager
def delayed_network(directory: Path, near_s: float, far_s: float) -> Iterator[Network]:
    """The namespaces, joined by links of so many seconds one way: client to middle, and middle to server. The middle
    routes."""
    tag = f"pepscope-{os.getpid()}"
    names = Network(f"{tag}-client", f"{tag}-middle", f"{tag}-server")
    with contextlib.ExitStack() as stack:
        for name in (names.client, names.middle, names.server):
            _run("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False, capture_output=True)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        for namespace, device, address, route in (
            (names.middle, "client0", MIDDLE, CLIENT),
            (names.client, "up0", CLIENT, "default"),
            (names.middle, "server0", "10.213.8.1", SERVER),
            (names.server, "up0", SERVER, "default"),
        ):
            _run("ip", "-n", namespace, "tuntap", "add", device, "mode", "tun")
            _run("ip", "-n", namespace, "link", "set", device, "mtu", "1500", "up")
            _run("ip", "-n", namespace, "address", "add", f"{address}/32", "dev", device)
            _run("ip", "-n", namespace, "route", "add", route, "dev", device)
        _run(*names.inside(names.middle, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"))
        stack.enter_context(_emulator(directory, names, near_s, far_s))
        yield names


@contextlib.contextmanager
def _emulator(directory: Path, names: Network, near_s: float, far_s: float) -> Iterator[None]:
    ports = [(names.middle, "client0"), (names.client, "up0"), (names.middle, "server0"), (names.server, "up0")]
    links = []
    for name, a, address, delay_s in (("near", 0, CLIENT, near_s), ("far", 2, SERVER, far_s)):
        way = dataclasses.asdict(Direction(delay_s))
        links.append({"name": name, "a": a, "b": a + 1, "addresses": [address], "down": way, "up": way, "hold_s": {}})
    settings = directory / "emulator.json"
    settings.write_text(json.dumps({"ports": ports, "links": links, "seed": "1"}))
    command = [sys.executable, "-m", "benchmarks.one_ended.emulator", str(settings), str(directory / "report.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_TOP) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(READY_TIMEOUT_S)


@contextlib.contextmanager
def started(names: Network, namespace: str, *command: str, port: int) -> Iterator[None]:
    """A program that listens on a port, ended on leaving."""
    with subprocess.Popen(
        names.inside(namespace, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            listening = names.inside(namespace, "ss", "-Hltn", f"sport = :{port}")
            _await(lambda: bool(subprocess.run(listening, capture_output=True, check=True).stdout), process)
            yield
        finally:
            process.terminate()  # nginx ends its workers
            try:
                process.wait(READY_TIMEOUT_S)
            finally:
                process.kill()


@contextlib.contextmanager
def captured(names: Network, namespace: str, device: str, to: Path, snap_bytes: int = 160) -> Iterator[None]:
    """tcpdump on a device, listening; what it wrote is whole on leaving."""
    written = ["-U", "--immediate-mode", "-Z", "root", "-w", str(to)]
    command = names.inside(namespace, "tcpdump", "-n", "-i", device, "-s", str(snap_bytes), *written, "tcp")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening on" in line:
                break
        yield
        size_bytes = -1
        while size_bytes != (size_bytes := to.stat().st_size):  # packets are still on their way to tcpdump
            time.sleep(_SILENCE_S)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=READY_TIMEOUT_S)


def _await(is_there: object, process: subprocess.Popen[bytes]) -> None:
    assert callable(is_there)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not is_there():
        assert process.poll() is None, f"{process.args!r} ended"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
