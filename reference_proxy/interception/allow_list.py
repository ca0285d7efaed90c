"""Which destinations a proxy serves: a proxy that serves any is an open relay."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pepscope.settings.socket_address import LARGEST_PORT
from reference_proxy.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class _Entry:
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None
    name: str
    ports: frozenset[int]

    def matches(self, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
        if self.ports and port not in self.ports:
            return False
        if self.network is not None:
            return address is not None and address.version == self.network.version and address in self.network
        return self.name in ("*", host) or (self.name.startswith("*.") and host.endswith(self.name[1:]))


class AllowList:
    """Entries `HOST`, `*.DOMAIN`, `NETWORK` or `*`, each with `:PORT,PORT` behind it or for all ports.

    IPv6 networks with ports stand in brackets: `[2001:db8::/32]:443`.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = tuple(_read(entry) for entry in entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def has_networks(self) -> bool:
        """Whether addresses may be allowed whose names are not."""
        return any(entry.network is not None for entry in self._entries)

    def allows_name(self, host: str, port: int) -> bool:
        """Whether a destination is allowed as it was asked for, name or address."""
        return self._allows(host.lower().rstrip("."), port)

    def allows_address(self, host: str, port: int) -> bool:
        """Whether an address in digits is allowed."""
        return self._allows(host, port)

    def _allows(self, host: str, port: int) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            address = None
        mapped = getattr(address, "ipv4_mapped", None)
        return any(entry.matches(host, mapped or address, port) for entry in self._entries)


def _read(text: str) -> _Entry:
    host, ports = text, ""
    if text.startswith("["):
        host, _, ports = text[1:].partition("]")
        if ports and not ports.startswith(":"):
            raise ConfigurationError(f"allow entry {text!r} must have :PORT or no text behind its bracket")
        ports = ports[1:]
    elif text.count(":") == 1:
        host, _, ports = text.partition(":")
    if not host:
        raise ConfigurationError(f"allow entry {text!r} must name a host, a network or *")
    try:
        return _Entry(ipaddress.ip_network(host, strict=False), "", _read_ports(ports, text))
    except ValueError:
        return _Entry(None, host.lower().rstrip("."), _read_ports(ports, text))


def _read_ports(ports: str, text: str) -> frozenset[int]:
    try:
        found = frozenset(int(port) for port in ports.split(",") if port)
    except ValueError:
        found = frozenset({0})
    if not all(1 <= port <= LARGEST_PORT for port in found):
        raise ConfigurationError(f"allow entry {text!r} must have ports between 1 and {LARGEST_PORT} behind its colon")
    return found
