"""What the middle does to packets without ending connections, and how it hands connections to a proxy."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from benchmarks.fresh import namespaces
from benchmarks.fresh.scenario import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.fresh.middle import MiddlePath
    from benchmarks.fresh.path import NetworkPath

_TABLE = "100"
_BOX_TABLE, _BOX_DEVICE = "101", "box0"
_READY_S = 20.0
_START_S = 0.5

#: A connection that the middle has taken over is delivered to it, all else goes to the middlebox.
_OWN_PRIORITY, _BOX_PRIORITY = "1000", "1010"


def masquerade(path: MiddlePath) -> None:
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


def clamp_segments(path: MiddlePath, segment_bytes: int) -> None:
    """Lower the MSS option of handshakes in both directions."""
    namespaces.inside(
        path.middle, "iptables", "-t", "mangle", "-A", "FORWARD", "-p", "tcp", "--tcp-flags", "SYN,RST", "SYN",
        "-j", "TCPMSS", "--set-mss", str(segment_bytes),
    )  # fmt: skip


def strip_from_answers(path: MiddlePath, *options: str) -> None:
    """Take TCP options out of what the server sends, its SYN-ACK alone where it negotiates them (netfilter names)."""
    namespaces.inside(
        path.middle, "iptables", "-t", "mangle", "-A", "FORWARD", "-i", "wired", "-p", "tcp", "-j", "TCPOPTSTRIP",
        "--strip-options", ",".join(options),
    )  # fmt: skip


def divert(path: MiddlePath) -> None:
    """Deliver packets of connections that a transparent socket of the middle holds to the middle itself."""
    for tables, family, any_address in (("iptables", "-4", "0.0.0.0/0"), ("ip6tables", "-6", "::/0")):
        namespaces.command(
            "ip", "-n", path.middle, family, "rule", "add", "priority", _OWN_PRIORITY, "fwmark", "1", "lookup", _TABLE
        )
        namespaces.command(
            "ip", "-n", path.middle, family, "route", "add", "local", any_address, "dev", "lo", "table", _TABLE
        )
        mangle = [path.middle, tables, "-t", "mangle"]
        namespaces.inside(*mangle, "-N", "DIVERT")
        namespaces.inside(*mangle, "-A", "DIVERT", "-j", "MARK", "--set-mark", "1")
        namespaces.inside(*mangle, "-A", "DIVERT", "-j", "ACCEPT")
        namespaces.inside(*mangle, "-A", "PREROUTING", "-p", "tcp", "-m", "socket", "--transparent", "-j", "DIVERT")


def intercept(path: MiddlePath, ports: Sequence[int], proxy_port: int) -> None:
    """Hand connections to these ports to a transparent proxy (TPROXY, both address families)."""
    divert(path)
    for tables in ("iptables", "ip6tables"):
        for port in ports:
            namespaces.inside(
                path.middle, tables, "-t", "mangle", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "--dport",
                str(port), "-j", "TPROXY", "--on-port", str(proxy_port), "--tproxy-mark", "1/1",
            )  # fmt: skip


def redirect(path: MiddlePath, ports: Sequence[int], proxy_port: int) -> None:
    """Hand connections to these ports to a proxy that listens at the middle's own address (REDIRECT)."""
    for port in ports:
        namespaces.inside(
            path.middle, "iptables", "-t", "nat", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "--dport", str(port),
            "-j", "REDIRECT", "--to-ports", str(proxy_port),
        )  # fmt: skip


def packet_box(path: MiddlePath, behaviour: str, **settings: object) -> None:
    """Lead all TCP that the middle forwards through a process of ours (`benchmarks.fresh.packet_box`)."""
    namespaces.command("ip", "-n", path.middle, "tuntap", "add", _BOX_DEVICE, "mode", "tun")
    namespaces.command("ip", "-n", path.middle, "link", "set", _BOX_DEVICE, "txqueuelen", "2000", "up")
    for family in ("-4", "-6"):
        for device in ("wired", "cell"):
            namespaces.command(
                "ip", "-n", path.middle, family, "rule", "add", "priority", _BOX_PRIORITY, "iif", device, "ipproto",
                "tcp", "lookup", _BOX_TABLE,
            )  # fmt: skip
        namespaces.command(
            "ip", "-n", path.middle, family, "route", "add", "default", "dev", _BOX_DEVICE, "table", _BOX_TABLE
        )
    log = path.directory / "box.jsonl"
    chosen = {"behaviour": behaviour, "seed": path.seed, **settings}
    process = path.start_python(path.middle, "packet_box", path.middle, _BOX_DEVICE, str(log), json.dumps(chosen))
    deadline = time.monotonic() + _READY_S
    while not log.with_name("box.jsonl.ready").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((path.directory / "packet_box.out").read_text().strip() or "the middlebox did not start")
        time.sleep(0.05)


def acknowledge_locally(path: MiddlePath, **settings: object) -> None:
    """Let the middle acknowledge in the receiver's name; see `local_acknowledgement.Settings`."""
    packet_box(path, "local-acknowledgement", mobile=path.mobile_address, **settings)


def take_over(path: MiddlePath, port: int, after_bytes: int) -> None:
    """Take connections over with TCP_REPAIR once the server has sent so much (`benchmarks.fresh.handover`)."""
    divert(path)
    packet_box(path, "handover", port=port, after_bytes=after_bytes)


def syn_proxy(path: MiddlePath, ports: Sequence[int], *offered: str) -> None:
    """Answer handshakes in the server's name, then shift sequence numbers (netfilter's SYNPROXY).

    `offered` are its options for what the SYN-ACK offers beside a segment size.

    Raises UnavailableError where the kernel has none.
    """
    settings = {
        "net.netfilter.nf_conntrack_tcp_loose": "0", "net.ipv4.tcp_syncookies": "1", "net.ipv4.tcp_timestamps": "1"
    }  # fmt: skip
    try:
        for port in map(str, ports):
            namespaces.inside(
                path.middle, "iptables", "-t", "raw", "-A", "PREROUTING", "-i", "cell", "-p", "tcp", "--dport", port,
                "--syn", "-j", "CT", "--notrack",
            )  # fmt: skip
            namespaces.inside(
                path.middle, "iptables", "-A", "FORWARD", "-i", "cell", "-p", "tcp", "--dport", port, "-m", "conntrack",
                "--ctstate", "INVALID,UNTRACKED", "-j", "SYNPROXY", *offered, "--mss", "1460",
            )  # fmt: skip
        namespaces.inside(
            path.middle, "iptables", "-A", "FORWARD", "-p", "tcp", "-m", "conntrack", "--ctstate", "INVALID",
            "-j", "DROP",
        )  # fmt: skip
        namespaces.sysctl(path.middle, settings)
    except RuntimeError as error:
        raise UnavailableError(f"SYNPROXY in the kernel ({error})") from error


def translate(path: MiddlePath, address: str) -> None:
    """Let IPv4 servers be reached over IPv6 (NAT64, RFC 6052, by tayga) at `address`, whose braces are for the IPv4
    address."""
    prefix, pool = address.format(""), "198.19.0"
    directory = path.directory / "tayga"
    directory.mkdir()
    configuration = directory / "tayga.conf"
    configuration.write_text(
        f"tun-device nat64\nipv4-addr {pool}.1\nipv6-addr 2001:db8:65::1\nprefix {prefix}/96\n"
        f"dynamic-pool {pool}.0/24\ndata-dir {directory}\n"
    )
    namespaces.inside(path.middle, "tayga", "--config", str(configuration), "--mktun")
    namespaces.command("ip", "-n", path.middle, "link", "set", "nat64", "up")
    namespaces.command("ip", "-n", path.middle, "route", "add", f"{pool}.0/24", "dev", "nat64")
    namespaces.command("ip", "-n", path.middle, "-6", "route", "add", f"{prefix}/96", "dev", "nat64")
    path.start(path.middle, "tayga", "--config", str(configuration), "--nodetach", log="tayga.out")
    time.sleep(_START_S)


def two_paths(path: NetworkPath) -> None:
    """Give the mobile a second address and let Multipath TCP use it (RFC 8684)."""
    host, _, last = path.mobile_address.rpartition(".")
    second = f"{host}.{int(last) + 1}"
    namespaces.command("ip", "-n", path.mobile, "addr", "add", f"{second}/32", "dev", path.device["mobile"])
    for place in (path.mobile, path.server):
        namespaces.inside(place, "ip", "mptcp", "limits", "set", "subflows", "2", "add_addr_accepted", "2")
    namespaces.inside(path.mobile, "ip", "mptcp", "endpoint", "add", second, "dev", path.device["mobile"], "subflow")


def slirp(path: NetworkPath) -> None:
    """Put the mobile's applications behind slirp4netns: a TCP stack in user space that opens sockets of its host."""
    outer = path.move_mobile("tap0")
    path.start(
        outer, "slirp4netns", "--configure", "--mtu=1500", "--disable-dns", "--netns-type=path",
        f"/run/netns/{path.mobile}", "tap0", log="slirp.out",
    )  # fmt: skip
    path.wait_device(path.mobile, "tap0")


def pasta(path: NetworkPath) -> None:
    """Put the mobile's applications behind pasta: each connection of its tap device becomes a socket of its host."""
    outer = path.move_mobile("tap0")
    path.start(
        outer, "pasta", "--foreground", "--stderr", "--config-net", "--ns-ifname", "tap0", "--mtu", "1500",
        "--ipv4-only", "--runas", "0", "--netns", f"/run/netns/{path.mobile}", log="pasta.out",
    )  # fmt: skip
    path.wait_device(path.mobile, "tap0")
    # pasta cannot set a default route through a router that is on no network of the interface.
    namespaces.command("ip", "-n", path.mobile, "route", "replace", path.router, "dev", "tap0")
    namespaces.command("ip", "-n", path.mobile, "route", "replace", "default", "via", path.router, "dev", "tap0")
