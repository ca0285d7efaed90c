"""A client, five routers and a host of three addresses, one namespace each; boxes are put on the routers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.end_to_end.network import running

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUTERS = 5
#: Addresses of the host, which lies six hops away.
HOSTS = ("10.88.0.1", "10.88.0.2", "10.88.0.3")
HOSTS_6 = ("fd88::1", "fd88::2", "fd88::3")
PLAIN, TLS = 80, 443
_BOX_PORT = 9040
_PROGRAMS = Path(__file__).parent


@dataclass(slots=True)
class Chain:
    """Names of the namespaces along the path, the client's first; `stack` undoes what is put on it."""

    names: list[str]
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def inside(self, place: int, *command: str) -> list[str]:
        """`command` as run at a place: 0 is the client, 1 to 5 the routers, 6 the host."""
        return ["ip", "netns", "exec", self.names[place], *command]

    def rule(self, place: int, program: str, table: str, chain: str, *words: str) -> None:
        """Append a rule of iptables or ip6tables until the test ends."""
        _run(*self.inside(place, program, "-w", "60", "-t", table, "-A", chain, *words))
        self.stack.callback(_run, *self.inside(place, program, "-w", "60", "-t", table, "-D", chain, *words))

    def box(
        self,
        place: int,
        mode: str,
        ports: tuple[int, ...],
        programs: tuple[str, ...] = ("iptables",),
        before: str = "",
    ) -> None:
        """Hand connections to these ports, of all addresses or of those `before` which it stands, to `box.py`."""
        command = self.inside(place, sys.executable, str(_PROGRAMS / "box.py"), mode, str(_BOX_PORT))
        self.stack.enter_context(running(command, "ready"))
        chain = "PREROUTING" if place else "OUTPUT"
        for program in programs:
            for port in ports:
                words = ["-p", "tcp", "--dport", str(port)] + (["-d", before] if before else [])
                if place == 0:
                    words += ["-m", "owner", "!", "--uid-owner", "65534"]
                self.rule(place, program, "nat", chain, *words, "-j", "REDIRECT", "--to-ports", str(_BOX_PORT))

    def syn_proxy(self, place: int, port: int) -> None:
        """Answer handshakes to a port in the hosts' name (netfilter's SYNPROXY)."""
        kernel = ["net.netfilter.nf_conntrack_tcp_loose=0", "net.ipv4.tcp_syncookies=1"]
        _run(*self.inside(place, "sysctl", "-q", "-w", *kernel))
        matched = ["-p", "tcp", "--dport", str(port)]
        proxy = ["-j", "SYNPROXY", "--sack-perm", "--timestamp", "--wscale", "7", "--mss", "1460"]
        state = ["-m", "conntrack", "--ctstate"]
        self.rule(place, "iptables", "raw", "PREROUTING", "-i", "near", *matched, "--syn", "-j", "CT", "--notrack")
        self.rule(place, "iptables", "filter", "FORWARD", "-i", "near", *matched, *state, "INVALID,UNTRACKED", *proxy)
        self.rule(place, "iptables", "filter", "FORWARD", "-p", "tcp", *state, "INVALID", "-j", "DROP")

    def echoes(self) -> None:
        """Let every user of the client send echo requests, until the test ends."""
        ranges = ("0 2147483647", "1 0")
        allow, forbid = (self.inside(0, "sysctl", "-q", "-w", f"net.ipv4.ping_group_range={each}") for each in ranges)
        _run(*allow)
        self.stack.callback(_run, *forbid)

    def check(self, targets: Path, *options: str) -> dict[str, Any]:
        """What `python -m prober.check --json` at the client says."""
        return self.said([sys.executable, "-m", "prober.check"], targets, *options)

    def said(self, program: list[str], targets: Path, *options: str) -> dict[str, Any]:
        """The same of another program."""
        command = [*program, "--targets", str(targets), "--json", *options]
        done = subprocess.run(self.inside(0, *command), capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


@contextlib.contextmanager
def chain() -> Iterator[Chain]:
    """Make the path with its servers, and remove it again."""
    tag = f"pepscope-check-{os.getpid()}"
    names = [f"{tag}-{place}" for place in range(ROUTERS + 2)]
    made = Chain(names)
    with contextlib.ExitStack() as stack:
        for name in names:
            _run("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False, capture_output=True)
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run(
                "ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1",
                "net.ipv6.conf.all.forwarding=1", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0",
                "net.ipv4.conf.all.rp_filter=0", "net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0",
            )  # fmt: skip
        for link in range(ROUTERS + 1):
            _join(names[link], names[link + 1], link)
        for place in range(ROUTERS + 1):
            for family, gateway in (("-4", f"10.77.{place}.2"), ("-6", f"fd77:{place}::2")):
                _run("ip", "-n", names[place], family, "route", "add", "default", "via", gateway)
        for place in range(2, ROUTERS + 2):
            for link in range(place - 1):
                back = place - 1
                for net, gateway in (
                    (f"10.77.{link}.0/24", f"10.77.{back}.1"), (f"fd77:{link}::/64", f"fd77:{back}::1")
                ):  # fmt: skip
                    _run("ip", "-n", names[place], "route", "add", net, "via", gateway)
        for address in (*HOSTS, *HOSTS_6):
            bits = 128 if ":" in address else 32
            _run("ip", "-n", names[-1], "address", "add", f"{address}/{bits}", "dev", "lo")
        server = made.inside(len(names) - 1, sys.executable, str(_PROGRAMS / "box.py"), "serve", str(PLAIN), str(TLS))
        stack.enter_context(running(server, "ready"))
        yield made


def _join(left: str, right: str, link: int) -> None:
    """A veth pair, `.1` on the client's side and `.2` on the host's."""
    _run("ip", "-n", left, "link", "add", "far", "type", "veth", "peer", "name", "near", "netns", right)
    for name, device, end in ((left, "far", 1), (right, "near", 2)):
        _run("ip", "-n", name, "address", "add", f"10.77.{link}.{end}/24", "dev", device)
        _run("ip", "-n", name, "-6", "address", "add", f"fd77:{link}::{end}/64", "dev", device, "nodad")
        _run("ip", "-n", name, "link", "set", device, "up")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
