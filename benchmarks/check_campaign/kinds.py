"""Kinds of paths: what stands on them, and which ports it splits."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.check_campaign.hosts import PLAIN, TLS
from benchmarks.check_campaign.world import HOSTS, ROUTERS, VPN_EXIT, World
from tests.end_to_end.network import running

#: Routers at which a split is the network's: behind them lie two more before any host.
_PLACES = (1, 2, 3)
_BOTH = (PLAIN, TLS)
_TCP = ("-p", "tcp")
_CLIENT = "10.77.0.1"
_TABLE = "200"
_PEPSCOPE = str(Path(sys.executable).with_name("pepscope"))
_HAPROXY = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen diverted
    bind 0.0.0.0:8888 transparent
    option transparent
"""
_SQUID = """
http_port 127.0.0.1:3128
http_port 0.0.0.0:9041 intercept
http_access allow all
cache deny all
access_log none
cache_log /dev/null
pid_filename none
coredump_dir {directory}
"""

Put = Callable[[World, random.Random], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is put on the path; `split` are the ports, by version of IP, that it splits."""

    put: Put
    split: frozenset[tuple[int, int]] = frozenset()
    #: Whether hosts over IPv6 are asked as well.
    ipv6: bool = False


def _nothing(world: World, chance: random.Random) -> None:
    del world, chance


def _rule(table: str, where: str, *words: str) -> Put:
    return lambda world, chance: world.rule(chance.randint(1, ROUTERS), "iptables", table, where, *words)


def _box(mode: str, ports: Sequence[int], *matched: str, program: str = "iptables") -> Put:
    return lambda world, chance: world.box(chance.choice(_PLACES), mode, ports, *matched, program=program)


def _all(*puts: Put) -> Put:
    def put(world: World, chance: random.Random) -> None:
        for each in puts:
            each(world, chance)

    return put


def _syn_proxy(world: World, chance: random.Random) -> None:
    place = chance.choice(_PLACES[1:])
    world.run(place, "sysctl", "-q", "-w", "net.netfilter.nf_conntrack_tcp_loose=0", "net.ipv4.tcp_syncookies=1")
    for port in _BOTH:
        matched, state = ("-i", "near", *_TCP, "--dport", str(port)), ("-m", "conntrack", "--ctstate")
        proxy = ("-j", "SYNPROXY", "--sack-perm", "--timestamp", "--wscale", "7", "--mss", "1460")
        world.rule(place, "iptables", "raw", "PREROUTING", *matched, "--syn", "-j", "CT", "--notrack")
        world.rule(place, "iptables", "filter", "FORWARD", *matched, *state, "INVALID,UNTRACKED", *proxy)
    world.rule(place, "iptables", "filter", "FORWARD", *_TCP, "-m", "conntrack", "--ctstate", "INVALID", "-j", "DROP")


def _silent(world: World, chance: random.Random) -> None:
    """No router says what it drops; hosts answer echo requests, which the client's users may send."""
    del chance
    for place in range(1, ROUTERS + 1):
        for kind in ("time-exceeded", "destination-unreachable"):
            world.rule(place, "iptables", "filter", "OUTPUT", "-p", "icmp", "--icmp-type", kind, "-j", "DROP")
    world.rule(1, "iptables", "filter", "FORWARD", "-p", "icmp", "--icmp-type", "destination-unreachable", "-j", "DROP")
    let_users_echo(world)


def let_users_echo(world: World) -> None:
    """Let users of the client send echo requests, until the run is over."""
    name = "net.ipv4.ping_group_range"
    world.until_done(0, ["sysctl", "-q", "-w", f"{name}=0 2147483647"], ["sysctl", "-q", "-w", f"{name}=1 0"])


def _loss(world: World, chance: random.Random) -> None:
    world.line("access", delay_s=chance.uniform(0.003, 0.03), loss=chance.uniform(0.002, 0.02))


def _sleeps(world: World, chance: random.Random) -> None:
    """A radio that sleeps after some tenths of a second, and takes up to half a second to wake up."""
    world.line(
        "access", delay_s=chance.uniform(0.01, 0.03), jitter_s=chance.uniform(0, 0.01),
        sleeps_after_s=chance.uniform(0.1, 0.5), wake_s=chance.uniform(0.1, 0.5),
    )  # fmt: skip


def _thinks(world: World, chance: random.Random) -> None:
    """Each host thinks for a time of its own before every answer."""
    least = [chance.uniform(0.02, 0.5) for _ in HOSTS]
    world.think([(each, each + chance.uniform(0, 0.1)) for each in least])


def _balancers(world: World, chance: random.Random) -> None:
    """Before some of the hosts, at the router that leads to them alone, a box answers."""
    place, own = ROUTERS, HOSTS[len(HOSTS) // 2 :]
    chosen = chance.sample(own, chance.randint(1, len(own) - 1))
    world.box(place, "split", _BOTH, "-d", ",".join(chosen))


def _vpn(world: World, chance: random.Random) -> None:
    """Everything goes through a tunnel to a router far away, which translates addresses."""
    world.line("vpn", delay_s=chance.uniform(0.02, 0.06))
    back = ["ip", "route", "replace", "default", "via", "10.77.0.2"]
    world.until_done(0, ["ip", "route", "replace", "default", "dev", "vpn", "src", "10.200.0.1"], back)
    world.rule(VPN_EXIT, "iptables", "nat", "POSTROUTING", "-s", "10.200.0.0/24", "-o", "far", "-j", "MASQUERADE")


def _on_this_host(world: World, chance: random.Random) -> None:
    del chance
    world.box(0, "split", (PLAIN,))


def _acknowledges(world: World, chance: random.Random) -> None:
    """What the client sends is acknowledged before the hosts have it."""
    place = chance.choice(_PLACES[1:])
    settings = {"mobile": _CLIENT, "directions": ["up"], "ports": list(_BOTH)}
    command = [sys.executable, "-m", "benchmarks.fresh.acknowledging_box", "box", os.devnull, json.dumps(settings)]
    world.stack.enter_context(running(world.inside(place, *command), "ready"))
    world.run(place, "ip", "link", "set", "box", "up")
    world.run(place, "ip", "route", "add", "default", "dev", "box", "table", _TABLE)
    for port in _BOTH:
        for way in (("iif", "near", "ipproto", "tcp", "dport"), ("iif", "far", "ipproto", "tcp", "sport")):
            words = [*way, str(port), "lookup", _TABLE]
            world.until_done(place, ["ip", "rule", "add", *words], ["ip", "rule", "del", *words])


def _proxy(ports: Sequence[int], *own: str) -> Put:
    """A transparent proxy of ours, or (without a mode) HAProxy, to which our own rules divert."""

    def put(world: World, chance: random.Random) -> None:
        place = chance.choice(_PLACES)
        listed = ",".join(map(str, ports))
        command = [_PEPSCOPE, "proxy", *(own or ("split",)), "--interception", "transparent", "--device", "near"]
        command += ["--ports", listed]
        world.until_done(place, [*command, "--setup"], [*command, "--teardown"])
        served = [*command, "--listen", "0.0.0.0:8888"]
        if not own:
            directory = _scratch(world)
            (directory / "haproxy.cfg").write_text(_HAPROXY, encoding="utf-8")
            served = ["haproxy", "-db", "-f", str(directory / "haproxy.cfg")]
        world.until_listening(place, served, 8888)

    return put


def _squid(world: World, chance: random.Random) -> None:
    place, directory = chance.choice(_PLACES), _scratch(world)
    (directory / "squid.conf").write_text(_SQUID.format(directory=directory), encoding="utf-8")
    world.until_listening(place, ["squid", "-N", "-f", str(directory / "squid.conf")], 9041)
    words = (*_TCP, "--dport", str(PLAIN), "-j", "REDIRECT", "--to-ports", "9041")
    world.rule(place, "iptables", "nat", "PREROUTING", *words)


def _scratch(world: World) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="pepscope-campaign-"))
    world.stack.callback(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o777)  # noqa: PTH101 - programs that give up their rights write there
    return directory


_ALL_SPLIT = frozenset({(4, PLAIN), (4, TLS)})
_PLAIN_SPLIT = frozenset({(4, PLAIN)})
_EVERY_SECOND = ("-m", "statistic", "--mode", "nth", "--every", "2", "--packet", "0")
KINDS = {
    "nothing": Kind(_nothing),
    "nothing, over IPv6 too": Kind(_nothing, ipv6=True),
    "address translation": Kind(_rule("nat", "POSTROUTING", "-o", "far", "-j", "MASQUERADE")),
    "smaller segments": Kind(
        _rule("mangle", "FORWARD", *_TCP, "--tcp-flags", "SYN,RST", "SYN", "-j", "TCPMSS", "--set-mss", "1300")
    ),
    "a captive portal": Kind(_box("portal", (PLAIN,))),
    "a SYN proxy": Kind(_syn_proxy),
    "balancers before some hosts": Kind(_balancers),
    "a VPN to a far exit": Kind(_vpn),
    "a program on this host": Kind(_on_this_host),
    "lost packets": Kind(_loss),
    "wake-ups": Kind(_sleeps),
    "slow servers": Kind(_thinks),
    "slow servers and wake-ups": Kind(_all(_thinks, _sleeps)),
    "silent routers": Kind(_silent),
    "silent routers and slow servers": Kind(_all(_silent, _thinks)),
    "no datagrams": Kind(_rule("filter", "FORWARD", "-p", "udp", "-j", "DROP")),
    "a port that is refused": Kind(
        _rule("filter", "FORWARD", *_TCP, "--dport", str(TLS), "-j", "REJECT", "--reject-with", "tcp-reset")
    ),
    "a split of all ports": Kind(_box("split", _BOTH), _ALL_SPLIT),
    "a split of one port": Kind(_box("split", (PLAIN,)), _PLAIN_SPLIT),
    "a split of IPv4 alone": Kind(_box("split", (PLAIN,)), _PLAIN_SPLIT, ipv6=True),
    "a split of IPv6 alone": Kind(_box("split", (PLAIN,), program="ip6tables"), frozenset({(6, PLAIN)}), ipv6=True),
    "our relay": Kind(_proxy(_BOTH, "split"), _ALL_SPLIT),
    "our store-and-forward proxy": Kind(_proxy((PLAIN,), "store-and-forward"), _PLAIN_SPLIT),
    "HAProxy": Kind(_proxy(_BOTH), _ALL_SPLIT),
    "Squid": Kind(_squid, _PLAIN_SPLIT),
    "local acknowledgement": Kind(_acknowledges, _ALL_SPLIT),
    "a split and lost packets": Kind(_all(_loss, _box("split", _BOTH)), _ALL_SPLIT),
    "a split and wake-ups": Kind(_all(_sleeps, _box("split", _BOTH)), _ALL_SPLIT),
    "a split and slow servers": Kind(_all(_thinks, _box("split", _BOTH)), _ALL_SPLIT),
    "a split and silent routers": Kind(_all(_silent, _box("split", _BOTH)), _ALL_SPLIT),
    "a split of every second connection": Kind(_box("split", _BOTH, *_EVERY_SECOND), _ALL_SPLIT),
}
