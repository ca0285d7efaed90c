"""How each kind of middle is started (`plan.MIDDLES` says what it is)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.fresh import middleboxes, namespaces, proxies
from benchmarks.one_ended import services

if TYPE_CHECKING:
    from benchmarks.one_ended.topology import Network

Start = Callable[["Network"], None]
_PROXY_PORT = 8888


def start(network: Network) -> None:
    """Start the network's middle, let it spare whom it does not take, and hide how far away it is."""
    plan = network.network_plan
    STARTS[plan.middle](network)
    for client in plan.clients:
        if not client.taken:
            _spare(network, client.network)
    if plan.hide_hops:
        _hide_hops(network)


def _nothing(network: Network) -> None:
    del network


def _nat(network: Network) -> None:
    address = network.network_plan.middle_address
    namespaces.inside(
        network.middle, "iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "wired", "-j", "SNAT",
        "--to-source", address,
    )  # fmt: skip


def _clamp(network: Network) -> None:
    middleboxes.clamp_segments(network, 1300)


def _vpn(network: Network) -> None:
    """A tunnel's exit: addresses translated, segments small enough for the tunnel."""
    _nat(network)
    middleboxes.clamp_segments(network, 1320)


def _synproxy(network: Network) -> None:
    middleboxes.syn_proxy(network, network.network_plan.split_ports)


def _haproxy(*, transparent: bool) -> Start:
    def begin(network: Network) -> None:
        configuration = network.directory / "middle.cfg"
        source = " source 0.0.0.0 usesrc clientip\n" if transparent else ""
        configuration.write_text(
            "global\n maxconn 400\ndefaults\n mode tcp\n timeout connect 20s\n timeout client 60s\n"
            f" timeout server 60s\nfrontend near\n bind :{_PROXY_PORT}{' transparent' if transparent else ''}\n"
            f" default_backend far\nbackend far\n{source} server origin 0.0.0.0\n"
        )
        network.start(network.middle, "haproxy", "-db", "-f", str(configuration), log="middle.out")
        network.wait_listening(network.middle, _PROXY_PORT)
        _take(network, _PROXY_PORT, transparent=transparent)

    return begin


def _take(network: Network, port: int, *, transparent: bool) -> None:
    hand_over = middleboxes.intercept if transparent else middleboxes.redirect
    hand_over(network, network.network_plan.split_ports, port)


def _squid(*, mode: str, cache: bool = False) -> Start:
    def begin(network: Network) -> None:
        proxies.squid(mode=mode, cache=cache)(network)

    return begin


def _redsocks(network: Network) -> None:
    network.start(network.middle, "microsocks", "-i", "127.0.0.1", "-p", "1080", log="microsocks.out")
    network.wait_listening(network.middle, 1080)
    configuration = network.directory / "redsocks.conf"
    configuration.write_text(
        "base { log_info = on; daemon = off; redirector = iptables; }\n"
        "redsocks { local_ip = 0.0.0.0; local_port = 12345; ip = 127.0.0.1; port = 1080; type = socks5; }\n"
    )
    network.start(network.middle, "redsocks", "-c", str(configuration), log="redsocks.out")
    network.wait_listening(network.middle, 12345)
    _take(network, 12345, transparent=False)


def _pepscope(mode: str) -> Start:
    def begin(network: Network) -> None:
        truth = str(network.directory / "middle-truth.jsonl")
        network.start(
            network.middle, sys.executable, "-m", "pepscope", "proxy", mode, "--interception", "transparent",
            "--listen", f"0.0.0.0:{_PROXY_PORT}", "--truth", truth, log="middle.out",
        )  # fmt: skip
        network.wait_listening(network.middle, _PROXY_PORT)
        _take(network, _PROXY_PORT, transparent=True)

    return begin


def _local(*directions: str) -> Start:
    """Acknowledge the data of these directions in the receiver's name, and end nothing."""

    def begin(network: Network) -> None:
        ports = network.network_plan.split_ports
        middleboxes.acknowledge_locally(network, directions=directions, ports=ports)

    return begin


STARTS: dict[str, Start] = {
    "none": _nothing,
    "nat": _nat,
    "clamp": _clamp,
    "vpn": _vpn,
    "synproxy": _synproxy,
    "haproxy": _haproxy(transparent=True),
    "haproxy-redirect": _haproxy(transparent=False),
    "squid": _squid(mode="intercept"),
    "squid-tproxy": _squid(mode="tproxy"),
    "squid-cache": _squid(mode="intercept", cache=True),
    "redsocks": _redsocks,
    "pepscope-split": _pepscope("split"),
    "pepscope-store": _pepscope("store-and-forward"),
    "pepscope-window": _pepscope("window-adaptation"),
    "nginx-stream": services.nginx_stream,
    "stunnel": services.stunnel,
    "hitch": services.hitch,
    "tinyproxy": services.tinyproxy,
    "varnish": services.varnish,
    "local-both": _local("down", "up"),
    "local-down": _local("down"),
    "local-up": _local("up"),
    "haproxy-holding": _haproxy(transparent=True),
}


def _spare(network: Network, prefix: str) -> None:
    """Let the connections of a client network pass untouched."""
    for table, chain in (("raw", "PREROUTING"), ("mangle", "PREROUTING"), ("nat", "PREROUTING"), ("filter", "FORWARD")):
        for way in ("-s", "-d"):
            if table == "nat" and way == "-d":
                continue
            namespaces.inside(network.middle, "iptables", "-t", table, "-I", chain, "1", way, prefix, "-j", "ACCEPT")


def _hide_hops(network: Network) -> None:
    """Give what the middle sends itself the TTL that the far host's packets have at that place."""
    plan = network.network_plan

    def rule(device: str, match: tuple[str, ...], ttl: int) -> None:
        namespaces.inside(
            network.middle, "iptables", "-t", "mangle", "-A", "OUTPUT", "-o", device, *match, "-j", "TTL", "--ttl-set",
            str(max(ttl, 2)),
        )  # fmt: skip

    for server in plan.servers:
        ttl = server.stack.ttl - server.link.down.hops - 1 - server.offload
        rule("cell", ("-m", "conntrack", "--ctorigdst", server.address), ttl)
        rule("cell", ("-s", server.address), ttl)
    client = plan.clients[0]
    rule("wired", (), client.stack.ttl - client.link.up.hops - 1 - client.offload)
    for other in plan.clients[1:]:
        rule("wired", ("-s", other.network), other.stack.ttl - other.link.up.hops - 1 - other.offload)
