"""Rules of the packet filter that hand ACK-bearing segments to a queue: tagged, replaced, and always removed again.

Every segment with the ACK bit goes, but for SYN and RST: FIN and data carry acknowledgements too, and one that leaked
past the others would look like an acknowledgement by a middlebox. The tag of a rule names its queue, so a tag whose
queue no process holds is what a crash left. `--queue-bypass` lets packets pass there meanwhile.
"""

from __future__ import annotations

import ipaddress
import json
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from prober.errors import ImpossibleError, MeasurementError
from prober.host.hold.nfqueue import queues_in_use

TAG = "PEPSCOPE-ACK-"
COMMAND_TIMEOUT_S = 10.0
_KEEPER = Path(__file__).with_name("rule_keeper.py")
_WAIT_FOR_LOCK = ("-w", "5")

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldTraffic:
    """Whose segments are held: those from ports of this host, or those to ports of another host."""

    #: Ranges of ports of the server, both ends included.
    ports: tuple[tuple[int, int], ...]
    #: The server's address where the mobile holds; empty where the server itself does.
    host: str = ""
    #: IP versions; a mobile's is that of `host`.
    versions: tuple[int, ...] = (4, 6)

    def __post_init__(self) -> None:
        if not self.ports or any(not 1 <= first <= last <= 65_535 for first, last in self.ports):
            raise ValueError(f"ports must be ranges of ports, got {self.ports}")
        if self.host:
            object.__setattr__(self, "versions", (ipaddress.ip_address(self.host).version,))

    @property
    def at_server(self) -> bool:
        """Whether it is the server that holds its segments."""
        return not self.host


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Commands of one packet filter that begin and end a hold."""

    install: tuple[Command, ...]
    remove: tuple[Command, ...]
    #: Lists the rules in force; the tag is among its output while they are there.
    listing: Command
    tag: str


def iptables_rules(traffic: HeldTraffic, queue: int) -> QueueRules:
    """A chain of its own for each IP version, at the end of `mangle OUTPUT`: captures show what it let go."""
    tag = f"{TAG}{queue}"
    install: list[Command] = []
    remove: list[Command] = []
    for version in traffic.versions:
        table = (_iptables(version), *_WAIT_FOR_LOCK, "-t", "mangle")
        install.append((*table, "-N", tag))
        for first, last in traffic.ports:
            ports = ("--sport" if traffic.at_server else "--dport", f"{first}:{last}")
            match = (*(() if traffic.at_server else ("-d", traffic.host)), "-p", "tcp", *ports)
            flags = ("--tcp-flags", "SYN,RST,ACK", "ACK")
            to = ("-j", "NFQUEUE", "--queue-num", str(queue), "--queue-bypass")
            install.append((*table, "-A", tag, *match, *flags, *to))
        install.append((*table, "-A", "OUTPUT", "-j", tag))
        remove += [(*table, "-D", "OUTPUT", "-j", tag), (*table, "-F", tag), (*table, "-X", tag)]
    listing = (_iptables(traffic.versions[0]), *_WAIT_FOR_LOCK, "-t", "mangle", "-S")
    return QueueRules(tuple(install), tuple(remove), listing, tag)


def nft_rules(traffic: HeldTraffic, queue: int) -> QueueRules:
    """A table of its own, added as one transaction."""
    tag = f"{TAG}{queue}".lower()
    ports = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in traffic.ports)
    which = f"tcp {'sport' if traffic.at_server else 'dport'} {{ {ports} }}"
    if traffic.host:
        which = f"{'ip6' if traffic.versions == (6,) else 'ip'} daddr {traffic.host} {which}"
    elif len(traffic.versions) == 1:
        which = f"meta nfproto {'ipv6' if traffic.versions == (6,) else 'ipv4'} {which}"
    rule = f"{which} tcp flags & (syn | rst | ack) == ack queue flags bypass to {queue}"
    chain = "type filter hook output priority mangle; policy accept;"
    text = f"table inet {tag} {{ chain output {{ {chain} {rule}; }}; }}"
    return QueueRules((("nft", text),), (("nft", "delete", "table", "inet", tag),), ("nft", "list", "tables"), tag)


class InstalledRules:
    """Rules in force from construction to `remove`, or to the end of this process, whatever ends it."""

    def __init__(self, rules: QueueRules) -> None:
        """Install them. Raises ImpossibleError with the packet filter's message."""
        self._rules = rules
        self._keeper = RuleKeeper(rules.remove)
        try:
            run_all(rules.install)
        except BaseException:
            self._keeper.close()
            raise

    def remove(self) -> None:
        """Remove them, and see that they are gone. Raises MeasurementError."""
        self._keeper.close()
        try:
            listed = run(self._rules.listing)
        except ImpossibleError:
            return
        if re.search(rf"{re.escape(self._rules.tag)}\b", listed):
            by_hand = "; ".join(shlex.join(command) for command in self._rules.remove)
            raise MeasurementError(f"rules of the packet filter could not be removed, do it by hand: {by_hand}")


class RuleKeeper:
    """A process that runs commands when it is closed, or as soon as this process is gone."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = tuple(commands)
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-I", "-S", *_keeper_program(), json.dumps(self._commands)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def close(self) -> None:
        """Have the commands run and wait for it; where the keeper was killed, run them here."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait() != 0:
            for command in self._commands:
                subprocess.run(command, capture_output=True, check=False, timeout=COMMAND_TIMEOUT_S)


def _keeper_program() -> tuple[str, ...]:
    """The keeper's file; its text where our modules are in a zip archive, as those of the client are."""
    if _KEEPER.exists():
        return (str(_KEEPER),)
    return ("-c", (pkgutil.get_data(__name__, _KEEPER.name) or b"").decode())


def remove_stale() -> None:
    """Remove tagged rules whose queue no process holds: a crash left them, and the keeper's with it."""
    for version in (4, 6):
        table = (_iptables(version), *_WAIT_FOR_LOCK, "-t", "mangle")
        for tag in _stale((*table, "-S"), rf"^-N ({TAG}(\d+))$"):
            _try_all([(*table, "-D", "OUTPUT", "-j", tag), (*table, "-F", tag), (*table, "-X", tag)])
    for tag in _stale(("nft", "list", "tables"), rf"^table inet ({TAG.lower()}(\d+))$"):
        _try_all([("nft", "delete", "table", "inet", tag)])


def makers() -> list[Callable[[HeldTraffic, int], QueueRules]]:
    """Ways to write rules here, best first."""
    return [maker for command, maker in (("iptables", iptables_rules), ("nft", nft_rules)) if shutil.which(command)]


def run(command: Command) -> str:
    """Run a command; what it wrote. Raises ImpossibleError with its complaint."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S)
    except FileNotFoundError:
        raise ImpossibleError(f"the command {command[0]} is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImpossibleError(f"{command[0]} cannot be run: {error}") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise ImpossibleError(f"`{shlex.join(command)}` failed: {said}")
    return done.stdout


def run_all(commands: Iterable[Command]) -> None:
    """Run commands in turn up to the first that fails. Raises ImpossibleError."""
    for command in commands:
        run(command)


def _try_all(commands: Iterable[Command]) -> None:
    for command in commands:
        subprocess.run(command, capture_output=True, check=False, timeout=COMMAND_TIMEOUT_S)


def _stale(listing: Command, pattern: str) -> list[str]:
    """Tags that a listing shows and whose queue is not in use."""
    try:
        listed = run(listing)
    except ImpossibleError:
        return []
    held = queues_in_use()
    return [tag for tag, queue in re.findall(pattern, listed, re.MULTILINE) if int(queue) not in held]


def _iptables(version: int) -> str:
    return "ip6tables" if version == 6 else "iptables"
