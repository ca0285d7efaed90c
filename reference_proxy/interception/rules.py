"""The rules that divert packets to a transparent proxy (TPROXY), installed and removed as often as one likes.

What they do, whether written for nftables or iptables (Documentation/networking/tproxy.rst of the kernel):

1. Packets of a connection that already has a socket here with a foreign address (from the client to us, or from the
   server to the client whom we spoof) get the mark.
2. New connections from the clients' device to the chosen ports are handed to the proxy's listener, and get the mark.
3. Marked packets are routed by a table of their own, in which every address is local.

Where the clients are programs of this machine (a tunnel's client end), their packets are marked on their way out,
come round by the loopback device and meet rule 2 there.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reference_proxy.configuration import Rules
from reference_proxy.errors import ConfigurationError, ProxyError
from reference_proxy.sockets import read_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reference_proxy.configuration import Configuration

TABLE = "pepscope_proxy"
CHAIN = "PEPSCOPE-PROXY"
CHAIN_OUT = "PEPSCOPE-PROXY-OUT"
COMMAND_TIMEOUT_S = 10.0
#: The first packet of a connection; those that follow it belong to a socket, or pass.
_NFT_SYN = "tcp flags & (fin | syn | rst | ack) == syn "
LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Command:
    """One command; where it `may_fail`, what it removes need not be there."""

    arguments: tuple[str, ...]
    may_fail: bool = False
    standard_input: str = ""

    def __str__(self) -> str:
        """As a shell takes it."""
        line = shlex.join(self.arguments)
        if self.standard_input:
            line += f" <<'END'\n{self.standard_input}END"
        return f"{line} 2>/dev/null || true" if self.may_fail else line


@dataclass(frozen=True, slots=True)
class Diversion:
    """What is diverted, and where to."""

    device: str
    ports: tuple[int, ...]
    mark: int
    table: int
    #: Port of the listener, by IP version.
    listeners: dict[int, int]
    #: Of new connections one in so many is diverted.
    every: int = 1

    @property
    def name(self) -> str:
        """Of the nftables table; proxies with other routing tables have rules of their own beside it."""
        return TABLE if self.table == Rules().table else f"{TABLE}_{self.table}"

    def chain(self, chain: str) -> str:
        """A chain of iptables, likewise; names there have at most 28 letters."""
        return chain if self.table == Rules().table else f"{chain}-{self.table:x}"

    @property
    def port_spans(self) -> list[tuple[int, int]]:
        """First and last port of each range."""
        spans: list[tuple[int, int]] = []
        for port in sorted(set(self.ports)):
            if spans and port == spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], port)
            else:
                spans.append((port, port))
        return spans

    @property
    def own_programs(self) -> bool:
        """Whether the clients are on this machine."""
        return self.device == LOOPBACK


def diversion_of(configuration: Configuration) -> Diversion:
    """The rules of a configuration. Raises ConfigurationError."""
    if not configuration.interception.needs_rules:
        raise ConfigurationError(
            f"{configuration.interception.value} interception needs no rules: --setup is for transparent ones"
        )
    listeners = {}
    for text in configuration.listen:
        host, port = read_address(text, "listen")
        listeners[6 if ":" in host else 4] = port
    rules = configuration.rules
    if rules.every > 1 and rules.device in ("", LOOPBACK):
        raise ConfigurationError(
            "rules.every must be 1 without rules.device, since programs of this machine have no turns, "
            f"got {rules.every}"
        )
    return Diversion(rules.device or LOOPBACK, rules.ports, rules.mark, rules.table, listeners, rules.every)


def setup(configuration: Configuration) -> list[Command]:
    """Commands that install the rules; what an earlier run left is replaced."""
    diversion = diversion_of(configuration)
    commands = [*_routes_away(diversion), *_routes(diversion)]
    commands += _nft_setup(diversion) if _has_nft() else _iptables_setup(diversion)
    return commands + _initial_window(configuration.rules.device, configuration.mobile.initial_window_segments)


def teardown(configuration: Configuration) -> list[Command]:
    """Commands that remove the rules, whether they are there or not."""
    diversion = diversion_of(configuration)
    commands = _nft_teardown(diversion) if _has_nft() else _iptables_teardown(diversion)
    commands += _routes_away(diversion)
    if configuration.mobile.initial_window_segments:
        commands += _initial_window(configuration.rules.device, 0)
    return commands


def execute(commands: Iterable[Command]) -> None:
    """Run the commands in turn. Raises ProxyError with the message of the first that failed."""
    for command in commands:
        try:
            done = subprocess.run(
                command.arguments,
                input=command.standard_input or None,
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProxyError(f"{command.arguments[0]} cannot be run: {error}") from None
        if done.returncode and not command.may_fail:
            said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            raise ProxyError(f"`{shlex.join(command.arguments)}` failed: {said}")


def _has_nft() -> bool:
    return shutil.which("nft") is not None


def _routes(diversion: Diversion) -> list[Command]:
    commands = []
    for version in sorted(diversion.listeners):
        everything = "::/0" if version == 6 else "0.0.0.0/0"
        table = str(diversion.table)
        commands.append(_ip(version, "rule", "add", "fwmark", hex(diversion.mark), "lookup", table))
        commands.append(_ip(version, "route", "replace", "local", everything, "dev", LOOPBACK, "table", table))
    return commands


def _routes_away(diversion: Diversion) -> list[Command]:
    commands = []
    for version in (4, 6):
        table = str(diversion.table)
        commands.append(_ip(version, "rule", "del", "fwmark", hex(diversion.mark), "lookup", table, may_fail=True))
        commands.append(_ip(version, "route", "flush", "table", table, may_fail=True))
    return commands


def _ip(version: int, *arguments: str, may_fail: bool = False) -> Command:
    return Command(("ip", f"-{version}", *arguments), may_fail)


def _nft_setup(diversion: Diversion) -> list[Command]:
    mark = hex(diversion.mark)
    ports = "{ " + ", ".join(_span(first, last, "-") for first, last in diversion.port_spans) + " }"
    lines = [
        # To add before deleting makes deleting succeed: the whole is one transaction.
        f"table inet {diversion.name} {{}}",
        f"delete table inet {diversion.name}",
        f"table inet {diversion.name} {{",
        "  chain prerouting {",
        "    type filter hook prerouting priority mangle; policy accept;",
        f"    meta l4proto tcp socket transparent 1 meta mark set {mark} accept",
    ]
    turns = f"{_NFT_SYN}numgen inc mod {diversion.every} == 0 " if diversion.every > 1 else ""
    for version, port in sorted(diversion.listeners.items()):
        family = "ip6" if version == 6 else "ip"
        nfproto = "ipv6" if version == 6 else "ipv4"
        lines.append(
            f'    meta nfproto {nfproto} iifname "{diversion.device}" fib daddr type != local tcp dport {ports} {turns}'
            f"tproxy {family} to :{port} meta mark set {mark} accept"
        )
    lines.append("  }")
    if diversion.own_programs:
        lines += [
            "  chain output {",
            "    type route hook output priority mangle; policy accept;",
            f"    fib daddr type != local tcp dport {ports} meta mark set {mark}",
            "  }",
        ]
    lines.append("}")
    return [Command(("nft", "-f", "-"), standard_input="\n".join(lines) + "\n")]


def _nft_teardown(diversion: Diversion) -> list[Command]:
    return [Command(("nft", "delete", "table", "inet", diversion.name), may_fail=True)]


def _span(first: int, last: int, between: str) -> str:
    return str(first) if first == last else f"{first}{between}{last}"


def _iptables_setup(diversion: Diversion) -> list[Command]:
    commands = _iptables_teardown(diversion)
    mark = f"{diversion.mark:#x}"
    chain, chain_out = diversion.chain(CHAIN), diversion.chain(CHAIN_OUT)
    elsewhere = ("-m", "addrtype", "!", "--dst-type", "LOCAL")
    for version, port in sorted(diversion.listeners.items()):

        def add(chain: str, *rule: str, version: int = version) -> None:
            commands.append(_mangle(version, "-A", chain, "-p", "tcp", *rule))

        commands.append(_mangle(version, "-N", chain))
        add(chain, "-m", "socket", "--transparent", "-j", "MARK", "--set-mark", mark)
        add(chain, "-m", "mark", "--mark", mark, "-m", "socket", "--transparent", "-j", "ACCEPT")
        tproxy = ("-j", "TPROXY", "--on-port", str(port), "--tproxy-mark", f"{mark}/0xffffffff")
        turns = ("-m", "statistic", "--mode", "nth", "--every", str(diversion.every), "--packet", "0")
        chosen = ("--syn", *turns) if diversion.every > 1 else ()
        for first, last in diversion.port_spans:
            add(chain, "-i", diversion.device, *elsewhere, "--dport", _span(first, last, ":"), *chosen, *tproxy)
        add("PREROUTING", "-j", chain)
        if diversion.own_programs:
            commands.append(_mangle(version, "-N", chain_out))
            for first, last in diversion.port_spans:
                marking = ("--dport", _span(first, last, ":"), "-j", "MARK", "--set-mark", mark)
                add(chain_out, *elsewhere, *marking)
            add("OUTPUT", "-j", chain_out)
    return commands


def _iptables_teardown(diversion: Diversion) -> list[Command]:
    commands = []
    for version in sorted(diversion.listeners):
        for hook, chain in (("PREROUTING", diversion.chain(CHAIN)), ("OUTPUT", diversion.chain(CHAIN_OUT))):
            commands.append(_mangle(version, "-D", hook, "-p", "tcp", "-j", chain, may_fail=True))
            commands.append(_mangle(version, "-F", chain, may_fail=True))
            commands.append(_mangle(version, "-X", chain, may_fail=True))
    return commands


def _mangle(version: int, *arguments: str, may_fail: bool = False) -> Command:
    return Command(("ip6tables" if version == 6 else "iptables", "-w", "-t", "mangle", *arguments), may_fail)


def _initial_window(device: str, segments: int) -> list[Command]:
    """Give every route by the clients' device this initial window; 0 takes it away."""
    if not device or (not segments and not Path("/sys/class/net", device).exists()):
        return []
    commands = []
    for version in (4, 6):
        asked = ("ip", "-j", f"-{version}", "route", "show", "dev", device)
        try:
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S)
            routes = json.loads(done.stdout or "[]")
        except (OSError, ValueError, subprocess.TimeoutExpired):
            raise ProxyError(
                f"`{shlex.join(asked)}` does not list the routes whose initial window is to be set"
            ) from None
        for route in routes:
            if str(route["dst"]).startswith("fe80:"):
                continue  # no client has a connection through a proxy from there
            words = [str(route["dst"]), "dev", device]
            for word, key in (("via", "gateway"), ("src", "prefsrc"), ("metric", "metric"), ("proto", "protocol")):
                words += [word, str(route[key])] if key in route else []
            window = ("initcwnd", str(segments)) if segments else ()
            commands.append(_ip(version, "route", "change" if version == 4 else "replace", *words, *window))
    return commands
