"""Transfers through a proxy in the middle of the network, captured at both ends, with the proxy's own truth."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pepscope import detect
from tests.end_to_end.network import (
    CLIENT_ADDRESS,
    MIDDLE_CLIENT_ADDRESS,
    SERVER_ADDRESS,
    Network,
    await_written,
    network,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
TRANSFER = Path(__file__).with_name("http_transfer.py")
PROXY_PORT = 8888
HTTP_PORT = 80
RAW_PORT = 5001

#: Of the cellular link in either direction: a queue forms before it, as it does in front of real ones.
RATE_BIT_S = 16_000_000
QUEUE_BYTES = 150_000

#: Devices of the cellular link.
TO_CLIENT = "to-client"
TO_MIDDLE = "to-middle"
RADIO_ADDRESS = "10.213.1.3"

CLIENT_ADDRESS_6 = "fd00:213:1::2"
MIDDLE_CLIENT_ADDRESS_6 = "fd00:213:1::1"
MIDDLE_SERVER_ADDRESS_6 = "fd00:213:2::1"
SERVER_ADDRESS_6 = "fd00:213:2::2"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a test has to compare."""

    pairs: list[dict[str, Any]]
    truth: list[dict[str, Any]]
    source_ports: list[int]


def run(names: Network, namespace: str, *command: str, timeout_s: float = 600) -> str:
    """Run a command in a namespace; it must succeed."""
    done = subprocess.run(
        names.inside(namespace, *command), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def cellular_network() -> Iterator[Network]:
    """The network with IPv6, a slow last link and a server."""
    with network() as names, contextlib.ExitStack() as stack:
        stack.enter_context(_radio(names))
        for where, device, address in (
            (names.client, "up0", CLIENT_ADDRESS_6),
            (names.middle, "client0", MIDDLE_CLIENT_ADDRESS_6),
            (names.middle, "server0", MIDDLE_SERVER_ADDRESS_6),
            (names.server, "up0", SERVER_ADDRESS_6),
        ):
            run(names, where, "ip", "address", "add", f"{address}/64", "dev", device, "nodad")
        run(names, names.client, "ip", "-6", "route", "add", "default", "via", MIDDLE_CLIENT_ADDRESS_6)
        run(names, names.server, "ip", "-6", "route", "add", "default", "via", MIDDLE_SERVER_ADDRESS_6)
        run(names, names.middle, "sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1")
        for where, device in (
            (names.client, "up0"),
            (names.middle, "client0"),
            (names.middle, "server0"),
            (names.server, "up0"),
        ):
            # Segments as on a wire: virtual devices carry 64 KiB in one otherwise.
            run(names, where, "ip", "link", "set", device, "gso_max_segs", "1")
        for address in (SERVER_ADDRESS, SERVER_ADDRESS_6):
            serving = [sys.executable, str(TRANSFER), "serve", address, str(HTTP_PORT), str(RAW_PORT)]
            stack.enter_context(running(names.inside(names.server, *serving), "ready"))
        yield names


def radio(names: Network) -> str:
    """Name of the namespace in which the cellular link is."""
    return f"{names.middle}-radio"


@contextlib.contextmanager
def _radio(names: Network) -> Iterator[None]:
    """Put a bridge with a slow way out on either side between client and middle.

    The queue must not be in the proxy's own namespace: its kernel would know it and hold TCP back (TCP small queues).
    """
    name = radio(names)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        run(names, names.middle, "ip", "link", "set", "client0", "netns", name, "name", TO_CLIENT)
        new = ("ip", "link", "add", "client0", "type", "veth", "peer", "name", TO_MIDDLE, "netns", name)
        run(names, names.middle, *new)
        run(names, names.middle, "ip", "address", "add", f"{MIDDLE_CLIENT_ADDRESS}/24", "dev", "client0")
        run(names, names.middle, "ip", "link", "set", "client0", "up")
        run(names, name, "ip", "link", "add", "radio0", "type", "bridge", "forward_delay", "0")
        for device in (TO_CLIENT, TO_MIDDLE):
            run(names, name, "ip", "link", "set", device, "master", "radio0")
            shaper = ("tbf", "rate", f"{RATE_BIT_S}bit", "burst", "5000", "limit", str(QUEUE_BYTES))
            run(names, name, "tc", "qdisc", "add", "dev", device, "root", *shaper)
            run(names, name, "ip", "link", "set", device, "up")
        run(names, name, "ip", "address", "add", f"{RADIO_ADDRESS}/24", "dev", "radio0")
        run(names, name, "ip", "link", "set", "radio0", "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@contextlib.contextmanager
def captured(names: Network, directory: Path) -> Iterator[tuple[Path, Path]]:
    """Captures at the server and at the client, of TCP and UDP."""
    paths = directory / "server.pcap", directory / "client.pcap"
    command = ["tcpdump", "-i", "up0", "-n", "-U", "--immediate-mode", "--time-stamp-precision=nano", "-s", "512", "-w"]
    with contextlib.ExitStack() as stack:
        captures = [
            stack.enter_context(running(names.inside(namespace, *command, str(path), "tcp or udp"), "listening on"))
            for path, namespace in zip(paths, (names.server, names.client), strict=True)
        ]
        yield paths
        await_written(captures)


def proxy_command(names: Network, namespace: str, mode: str, *options: str) -> list[str]:
    """`pepscope proxy` in a namespace."""
    return names.inside(namespace, PEPSCOPE, "proxy", mode, *options)


@contextlib.contextmanager
def proxying(names: Network, namespace: str, mode: str, *options: str) -> Iterator[None]:
    """A proxy in a namespace, with its rules where it needs some, ended by SIGTERM."""
    with contextlib.ExitStack() as stack:
        if "transparent" in options or "destination-transparent" in options:
            for _ in range(2):  # a second time must change nothing
                run(names, namespace, PEPSCOPE, "proxy", mode, *options, "--setup")
            stack.callback(run, names, namespace, PEPSCOPE, "proxy", mode, *options, "--teardown")
        stack.enter_context(running(proxy_command(names, namespace, mode, *options), "ready"))
        yield


def fetch(
    names: Network, way: str, *, port: int, length: int, directions: str = "down,up", proxy: str, server: str
) -> list[int]:
    """Transfers from the client; the bytes are compared there. Gives the client's ports."""
    arguments = (way, proxy, str(PROXY_PORT), server, str(port), str(length), directions)
    reported = run(names, names.client, sys.executable, str(TRANSFER), "fetch", *arguments)
    return [json.loads(line)["source_port"] for line in reported.splitlines()]


def judged(server: Path, client: Path, *, same_transfers: bool = False) -> list[dict[str, Any]]:
    """What the detector says of the pairs, by their beginning; in this process, which has imported it already."""
    found: list[dict[str, Any]] = detect(str(server), str(client), same_transfers=same_transfers).to_dict()["pairs"]
    return found


def read_truth(path: Path) -> list[dict[str, Any]]:
    """The truth that a proxy wrote, by the beginning of the connections."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(lines, key=lambda line: line["opened_ns"])


def through(
    names: Network,
    directory: Path,
    mode: str,
    way: str,
    *options: str,
    port: int = HTTP_PORT,
    length: int = 1_000_000,
    directions: str = "down,up",
    server: str = SERVER_ADDRESS,
) -> Seen:
    """Transfers through one proxy in the middle; verdicts and truth."""
    truth = directory / "truth.jsonl"
    listen, proxy = f"{MIDDLE_CLIENT_ADDRESS}:{PROXY_PORT}", MIDDLE_CLIENT_ADDRESS
    if way == "direct":
        listen = f"[::]:{PROXY_PORT}" if ":" in server else f"0.0.0.0:{PROXY_PORT}"
    with (
        proxying(names, names.middle, mode, "--listen", listen, "--truth", str(truth), *options),
        captured(names, directory) as captures,
    ):
        ports = fetch(names, way, port=port, length=length, directions=directions, proxy=proxy, server=server)
    return Seen(judged(*captures), read_truth(truth), ports)


__all__ = ["CLIENT_ADDRESS", "Seen", "cellular_network", "through"]
