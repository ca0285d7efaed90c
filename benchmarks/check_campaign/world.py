"""A client, six routers and eight hosts at different distances, a network namespace each, with delays and boxes.

The client's access line lies between the first and the second router, so that its delay, losses and sleep are the whole
path's. Four hosts are six hops away, four seven. `stack` undoes what a run put on the path.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.check_campaign.hosts import PLAIN, TLS
from benchmarks.check_campaign.inside import enter
from prober.audit.check_capture import CheckCapture
from prober.check.report import document
from prober.check.session import places_of, run
from prober.check.targets import Target
from tests.end_to_end.network import running

ROUTERS = 6
HOSTS = tuple(f"10.88.{number}.1" for number in range(8))
HOSTS_6 = tuple(f"fd88:{number}::1" for number in range(8))
#: Hosts that answer DNS queries, and QUIC packets, over UDP.
_UDP = {2: (53,), 3: (443,), 5: (443,), 6: (53, 443)}
#: Where the tunnel of a VPN ends.
VPN_EXIT = 4
_CHECK_S = 120.0
_READY_S = 120.0
_BOX_PORT = 9040
_TREE = Path(__file__).parents[2]
_BOX = _TREE / "tests" / "prober" / "check" / "box.py"


@dataclass(slots=True)
class World:
    """`names` are those of the client and the routers, `hosts` those of the hosts."""

    names: Sequence[str]
    hosts: Sequence[str]
    lines: subprocess.Popen[str]
    servers: subprocess.Popen[str]
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def inside(self, place: int, *command: str) -> list[str]:
        """`command` as run at a place: 0 is the client, 1 to 6 the routers."""
        return ["ip", "netns", "exec", self.names[place], *command]

    def run(self, place: int, *command: str) -> None:
        """Run a command at a place; it must succeed."""
        _run(*self.inside(place, *command))

    def until_done(self, place: int, add: Sequence[str], undo: Sequence[str]) -> None:
        """Run a command now, and another one when the run is over."""
        self.run(place, *add)
        self.stack.callback(self.run, place, *undo)

    def rule(self, place: int, program: str, table: str, chain: str, *words: str) -> None:
        """Append a rule of iptables or ip6tables until the run is over."""
        rule = [program, "-w", "60", "-t", table]
        self.until_done(place, [*rule, "-A", chain, *words], [*rule, "-D", chain, *words])

    def box(self, place: int, mode: str, ports: Sequence[int], *matched: str, program: str = "iptables") -> None:
        """Hand connections to these ports to `tests/prober/check/box.py`."""
        self.stack.enter_context(running(self.inside(place, sys.executable, str(_BOX), mode, str(_BOX_PORT)), "ready"))
        chain = "PREROUTING" if place else "OUTPUT"
        own = () if place else ("-m", "owner", "!", "--uid-owner", "65534")
        for port in ports:
            words = ("-p", "tcp", "--dport", str(port), *matched, *own)
            self.rule(place, program, "nat", chain, *words, "-j", "REDIRECT", "--to-ports", str(_BOX_PORT))

    def until_listening(self, place: int, command: Sequence[str], port: int) -> None:
        """Start a server, wait until it listens, and end it when the run is over."""
        process = subprocess.Popen(
            self.inside(place, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=_TREE
        )
        self.stack.callback(_end, process)
        deadline_s = time.monotonic() + _READY_S
        while not self._listens(place, port):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"{' '.join(command)} does not listen on port {port}")
            time.sleep(0.1)

    def _listens(self, place: int, port: int) -> bool:
        listed = subprocess.run(
            self.inside(place, "ss", "-Hltn", f"sport = :{port}"), check=False, capture_output=True, text=True
        )
        return bool(listed.stdout.strip())

    def line(self, name: str, **changes: float) -> None:
        """How a line treats packets from now on."""
        _command(self.lines, {"line": name, **changes})

    def think(self, seconds: Sequence[tuple[float, float]]) -> None:
        """How long each host thinks from now on, from and to."""
        _command(self.servers, {"think": seconds})

    def check(self, targets: Sequence[Target], is_captured: bool) -> dict[str, Any]:
        """What a check at the client says, with a capture beside it or without. Raises RuntimeError where it fails."""
        receiving, sending = multiprocessing.get_context("fork").Pipe(duplex=False)
        arguments = (self.names[0], targets, is_captured, sending)
        child = multiprocessing.get_context("fork").Process(target=_checked, args=arguments)
        child.start()
        sending.close()
        try:
            said = receiving.recv()
        except EOFError:
            said = "the check ended without a word"
        child.join()
        if isinstance(said, str):
            raise RuntimeError(said)
        return dict(said)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _checked(namespace: str, targets: Sequence[Target], is_captured: bool, sending: Any) -> None:
    try:
        enter(namespace)
        places, unresolved = places_of(targets)
        with tempfile.TemporaryDirectory(prefix="pepscope-campaign-") as directory:
            begun = CheckCapture.begin(places, Path(directory, "check.pcap")) if is_captured else None
            verdicts, observations = run(places, unresolved, _CHECK_S, further=begun.finish if begun else None)
        sending.send(json.loads(json.dumps(document(verdicts, observations))))
    except Exception as error:  # what the parent reports
        sending.send(f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Make the path with its servers, and remove it again."""
    tag = f"pepscope-campaign-{os.getpid()}"
    names = [f"{tag}-{place}" for place in range(ROUTERS + 1)]
    hosts = [f"{tag}-host{number}" for number in range(len(HOSTS))]
    with contextlib.ExitStack() as stack:
        for name in (*names, *hosts):
            _run("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False, capture_output=True)
            _run(
                "ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1",
                "net.ipv6.conf.all.forwarding=1", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0",
                "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
                "net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0",
            )  # fmt: skip
            _batch(name, ["link set lo up"])
        given = {
            "access": [(names[1], "far"), (names[2], "near")],
            "vpn": [(names[0], "vpn"), (names[VPN_EXIT], "exit")],
            **{f"host{n}": [(names[_router(n)], f"host{n}"), (hosts[n], "near")] for n in range(len(HOSTS))},
        }
        lines = stack.enter_context(_serving("lines", json.dumps(given)))
        _address(names, hosts)
        listed = [{"name": f"host{n}", "namespace": hosts[n], "udp": _UDP.get(n, ())} for n in range(len(HOSTS))]
        servers = stack.enter_context(_serving("hosts", json.dumps(listed)))
        yield World(names, hosts, lines, servers)


def _router(host: int) -> int:
    return ROUTERS - 1 if host < len(HOSTS) // 2 else ROUTERS


def _address(names: Sequence[str], hosts: Sequence[str]) -> None:
    """Addresses and routes: link L joins places L and L + 1, `.1` on the client's side."""
    for link in range(ROUTERS):
        if link != 1:
            _batch(names[link], [f"link add far type veth peer name near netns {names[link + 1]}"])
        for name, device, end in ((names[link], "far", 1), (names[link + 1], "near", 2)):
            _batch(name, [
                f"address add 10.77.{link}.{end}/24 dev {device}",
                f"-6 address add fd77:{link}::{end}/64 dev {device} nodad",
                f"link set {device} up",
            ])  # fmt: skip
    for place in range(ROUTERS + 1):
        routes = []
        if place < ROUTERS:
            routes += [f"route add default via 10.77.{place}.2", f"-6 route add default via fd77:{place}::2"]
        for link in range(place - 1):
            routes += [
                f"route add 10.77.{link}.0/24 via 10.77.{place - 1}.1",
                f"-6 route add fd77:{link}::/64 via fd77:{place - 1}::1",
            ]
        _batch(names[place], routes)
    for number, name in enumerate(hosts):
        router, device = names[_router(number)], f"host{number}"
        _batch(router, [
            f"link set {device} up", f"route add {HOSTS[number]}/32 dev {device}",
            f"-6 route add {HOSTS_6[number]}/128 dev {device}",
        ])  # fmt: skip
        _batch(name, [
            "link set near up", f"address add {HOSTS[number]}/32 dev near",
            f"-6 address add {HOSTS_6[number]}/128 dev near nodad",
            "route add default dev near", "-6 route add default dev near",
        ])  # fmt: skip
    _batch(names[0], ["address add 10.200.0.1/24 dev vpn", "link set vpn up"])
    _batch(names[VPN_EXIT], ["address add 10.200.0.2/24 dev exit", "link set exit up"])


@contextlib.contextmanager
def _serving(module: str, given: str) -> Iterator[subprocess.Popen[str]]:
    """A process of this package that obeys commands until it is left."""
    command = [sys.executable, "-m", f"benchmarks.check_campaign.{module}", given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_TREE) as process:
        try:
            _await(process)
            yield process
        finally:
            process.kill()


def _command(process: subprocess.Popen[str], given: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(given) + "\n")
    process.stdin.flush()
    _await(process)


def _await(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    said = process.stdout.readline()
    if said != "ok\n":
        raise RuntimeError(f"{process.args!r} must answer ok, got {said!r}")


def _batch(name: str, lines: Sequence[str]) -> None:
    """Lines of `ip -batch`, those that begin with -6 apart."""
    for family in ("-4", "-6"):
        chosen = [line.removeprefix("-6 ") for line in lines if line.startswith("-6 ") == (family == "-6")]
        if chosen:
            subprocess.run(
                ["ip", "-n", name, family, "-batch", "-"], input="\n".join(chosen) + "\n", check=True,
                capture_output=True, text=True,
            )  # fmt: skip


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def targets(*, ipv6: bool) -> list[Target]:
    """Both ports of all hosts over IPv4, and the plain one over IPv6."""
    found = [Target(host, port, port == TLS) for host in HOSTS for port in (PLAIN, TLS)]
    return found + [Target(host, PLAIN, False) for host in HOSTS_6] if ipv6 else found
