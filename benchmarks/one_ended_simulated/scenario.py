"""One network as data: clients, their access, what stands in the middle, servers and what stands before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.one_ended_simulated.captures import Address, Recording
from benchmarks.one_ended_simulated.channels import Link
from benchmarks.one_ended_simulated.devices import Device
from benchmarks.one_ended_simulated.habits import Stack
from benchmarks.one_ended_simulated.machines import Machine
from benchmarks.one_ended_simulated.talks import ClientHabits, Request, Secure, ServerHabits


class MiddleKind(StrEnum):
    """What stands between the access link and the wide area."""

    NOTHING = "nothing"
    NAT = "nat"
    TUNNEL = "tunnel"  # the way of a VPN: longer, with smaller segments, from the exit's address
    RELAY = "relay"
    CACHE = "cache"
    TLS_INTERCEPTION = "tls-interception"
    SYN_PROXY = "syn-proxy"

    @property
    def splits(self) -> bool:
        """Whether it ends TCP connections."""
        return self in (MiddleKind.RELAY, MiddleKind.CACHE, MiddleKind.TLS_INTERCEPTION)


class FrontKind(StrEnum):
    """What stands before a server at its own site."""

    RELAY = "relay"
    WEB = "web"  # ends TLS and speaks HTTP itself


@dataclass(frozen=True, slots=True)
class Box:
    """How a box that answers handshakes works."""

    stack: Stack
    delay_s: float
    queue_bytes: int
    connects_first: bool = False
    shuts_window: bool = False  # a SYN proxy, until the server has answered


@dataclass(frozen=True, slots=True)
class Middle:
    """The middle of a site: `ports` are those that it splits or whose handshakes it answers."""

    kind: MiddleKind
    ports: frozenset[int]
    box: Box
    public: Address | None = None  # what servers see in place of the clients; None where addresses are kept
    round_trip_s: float = 0.0  # of a tunnel, beside the access link's
    keeps_ports: bool = False  # a translation shows the clients' own ports, where these are free

    def acts_on(self, port: int) -> bool:
        """Whether connections to this port are answered by the middle."""
        return port in self.ports and self.kind not in (MiddleKind.NOTHING, MiddleKind.NAT, MiddleKind.TUNNEL)

    def splits(self, port: int) -> bool:
        """Whether connections to this port end here."""
        return self.kind.splits and port in self.ports


@dataclass(frozen=True, slots=True)
class Front:
    """A balancer or web front end, and the link from it to its server."""

    kind: FrontKind
    box: Box
    link: Link
    inner: Address
    backend: Address


@dataclass(frozen=True, slots=True)
class Server:
    """A server, at its own distance from everybody."""

    name: str
    address: Address
    address_6: Address
    distance_s: float  # round trip to a site that is near
    jitter_s: float
    loss_share: float
    routers: int
    habits: ServerHabits
    stack: Stack
    front: Front | None
    versions: dict[int, bool]  # ports with TLS: whether they speak TLS 1.3

    def address_for(self, client: Address) -> Address:
        """The address of the client's own IP version."""
        return self.address if client.version == 4 else self.address_6


@dataclass(frozen=True, slots=True)
class Session:
    """One connection to come."""

    start_s: float
    client: int
    server: int
    port: int
    requests: tuple[Request, ...]
    secure: Secure | None
    linger_s: float


@dataclass(frozen=True, slots=True)
class Site:
    """Clients of one prefix behind access links of one kind."""

    network: str
    clients: tuple[Address, ...]
    access: str
    link: Link
    routers: int
    away_s: float  # what is added to the servers' distances
    middle: Middle
    habits: tuple[ClientHabits, ...]  # of each client, as what follows
    stacks: tuple[Stack, ...]
    thinks: tuple[bool, ...]
    sessions: tuple[Session, ...]
    pings: tuple[tuple[float, int, int], ...] = ()  # when, from which client, to which server
    devices: tuple[Device, ...] = ()  # of each client, where they delay answers
    links: tuple[Link, ...] = ()  # of each client, where they differ
    machines: tuple[Machine, ...] = ()  # of each client, where its connections have something in common

    def link_of(self, client: int) -> Link:
        """The access link of one client."""
        return self.links[client] if self.links else self.link


@dataclass(frozen=True, slots=True)
class Scenario:
    """One network. `recordings` by tap: client, between, a server's name, or its name and "b" for the backend."""

    seed: int
    number: int
    sites: tuple[Site, ...]
    servers: tuple[Server, ...]
    recordings: dict[str, Recording] = field(default_factory=dict)
    hard: tuple[str, ...] = ()  # the difficulties that were drawn on purpose, in words
