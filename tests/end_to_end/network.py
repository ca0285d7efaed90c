"""Two ends and a middle in network namespaces, captured at both ends: real kernels, no traffic leaves the machine."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RELAY = Path(__file__).with_name("relay.py")
TRANSFER = Path(__file__).with_name("transfer.py")
CLIENT_ADDRESS = "10.213.1.2"
MIDDLE_CLIENT_ADDRESS = "10.213.1.1"
MIDDLE_SERVER_ADDRESS = "10.213.2.1"
SERVER_ADDRESS = "10.213.2.2"
PORT = 5001
READY_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Network:
    """Names of the namespaces: client and server, joined by a middle that routes."""

    client: str
    middle: str
    server: str

    def inside(self, namespace: str, *command: str) -> list[str]:
        """`command` as run in one of the namespaces."""
        return ["ip", "netns", "exec", namespace, *command]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Make the namespaces and remove them again, whatever happens."""
    tag = f"pepscope-{os.getpid()}"
    names = Network(f"{tag}-client", f"{tag}-middle", f"{tag}-server")
    made = []
    try:
        for name in (names.client, names.middle, names.server):
            _run("ip", "netns", "add", name)
            made.append(name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        _link(names.client, "up0", CLIENT_ADDRESS, names.middle, "client0", MIDDLE_CLIENT_ADDRESS)
        _link(names.server, "up0", SERVER_ADDRESS, names.middle, "server0", MIDDLE_SERVER_ADDRESS)
        _run("ip", "-n", names.client, "route", "add", "default", "via", MIDDLE_CLIENT_ADDRESS)
        _run("ip", "-n", names.server, "route", "add", "default", "via", MIDDLE_SERVER_ADDRESS)
        _run(*names.inside(names.middle, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"))
        yield names
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _link(namespace: str, device: str, address: str, other: str, other_device: str, other_address: str) -> None:
    """A veth pair between two namespaces with an address at each end."""
    peer = ["peer", "name", other_device, "netns", other]
    _run("ip", "-n", namespace, "link", "add", device, "type", "veth", *peer)
    for where, name, ip in ((namespace, device, address), (other, other_device, other_address)):
        _run("ip", "-n", where, "address", "add", f"{ip}/24", "dev", name)
        _run("ip", "-n", where, "link", "set", name, "up")


@contextlib.contextmanager
def running(command: list[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """A background process that says `ready` on standard error when it is; ended on leaving."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            _await_line(process, ready)
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=READY_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _await_line(process: subprocess.Popen[str], ready: str) -> None:
    assert process.stderr is not None
    deadline = time.monotonic() + READY_TIMEOUT_S
    said = ""
    # Straight from the descriptor: what a buffered reader holds back already, select does not see.
    descriptor = process.stderr.fileno()
    while (left_s := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left_s)[0]:
            break
        chunk = os.read(descriptor, 4096).decode()
        said += chunk
        if ready in said:
            return
        if not chunk:
            break
    raise RuntimeError(f"{process.args!r} did not start: {said}")


def _capture(names: Network, namespace: str, path: Path) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    command = ["tcpdump", "-i", "up0", "-n", "-U", "--immediate-mode", "--time-stamp-precision=nano", "-s", "128"]
    return running(names.inside(namespace, *command, "-w", str(path), "tcp"), "listening on")


def transfer(directory: Path, *, split: bool, payload_bytes: int) -> tuple[Path, Path]:
    """Download `payload_bytes` through a router, or through a relay that ends both connections.

    Returns the captures at the server and at the client.
    """
    paths = directory / "server.pcap", directory / "client.pcap"
    python = sys.executable
    with network() as names, contextlib.ExitStack() as stack:
        served = names.inside(
            names.server, python, str(TRANSFER), "serve", SERVER_ADDRESS, str(PORT), str(payload_bytes)
        )
        stack.enter_context(running(served, "ready"))
        target = SERVER_ADDRESS
        if split:
            target = MIDDLE_CLIENT_ADDRESS
            relay = [python, str(RELAY), target, str(PORT), SERVER_ADDRESS, str(PORT)]
            stack.enter_context(running(names.inside(names.middle, *relay), "ready"))
        captures = [
            stack.enter_context(_capture(names, namespace, path))
            for namespace, path in zip((names.server, names.client), paths, strict=True)
        ]
        fetch = names.inside(names.client, python, str(TRANSFER), "fetch", target, str(PORT), str(payload_bytes))
        subprocess.run(fetch, check=True, timeout=600)
        await_written(captures)
    return paths


def await_written(captures: Iterable[subprocess.Popen[str]]) -> None:
    """Wait until the last packets have crossed the network, and each tcpdump has written them: then it sleeps."""
    time.sleep(0.2)
    deadline = time.monotonic() + READY_TIMEOUT_S
    for process in captures:
        while _state(process.pid) != "S":
            assert time.monotonic() < deadline, f"{process.args!r} is still writing"
            time.sleep(0.01)


def _state(process: int) -> str:
    """`S` for a process that waits for something, `R` for one that runs or would (proc(5))."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
