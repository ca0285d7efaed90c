"""Hosts that a check connects to: six public hosts whose operators serve anybody, or those that the user names."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pepscope.errors import UsageError

#: Port numbers that speak TLS unless the user says otherwise.
_TLS_PORTS = frozenset({443, 465, 853, 993, 995, 8443})
#: Sites that are made for examples and for public mirrors of free software, run by different organisations, and a
#: public resolver, which answers DNS and QUIC beside TCP.
_PUBLIC = (
    "example.com", "deb.debian.org", "www.kernel.org", "www.gnu.org", "www.rfc-editor.org", "one.one.one.one",
)  # fmt: skip
DEFAULT_PORTS = (80, 443)
#: Documentation addresses, at which no host can be (RFC 5737, RFC 3849).
DOCUMENTATION_ADDRESSES = {4: ("192.0.2.113", "198.51.100.213"), 6: ("2001:db8:1f2e::71", "2001:db8:9a3b::29")}


@dataclass(frozen=True, slots=True)
class Target:
    """One port of a host, as the user named it."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A target with one of its addresses; `family` is 4 or 6."""

    target: Target
    address: str

    @property
    def family(self) -> int:
        """The version of IP."""
        return 6 if ":" in self.address else 4


def public_targets(ports: Sequence[int]) -> tuple[Target, ...]:
    """The ports of the public hosts."""
    return tuple(Target(host, port, port in _TLS_PORTS) for host in _PUBLIC for port in ports)


def read_targets(lines: Iterable[str], name: str) -> tuple[Target, ...]:
    """Targets of a file: a line each, `HOST PORT [tls|plain]`; `#` begins a comment. Raises UsageError."""
    found: dict[tuple[str, int], Target] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) not in (2, 3) or not _is_port(words[1]) or words[2:] not in ([], ["tls"], ["plain"]):
            raise UsageError(f"{name}, line {number}, must be HOST PORT [tls|plain], got {line.strip()[:80]!r}")
        port = int(words[1])
        tls = words[2] == "tls" if len(words) == 3 else port in _TLS_PORTS
        found.setdefault((words[0], port), Target(words[0], port, tls))
    if not found:
        raise UsageError(f"{name} must name at least one target, a line each: HOST PORT [tls|plain]")
    return tuple(found.values())


def read_ports(text: str) -> tuple[int, ...]:
    """Ports as `80,443`. Raises UsageError."""
    words = [word.strip() for word in text.split(",")]
    if not all(_is_port(word) for word in words):
        raise UsageError(f"ports must be numbers between 1 and 65535 with commas between them, got {text!r}")
    return tuple(dict.fromkeys(int(word) for word in words))


def resolve(targets: Sequence[Target]) -> tuple[list[Place], dict[str, str]]:
    """The first address of each family of every target, and why names could not be resolved."""
    places: list[Place] = []
    failed: dict[str, str] = {}
    known: dict[str, list[str]] = {}
    for target in targets:
        if target.host not in known:
            try:
                known[target.host] = addresses_of(target.host)
            except OSError as error:
                known[target.host] = []
                failed[target.host] = error.strerror or str(error)
        places += [Place(target, address) for address in known[target.host]]
    return places, failed


def addresses_of(host: str) -> list[str]:
    """The first address of each family. Raises OSError where the name has none."""
    found: dict[int, str] = {}
    for family, _, _, _, where in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        if family in (socket.AF_INET, socket.AF_INET6):
            found.setdefault(family, str(where[0]))
    return [address for address in found.values() if not ipaddress.ip_address(address.partition("%")[0]).is_unspecified]


def is_documentation_address(address: str) -> bool:
    """Whether it is one of those that a check asks, at which no host is."""
    return any(address in each for each in DOCUMENTATION_ADDRESSES.values())


def _is_port(word: str) -> bool:
    return word.isascii() and word.isdecimal() and 1 <= int(word) <= 65_535
