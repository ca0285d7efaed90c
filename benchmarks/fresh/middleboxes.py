"""What the middle does to packets without ending connections, and how it hands connections to a proxy."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from benchmarks.fresh import namespaces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.fresh.path import NetworkPath

_TABLE = "100"
_BOX_TABLE, _BOX_DEVICE = "101", "box0"
_READY_S = 20.0


def masquerade(path: NetworkPath) -> None:
    """Hide the mobile behind the middle's address, with ports of the middle's choice."""
    namespaces.inside(
        path.middle, "iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "wired", "-p", "tcp", "-j", "MASQUERADE",
        "--to-ports", "20000-40000", "--random",
    )  # fmt: skip


def forward_port(path: NetworkPath, port: int, server_port: int) -> None:
    """Show the server under the middle's address and another port (DNAT)."""
    namespaces.inside(
        path.middle, "iptables", "-t", "nat", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "-d", path.cell_address,
        "--dport", str(port), "-j", "DNAT", "--to-destination", f"{path.server_address}:{server_port}",
    )  # fmt: skip


def clamp_segments(path: NetworkPath, size: int) -> None:
    """Lower the MSS option of handshakes in both directions."""
    namespaces.inside(
        path.middle, "iptables", "-t", "mangle", "-A", "FORWARD", "-p", "tcp", "--tcp-flags", "SYN,RST", "SYN",
        "-j", "TCPMSS", "--set-mss", str(size),
    )  # fmt: skip


def intercept(path: NetworkPath, ports: Sequence[int], proxy_port: int) -> None:
    """Hand connections to these ports to a transparent proxy (TPROXY, both address families)."""
    for tables, family, any_address in (("iptables", "-4", "0.0.0.0/0"), ("ip6tables", "-6", "::/0")):
        namespaces.command("ip", "-n", path.middle, family, "rule", "add", "fwmark", "1", "lookup", _TABLE)
        namespaces.command(
            "ip", "-n", path.middle, family, "route", "add", "local", any_address, "dev", "lo", "table", _TABLE
        )
        mangle = [path.middle, tables, "-t", "mangle"]
        namespaces.inside(*mangle, "-N", "DIVERT")
        namespaces.inside(*mangle, "-A", "DIVERT", "-j", "MARK", "--set-mark", "1")
        namespaces.inside(*mangle, "-A", "DIVERT", "-j", "ACCEPT")
        namespaces.inside(*mangle, "-A", "PREROUTING", "-p", "tcp", "-m", "socket", "--transparent", "-j", "DIVERT")
        for port in ports:
            namespaces.inside(
                *mangle, "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "--dport", str(port), "-j", "TPROXY",
                "--on-port", str(proxy_port), "--tproxy-mark", "1/1",
            )  # fmt: skip


def redirect(path: NetworkPath, ports: Sequence[int], proxy_port: int) -> None:
    """Hand connections to these ports to a proxy that listens at the middle's own address (REDIRECT)."""
    for port in ports:
        namespaces.inside(
            path.middle, "iptables", "-t", "nat", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "--dport", str(port),
            "-j", "REDIRECT", "--to-ports", str(proxy_port),
        )  # fmt: skip


def packet_box(path: NetworkPath, behaviour: str, **settings: object) -> None:
    """Lead all TCP that the middle forwards through a process of ours (`benchmarks.fresh.packet_box`)."""
    namespaces.command("ip", "-n", path.middle, "tuntap", "add", _BOX_DEVICE, "mode", "tun")
    namespaces.command("ip", "-n", path.middle, "link", "set", _BOX_DEVICE, "txqueuelen", "2000", "up")
    for family in ("-4", "-6"):
        for device in ("wired", "cell"):
            namespaces.command(
                "ip", "-n", path.middle, family, "rule", "add", "iif", device, "ipproto", "tcp", "lookup", _BOX_TABLE
            )
        namespaces.command(
            "ip", "-n", path.middle, family, "route", "add", "default", "dev", _BOX_DEVICE, "table", _BOX_TABLE
        )
    log = path.directory / "box.jsonl"
    chosen = {"behaviour": behaviour, "seed": path.seed, **settings}
    process = path.start_python(path.middle, "packet_box", path.middle, _BOX_DEVICE, str(log), json.dumps(chosen))
    deadline = time.monotonic() + _READY_S
    while not log.with_name("box.jsonl.ready").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((path.directory / "packet_box.out").read_text().strip() or "the box did not start")
        time.sleep(0.05)


def acknowledge_locally(path: NetworkPath, **settings: object) -> None:
    """Let the middle acknowledge in the receiver's name; see `local_acknowledgement.Settings`."""
    packet_box(path, "local-acknowledgement", mobile=path.mobile_address, **settings)
