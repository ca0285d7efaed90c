"""What fields of a configuration must not be together, and how addresses are written."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from reference_proxy.allow_list import AllowList
from reference_proxy.configuration import Interception, Mode, TunnelEnd
from reference_proxy.errors import ConfigurationError

if TYPE_CHECKING:
    from reference_proxy.configuration import Configuration
    from reference_proxy.sockets import Address

LARGEST_PORT = 65_535


def read_address(text: str, name: str) -> Address:
    """`ADDRESS:PORT` or `[ADDRESS]:PORT`, the address in digits. Raises ConfigurationError."""
    host, separator, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        separator = ""
        number = 0
    if not separator or not 0 <= number <= LARGEST_PORT:
        raise ConfigurationError(f"{name} must be ADDRESS:PORT with the address in digits, but is {text!r}")
    return host, number


def relay_limit(configuration: Configuration) -> int:
    """How many connections fit the memory: each may fill a buffer in both directions."""
    return configuration.limits.memory_bytes // (2 * configuration.buffer_bytes)


def check(configuration: Configuration) -> None:
    """Refuse what does not fit together. Raises ConfigurationError."""
    for text in configuration.listen:
        read_address(text, "listen")
    AllowList(configuration.allow)
    if configuration.metrics:
        read_address(configuration.metrics, "metrics")
    if relay_limit(configuration) < 1:
        raise ConfigurationError(
            f"limits.memory_bytes ({configuration.limits.memory_bytes}) holds no connection: each takes two buffers of "
            f"buffer_bytes ({configuration.buffer_bytes})"
        )
    _check_interception(configuration)
    _check_mode(configuration)
    for port in (*configuration.rules.ports, *configuration.store.http_ports):
        if not 1 <= port <= LARGEST_PORT:
            raise ConfigurationError(f"ports must lie between 1 and {LARGEST_PORT}, but one is {port}")


def _check_interception(configuration: Configuration) -> None:
    fixed = configuration.interception is Interception.FIXED
    if fixed != bool(configuration.target):
        raise ConfigurationError("a target and fixed interception belong together: give both or neither")
    if fixed:
        read_address(configuration.target, "target")


def _check_mode(configuration: Configuration) -> None:
    if configuration.store.object_bytes < configuration.buffer_bytes:
        raise ConfigurationError(
            f"store.object_bytes ({configuration.store.object_bytes}) must not be below buffer_bytes "
            f"({configuration.buffer_bytes})"
        )
    if configuration.mode is Mode.WINDOW_ADAPTATION:
        from reference_proxy.window_adaptation import make_law

        read_address(configuration.adaptation.reports, "adaptation.reports")
        make_law(configuration.adaptation)
    elif configuration.mode is Mode.UDP_TUNNEL:
        if configuration.tunnel.end is TunnelEnd.CLIENT:
            read_address(configuration.tunnel.server, "tunnel.server")
        else:
            read_address(configuration.tunnel.listen, "tunnel.listen")
