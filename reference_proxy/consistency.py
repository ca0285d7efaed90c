"""A configuration as it is read: every value by itself, and what fields must not be together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pepscope.settings import read_settings
from reference_proxy.configuration import Configuration, Interception, Mode, TunnelEnd
from reference_proxy.errors import ConfigurationError
from reference_proxy.interception.allow_list import AllowList
from reference_proxy.sockets import read_address

if TYPE_CHECKING:
    from collections.abc import Mapping


def relay_limit(configuration: Configuration) -> int:
    """How many connections fit the memory: each may fill a buffer in both directions."""
    return configuration.limits.memory_bytes // (2 * configuration.buffer_bytes)


def read_configuration(document: Mapping[str, Any]) -> Configuration:
    """Check every value, and that they fit together. Raises ConfigurationError."""
    configuration = read_settings(Configuration, document, ConfigurationError)
    _check(configuration)
    return configuration


def _check(configuration: Configuration) -> None:
    for text in configuration.listen:
        read_address(text, "listen")
    AllowList(configuration.allow)
    if configuration.metrics:
        read_address(configuration.metrics, "metrics")
    if relay_limit(configuration) < 1:
        raise ConfigurationError(
            f"limits.memory_bytes must be at least two buffers of buffer_bytes ({configuration.buffer_bytes}), "
            f"got {configuration.limits.memory_bytes}"
        )
    _check_interception(configuration)
    _check_mode(configuration)


def _check_interception(configuration: Configuration) -> None:
    fixed = configuration.interception is Interception.FIXED
    if fixed != bool(configuration.target):
        raise ConfigurationError("target must be given exactly where interception is fixed")
    if fixed:
        read_address(configuration.target, "target")


def _check_mode(configuration: Configuration) -> None:
    if configuration.store.object_bytes < configuration.buffer_bytes:
        raise ConfigurationError(
            f"store.object_bytes must be at least buffer_bytes ({configuration.buffer_bytes}), "
            f"got {configuration.store.object_bytes}"
        )
    if configuration.mode is Mode.WINDOW_ADAPTATION:
        from reference_proxy.relay.window_adaptation import make_law

        read_address(configuration.adaptation.reports, "adaptation.reports")
        make_law(configuration.adaptation)
    elif configuration.mode is Mode.UDP_TUNNEL:
        if configuration.tunnel.end is TunnelEnd.CLIENT:
            read_address(configuration.tunnel.server, "tunnel.server")
        else:
            read_address(configuration.tunnel.listen, "tunnel.listen")
