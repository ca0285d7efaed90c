"""What one network consists of, drawn from a seed: clients, access links, middle, servers, captures.

Nothing here touches the system: the same seed and index always give the same plan.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from benchmarks.one_ended.links import ACCESS, Link, draw_access, draw_wire

HTTP, HTTPS, HTTPS_12, GREETING = 80, 443, 8443, 2525
#: TCP ports of every server: HTTP/1.1, TLS 1.3 (HTTP/2 where the client can), TLS 1.2, a protocol whose server speaks
#: first.
PORTS = (HTTP, HTTPS, HTTPS_12, GREETING)
_TLS_PORTS = (HTTPS, HTTPS_12)


@dataclass(frozen=True, slots=True)
class Middle:
    """A kind of middle: `truth` is the class of the connections it takes; `ports` those it can take; `source` whose
    address the server sees (`client` or `middle`); `seen_port` the port on which it reaches the server, None for the
    same; `acknowledged` whose data are acknowledged in the middle; `clients` how many hosts at most; `holds`: its ACKs
    are held back by the far leg's round trip."""

    truth: str = "regular"
    ports: tuple[int, ...] = PORTS
    source: str = "client"
    seen_port: int | None = None
    mechanism: str | None = None
    cache: bool = False
    acknowledged: tuple[str, ...] = ("client", "server")
    clients: int = 3
    holds: bool = False


def _relay(**rest: object) -> Middle:
    return Middle("split", **{"mechanism": "relay", **rest})  # type: ignore[arg-type]


def _local(*acknowledged: str) -> Middle:
    return Middle("split", mechanism="local-acknowledgement", acknowledged=acknowledged, clients=1)


MIDDLES: dict[str, Middle] = {
    "none": Middle(),
    "nat": Middle(source="middle"),
    "clamp": Middle(),
    "vpn": Middle(source="middle"),
    "synproxy": Middle("syn-proxy", mechanism="syn-proxy"),
    "haproxy": _relay(),
    "haproxy-redirect": _relay(source="middle"),
    "squid": _relay(ports=(HTTP,), source="middle"),
    "squid-tproxy": _relay(ports=(HTTP,)),
    "squid-cache": _relay(ports=(HTTP,), source="middle", cache=True, mechanism="cache"),
    "redsocks": _relay(source="middle"),
    "pepscope-split": _relay(),
    "pepscope-store": _relay(ports=(HTTP,), mechanism="store-and-forward", cache=True),
    "pepscope-window": _relay(),
    "nginx-stream": _relay(source="middle"),
    "stunnel": _relay(ports=_TLS_PORTS, source="middle", seen_port=HTTP, mechanism="tls-interception"),
    "hitch": _relay(ports=_TLS_PORTS, source="middle", seen_port=HTTP, mechanism="tls-interception"),
    "tinyproxy": _relay(ports=(HTTP,), source="middle"),
    "varnish": _relay(ports=(HTTP,), source="middle", cache=True, mechanism="cache"),
    "local-both": _local("client", "server"),
    "local-down": _local("server"),
    "local-up": _local("client"),
    "haproxy-holding": _relay(mechanism="relay-holding-acknowledgements", holds=True),
}

#: The deck that middles are dealt from: about half of the networks end to end or with handshakes answered only.
DECK = (
    *("none",) * 8, *("nat",) * 6, "clamp", "vpn", *("synproxy",) * 3, *("haproxy",) * 2, *("haproxy-redirect",) * 2,
    "squid", "squid-tproxy", "squid-cache", "redsocks", *("pepscope-split",) * 2, "pepscope-store", "pepscope-window",
    "nginx-stream", "stunnel", "hitch", "tinyproxy", "varnish", "local-both", "local-down", "local-up",
    "haproxy-holding",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's timestamp clock; `each_peer`: offsets differ by peer (RFC 7323, 5.4), else all have `offset`."""

    rate_hz: int
    drift_ppb: int
    offset: int
    each_peer: bool


@dataclass(frozen=True, slots=True)
class Stack:
    """Settings of a host's TCP. `segment_bytes` is the MSS that it advertises, `initial_window` in segments;
    `quick_acknowledgements` turns delayed ACKs off; `receive_bytes` the largest receive buffer, from which the window
    scale follows."""

    congestion_control: str
    timestamps: bool
    selective: bool
    ttl: int
    initial_window: int
    segment_bytes: int
    quick_acknowledgements: bool
    receive_bytes: int
    idle_restart: bool
    clock: Clock


@dataclass(frozen=True, slots=True)
class Client:
    """One client host: its addresses of one network behind one access link. `thinks`: waits 30 to 60 ms before each of
    its answers; `taken`: whether the middle takes its connections."""

    name: str
    network: str
    addresses: tuple[str, ...]
    access: str
    link: Link
    stack: Stack
    offload: bool
    thinks: bool = False
    taken: bool = True


@dataclass(frozen=True, slots=True)
class Balancer:
    """A load balancer in front of a server, `link` away from it; `address` is its own on the inner side.

    `ends_tls`: it ends TLS itself and asks the server over plain HTTP; else it relays TCP."""

    link: Link
    network: str
    address: str
    backend_address: str
    backend_stack: Stack
    ends_tls: bool


@dataclass(frozen=True, slots=True)
class Server:
    """One server host; `slow`: thinks 50 to 300 ms before each HTTP answer."""

    name: str
    address: str
    link: Link
    stack: Stack
    offload: bool
    slow: bool
    rsa: bool
    balancer: Balancer | None


@dataclass(frozen=True, slots=True)
class Capturing:
    """How one capture is taken."""

    snap_length: int
    late_s: float
    nanoseconds: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """One network. `split_ports` are the ports that the middle takes; `hide_hops`: what the middle sends itself bears
    the TTL that the far host's packets would have; `duration_s` over which clients start their connections."""

    seed: int
    index: int
    middle: str
    split_ports: tuple[int, ...]
    clients: tuple[Client, ...]
    servers: tuple[Server, ...]
    middle_network: str
    middle_address: str
    middle_stack: Stack
    hide_hops: bool
    duration_s: float
    captures: dict[str, Capturing] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Index, access link and middle: unique in a campaign."""
        crowd = "-crowd" if len(self.clients) > 3 else ""
        return f"{self.index:03d}-{self.clients[0].access}-{self.middle}{crowd}"

    @property
    def kind(self) -> Middle:
        """What the middle does."""
        return MIDDLES[self.middle]


#: Share of networks with many client networks, where the middle allows several clients.
CROWDED_SHARE = 0.08


def _dealt(deck: tuple[str, ...], seed: int, index: int) -> str:
    """The card of this index, of decks that are shuffled one after the other."""
    turn, place = divmod(index, len(deck))
    cards = list(deck)
    random.Random(f"{seed}/deck/{len(deck)}/{turn}").shuffle(cards)
    return cards[place]


def draw_stack(chance: random.Random) -> Stack:
    """A host's settings, among those that are common."""
    return Stack(
        congestion_control=chance.choice(("cubic", "cubic", "bbr", "reno")), timestamps=chance.random() < 0.75,
        selective=chance.random() < 0.95, ttl=chance.choice((64, 64, 128, 255)),
        initial_window=chance.choice((4, 10, 10, 10, 20, 32)),
        segment_bytes=chance.choice((1460, 1460, 1460, 1400, 1380, 1360, 1240)),
        quick_acknowledgements=chance.random() < 0.25,
        receive_bytes=chance.choice((262_144, 1_000_000, 4_000_000, 6_291_456)), idle_restart=chance.random() < 0.5,
        clock=Clock(
            chance.choice((1000,) * 8 + (250, 100)), chance.randrange(-60_000, 60_000), chance.randrange(1 << 32),
            each_peer=chance.random() < 0.6,
        ),
    )  # fmt: skip


def _draw_crowd(access: str, chance: random.Random) -> tuple[Client, ...]:
    """Ten or more client networks of several hosts each, of which the middle takes about a third."""
    second = chance.choice((45, 60, 71, 90, 112, 130, 201))
    made = []
    for number, third in enumerate(chance.sample(range(1, 250), chance.randrange(10, 15))):
        kind = chance.choice((access, access, chance.choice(ACCESS)))
        hosts = chance.sample(range(2, 250), chance.randrange(4, 11))
        made.append(
            Client(
                f"client{number + 1}" if number else "client", f"10.{second}.{third}.0/24",
                tuple(f"10.{second}.{third}.{host}" for host in hosts), kind, draw_access(kind, chance),
                draw_stack(chance), offload=False, thinks=chance.random() < 0.1,
                taken=number < 3 or chance.random() < 0.1,
            )
        )  # fmt: skip
    return tuple(made)


def _draw_clients(access: str, most: int, chance: random.Random) -> tuple[Client, ...]:
    if most > 1 and chance.random() < CROWDED_SHARE:
        return _draw_crowd(access, chance)
    count = min(most, chance.choice((1, 1, 2, 3)))
    one_network = chance.random() < 0.5
    second = chance.choice((45, 60, 71, 90, 112, 130, 201))
    thirds = chance.sample(range(1, 200), count)
    thinks = chance.random() < 0.15
    made = []
    for number in range(count):
        third = thirds[0] if one_network else thirds[number]
        host = chance.randrange(2, 80) + 80 * number
        kind = access if one_network or not number else chance.choice(ACCESS)
        made.append(
            Client(
                f"client{number + 1}" if number else "client", f"10.{second}.{third}.0/24",
                (f"10.{second}.{third}.{host}",), kind, draw_access(kind, chance), draw_stack(chance),
                offload=chance.random() < 0.4, thinks=thinks,
            )
        )  # fmt: skip
    networks = {client.network for client in made}
    if len(networks) > 1 and chance.random() < 0.6:
        spared = chance.choice(sorted(networks))
        made = [replace(client, taken=client.network != spared) for client in made]
    return tuple(made)


#: Round trips between the middle and the servers, in ms: one server is drawn from each range.
_DISTANCES_MS = ((1, 4), (8, 20), (25, 50), (60, 100), (110, 150))
_PREFIXES = ("192.0.2", "198.51.100", "203.0.113", "198.18.{}", "198.19.{}")


def _draw_servers(chance: random.Random, *, most: int) -> tuple[Server, ...]:
    count = min(most, chance.choice((3, 4, 5, 5)))
    places = sorted(chance.sample(range(len(_DISTANCES_MS)), count))
    prefixes = [prefix.format(chance.randrange(1, 250)) for prefix in chance.sample(_PREFIXES, count)]
    balanced = chance.sample(range(count), chance.choice((0, 1, 1, 2)))
    slow = chance.sample(range(count), chance.choice((0, 0, 0, 1)))
    made = []
    for number, (place, prefix) in enumerate(zip(places, prefixes, strict=True)):
        inner = f"172.{16 + number}.{chance.randrange(250)}"
        behind = chance.choice((0.2, 0.5, 2.0, 10.0, 20.0, 40.0)) / 1e3
        made.append(
            Server(
                f"s{number + 1}", f"{prefix}.{chance.randrange(2, 250)}",
                draw_wire(chance.uniform(*_DISTANCES_MS[place]) / 1e3, chance), draw_stack(chance),
                offload=chance.random() < 0.5, slow=number in slow, rsa=chance.random() < 0.5,
                balancer=Balancer(
                    draw_wire(behind, chance, rate_bit_s=100e6), f"{inner}.0/24", f"{inner}.1", f"{inner}.10",
                    draw_stack(chance), ends_tls=chance.random() < 0.35,
                )
                if number in balanced
                else None,
            )
        )  # fmt: skip
    return tuple(made)


def _draw_ports(kind: Middle, chance: random.Random) -> tuple[int, ...]:
    if kind.truth == "regular":
        return ()
    if len(kind.ports) == 1 or chance.random() < 0.7:
        return kind.ports
    return tuple(sorted(chance.sample(kind.ports, chance.randrange(1, len(kind.ports)))))


def draw(seed: int, index: int, *, middle: str | None = None, access: str | None = None) -> Plan:
    """The network of a seed and an index; with `middle` or `access` of that kind instead of the one that is dealt."""
    chance = random.Random(f"{seed}/{index}")
    middle = middle or _dealt(DECK, seed, index)
    kind = MIDDLES[middle]
    clients = _draw_clients(access or _dealt(ACCESS, seed, index), kind.clients, chance)
    if kind.truth == "regular":
        clients = tuple(replace(client, taken=True) for client in clients)
    if middle == "vpn":
        detour = chance.uniform(0.01, 0.05)
        clients = tuple(replace(client, link=client.link.longer(detour)) for client in clients)
    servers = _draw_servers(chance, most=2 if len(clients) > 3 else 5)
    third = chance.randrange(1, 250)
    plan = Plan(
        seed=seed, index=index, middle=middle, split_ports=_draw_ports(kind, chance), clients=clients, servers=servers,
        middle_network=f"100.99.{third}.0/24", middle_address=f"100.99.{third}.{chance.randrange(2, 250)}",
        middle_stack=draw_stack(chance), hide_hops=chance.random() < 0.6, duration_s=chance.uniform(9, 13),
    )  # fmt: skip
    places = [c.name for c in clients[:3]] + [s.name for s in servers] + [f"{s.name}b" for s in servers if s.balancer]
    if chance.random() < 0.4:
        places.append(chance.choice(("middle-access", "middle-wired")))
    return replace(plan, captures={place: _draw_capturing(plan, chance) for place in places})


def _draw_capturing(plan: Plan, chance: random.Random) -> Capturing:
    late = chance.uniform(0.2, 0.5) * plan.duration_s if chance.random() < 0.15 else 0.0
    return Capturing(chance.choice((96, 128, 160, 200, 512, 262_144)), late, chance.random() < 0.5)
