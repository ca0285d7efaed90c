"""The settings of a server, with their bounds and defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from pepscope.settings import read_settings
from pepscope.strict_reading import Table, between
from prober.errors import ServerError
from prober.protocol.control_messages import DEFAULT_CONTROL_PORT

#: 0 lets the kernel choose.
Port: TypeAlias = Annotated[int, between(0, 65_535)]
PassivePort: TypeAlias = Annotated[int, between(1, 65_535)]


class PortsTable(Table, frozen=True):
    """Where each service listens; 0 lets the kernel choose.

    Providers are known to treat the well-known ones specially. The others have no registered meaning (IANA lists none
    of them), and are below the ports that Linux gives to outgoing connections.
    """

    control: Port = DEFAULT_CONTROL_PORT
    http: Port = 80
    https: Port = 443
    ftp: Port = 21
    tcp: Annotated[tuple[Port, ...], Meta(min_length=1)] = (26_800, 26_801)
    udp_echo: Port = 26_807
    #: An alternative port of HTTP: proxies for the web often take it, too.
    dead: Port = 8080
    http_free: Port = 26_880
    https_free: Port = 26_843
    ftp_free: Port = 26_821
    #: First and last port of passive FTP data connections.
    ftp_data: tuple[PassivePort, PassivePort] = (26_900, 26_931)


class LimitsTable(Table, frozen=True):
    """What a server takes upon itself."""

    connections: Annotated[int, between(4, 10_000)] = 400
    #: Of one IPv4 address, or one IPv6 /64.
    connections_per_address: Annotated[int, between(1, 10_000)] = 100
    #: Of one IPv4 /24, or one IPv6 /48.
    connections_per_network: Annotated[int, between(1, 10_000)] = 200
    #: New connections of one address or /64, long-term and at once; in proportion of one /24 or /48.
    connections_per_s: Annotated[float, between(0.1, 1e6)] = 500.0
    connections_at_once: Annotated[int, between(1, 1_000_000)] = 1000
    #: Wrong tokens of one address a minute; beyond it there is no answer at all.
    refusals_per_minute: Annotated[int, between(1, 1_000_000)] = 30
    #: From accepting to a whole request head, TLS handshake included: trickling bytes buys no time.
    head_s: Annotated[float, between(0.05, 600.0)] = 10.0
    header_bytes: Annotated[int, between(512, 64 << 10)] = 16 << 10
    #: Between two requests on one connection.
    keep_s: Annotated[float, between(0.05, 86_400.0)] = 120.0
    #: Without a byte moving; readers that stop reading on purpose must fit into it.
    idle_s: Annotated[float, between(0.05, 86_400.0)] = 300.0
    transfer_s: Annotated[float, between(1.0, 86_400.0)] = 1800.0
    object_bytes: Annotated[int, between(1, 1 << 40)] = 1 << 30
    #: Payload of one session, of all sessions in 24 hours, both ways together.
    session_bytes: Annotated[int, between(1, 1 << 50)] = 8 << 30
    day_bytes: Annotated[int, between(1, 1 << 50)] = 200 << 30
    sessions: Annotated[int, between(1, 10_000)] = 16
    #: Since the last word on the control channel.
    session_s: Annotated[float, between(0.5, 86_400.0)] = 900.0
    served_entries: Annotated[int, between(10, 1_000_000)] = 4000
    captures: Annotated[int, between(0, 100)] = 4
    captures_kept: Annotated[int, between(1, 1000)] = 16
    capture_bytes: Annotated[int, between(4096, 1 << 40)] = 512 << 20
    capture_s: Annotated[float, between(1.0, 86_400.0)] = 3600.0
    #: What captures leave free on their disk.
    free_disk_bytes: Annotated[int, between(0, 1 << 50)] = 512 << 20
    holds: Annotated[int, between(0, 100)] = 4
    hold_delay_s: Annotated[float, between(0.01, 120.0)] = 30.0
    silences: Annotated[int, between(0, 100)] = 16
    lease_s: Annotated[float, between(0.1, 86_400.0)] = 900.0
    #: Datagrams that are echoed for one session.
    datagrams_per_s: Annotated[float, between(0.1, 1e6)] = 200.0
    datagram_bytes: Annotated[int, between(64, 9000)] = 1500


class ArchivesTable(Table, frozen=True):
    """Which archives a server takes from its clients."""

    #: Of one archive; 0 takes none.
    archive_bytes: Annotated[int, between(0, 1 << 40)] = 1 << 30
    #: Of one client, whole and announced ones together, unless its key has a quota.
    client_bytes: Annotated[int, between(0, 1 << 50)] = 5 << 30
    #: Of all clients.
    total_bytes: Annotated[int, between(0, 1 << 50)] = 20 << 30
    #: Uploads that one client has begun and not finished.
    unfinished: Annotated[int, between(1, 10_000)] = 100
    #: After so long without a byte an unfinished upload is dropped.
    unfinished_s: Annotated[float, between(1.0, 1e9)] = 604_800.0
    #: What archives leave free on their disk.
    free_disk_bytes: Annotated[int, between(0, 1 << 50)] = 512 << 20


class RetentionTable(Table, frozen=True):
    """When stored archives are deleted; without a value never for this reason."""

    #: Since an archive came, counted while a server runs.
    days: Annotated[float, between(1e-6, 1e6)] | None = None
    #: Of all clients together; the client that takes most gives its oldest.
    total_bytes: Annotated[int, between(0, 1 << 50)] | None = None
    #: Of each client the latest stay: so many, and so many bytes.
    client_archives: Annotated[int, between(0, 1_000_000)] | None = None
    client_bytes: Annotated[int, between(0, 1 << 50)] | None = None


class ServerSettings(Table, frozen=True):
    """Everything."""

    #: Addresses to listen on; `0.0.0.0` and `::` are all of IPv4 and of IPv6.
    listen: Annotated[tuple[str, ...], Meta(min_length=1)] = ("0.0.0.0", "::")
    #: Directory for certificate, keys and archives; empty for the user's own.
    state: str = ""
    #: Where captures are made; empty for the interface that has the address the mobile talks to.
    interface: str = ""
    #: What the mobile should call this host, for the line that is printed.
    host: str = ""
    #: `ADDRESS:PORT` at which Prometheus finds metrics; empty for none.
    metrics: str = ""
    ports: PortsTable = PortsTable()
    limits: LimitsTable = LimitsTable()
    archives: ArchivesTable = ArchivesTable()
    retention: RetentionTable = RetentionTable()

    @classmethod
    def from_mapping(cls, document: Mapping[str, Any]) -> ServerSettings:
        """Check every value. Raises ServerError."""
        settings = read_settings(cls, document, ServerError)
        first, last = settings.ports.ftp_data
        if first > last:
            raise ServerError(f"ports.ftp_data must be the first and the last port of a range, got {first} and {last}")
        return settings

    @property
    def state_directory(self) -> Path:
        """Where certificate and token are kept (XDG base directory specification, state)."""
        if self.state:
            return Path(self.state).expanduser()
        base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(base).expanduser() / "pepscope" / "probe-server"
