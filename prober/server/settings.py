"""What a server is told: from TOML and flags to frozen dataclasses, every value checked with one sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pepscope.settings import bounded, read_settings
from prober.errors import ServerError
from prober.plan import DEFAULT_CONTROL_PORT


def _port(default: int) -> Any:
    """A port; 0 lets the kernel choose."""
    return bounded(default, 0, 65_535)


@dataclass(frozen=True, slots=True)
class PortsTable:
    """Where each service listens; 0 lets the kernel choose.

    The well-known ones are those that providers are known to treat specially. The others have no meaning to anybody
    (IANA lists none of them), and lie below the ports that Linux gives to outgoing connections.
    """

    control: int = _port(DEFAULT_CONTROL_PORT)
    http: int = _port(80)
    https: int = _port(443)
    ftp: int = _port(21)
    tcp: tuple[int, ...] = field(default=(26_800, 26_801), metadata={"low": 0, "high": 65_535})
    udp_echo: int = _port(26_807)
    #: An alternative port of HTTP: proxies for the web often take it, too.
    dead: int = _port(8080)
    http_free: int = _port(26_880)
    https_free: int = _port(26_843)
    ftp_free: int = _port(26_821)
    #: First and last port of passive FTP data connections.
    ftp_data: tuple[int, ...] = field(default=(26_900, 26_931), metadata={"low": 1, "high": 65_535})


@dataclass(frozen=True, slots=True)
class LimitsTable:
    """What a server takes upon itself."""

    connections: int = bounded(400, 4, 10_000)
    connections_per_address: int = bounded(100, 1, 10_000)
    #: New connections of one address, long-term and at once.
    connections_per_s: float = bounded(500.0, 0.1, 1e6)
    connections_at_once: int = bounded(1000, 1, 1_000_000)
    #: Wrong tokens of one address a minute; beyond it there is no answer at all.
    refusals_per_minute: int = bounded(30, 1, 1_000_000)
    #: From accepting to a whole request head, TLS handshake included: trickling bytes buys no time.
    head_s: float = bounded(10.0, 0.05, 600.0)
    header_bytes: int = bounded(16 << 10, 512, 64 << 10)
    #: Between two requests on one connection.
    keep_s: float = bounded(120.0, 0.05, 86_400.0)
    #: Without a byte moving; readers that stop reading on purpose must fit into it.
    idle_s: float = bounded(300.0, 0.05, 86_400.0)
    transfer_s: float = bounded(1800.0, 1.0, 86_400.0)
    object_bytes: int = bounded(1 << 30, 1, 1 << 40)
    #: Payload of one session, of all sessions in 24 hours, both ways together.
    session_bytes: int = bounded(8 << 30, 1, 1 << 50)
    day_bytes: int = bounded(200 << 30, 1, 1 << 50)
    sessions: int = bounded(16, 1, 10_000)
    #: Since the last word on the control channel.
    session_s: float = bounded(900.0, 0.5, 86_400.0)
    served_entries: int = bounded(4000, 10, 1_000_000)
    captures: int = bounded(4, 0, 100)
    captures_kept: int = bounded(16, 1, 1000)
    capture_bytes: int = bounded(512 << 20, 4096, 1 << 40)
    capture_s: float = bounded(3600.0, 1.0, 86_400.0)
    #: What captures leave free on their disk.
    free_disk_bytes: int = bounded(512 << 20, 0, 1 << 50)
    holds: int = bounded(4, 0, 100)
    hold_delay_s: float = bounded(30.0, 0.01, 120.0)
    silences: int = bounded(16, 0, 100)
    lease_s: float = bounded(900.0, 0.1, 86_400.0)
    #: Datagrams that are echoed for one session.
    datagrams_per_s: float = bounded(200.0, 0.1, 1e6)
    datagram_bytes: int = bounded(1500, 64, 9000)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything."""

    #: Addresses to listen on; `0.0.0.0` and `::` are all of IPv4 and of IPv6.
    listen: tuple[str, ...] = ("0.0.0.0", "::")
    #: Directory for certificate and token; empty for the user's own.
    state: str = ""
    #: Where captures are made; empty for the interface that has the address the mobile talks to.
    interface: str = ""
    #: What the mobile should call this host, for the line that is printed.
    host: str = ""
    ports: PortsTable = PortsTable()
    limits: LimitsTable = LimitsTable()

    @classmethod
    def from_mapping(cls, document: Mapping[str, Any]) -> ServerSettings:
        """Check every value. Raises ServerError."""
        settings = read_settings(cls, document, ServerError)
        if not settings.listen:
            raise ServerError("listen must name at least one address")
        if not settings.ports.tcp:
            raise ServerError("ports.tcp must have at least one port, the free one")
        if len(settings.ports.ftp_data) != 2 or settings.ports.ftp_data[0] > settings.ports.ftp_data[1]:
            raise ServerError("ports.ftp_data must be the first and the last port of a range")
        return settings

    @property
    def state_directory(self) -> Path:
        """Where certificate and token are kept (XDG base directory specification, state)."""
        if self.state:
            return Path(self.state).expanduser()
        base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(base).expanduser() / "pepscope" / "probe-server"
