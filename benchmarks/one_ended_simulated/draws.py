"""Networks drawn from a seed: which difficulties a network has is part of the draw."""

from __future__ import annotations

import math
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from random import Random

from benchmarks.one_ended_simulated.access import draw_access, with_other_traffic
from benchmarks.one_ended_simulated.captures import Address, Recording
from benchmarks.one_ended_simulated.channels import line
from benchmarks.one_ended_simulated.devices import Device, draw_device
from benchmarks.one_ended_simulated.scenario import (
    Box,
    Front,
    FrontKind,
    Middle,
    MiddleKind,
    Scenario,
    Server,
    Site,
)
from benchmarks.one_ended_simulated.sessions import draw_pings, draw_sessions
from benchmarks.one_ended_simulated.stacks import box_stack, client_stack, server_stack
from benchmarks.one_ended_simulated.talks import ClientHabits, Draw, ServerHabits

PORTS = (80, 443, 8443, 2525, 22)

_MIDDLES = (
    (MiddleKind.NOTHING, 4.0),
    (MiddleKind.NAT, 2.5),
    (MiddleKind.TUNNEL, 0.7),
    (MiddleKind.RELAY, 4.5),
    (MiddleKind.CACHE, 0.7),
    (MiddleKind.TLS_INTERCEPTION, 0.6),
    (MiddleKind.SYN_PROXY, 0.8),
)
_MIXED_SHARE = 0.05

#: Of sites, those whose clients' answers wait for their devices: a quarter of as many as have late clients.
_DEVICES_SHARE = 0.06

#: Of sites, those whose clients are programs that work on each answer: as many.
_PROGRAMS_SHARE = 0.06

#: Of sites, those whose clients load their links with other traffic.
_OTHER_TRAFFIC_SHARE = 0.25


def about(random: Random, median_s: float, sigma: float = 0.5) -> Draw:
    """Times around a median: log-normal."""
    middle = math.log(median_s)
    return lambda: random.lognormvariate(middle, sigma)


def _added(first: Draw, second: Draw) -> Draw:
    return lambda: first() + second()


def between(random: Random, low: float, high: float) -> float:
    """Uniform in the logarithm."""
    return math.exp(random.uniform(math.log(low), math.log(high)))


def draw_scenario(seed: int, number: int) -> Scenario:
    """The network of this number: a function of seed and number alone."""
    scenario, random = _drawn(seed, number), Random(f"one-ended/{seed}/{number}/shared")
    sites = tuple(_with_devices(random, _with_other_traffic(random, site)) for site in scenario.sites)
    random = Random(f"one-ended/{seed}/{number}/programs")
    sites = tuple(_with_programs(random, site) for site in sites)
    hard = {*scenario.hard}
    if any(habits.works for site in sites for habits in site.habits):
        hard.add("clients work on each answer")
    if any(site.devices for site in sites):
        hard.add("answers wait for a device")
    if any(site.link.down.bursts_per_s for site in sites):
        hard.add("other traffic")
    return replace(scenario, sites=sites, hard=tuple(sorted(hard)))


def _with_other_traffic(random: Random, site: Site) -> Site:
    if random.random() >= _OTHER_TRAFFIC_SHARE:
        return site
    return replace(site, link=with_other_traffic(site.link, random))


def _with_devices(random: Random, site: Site) -> Site:
    """The site, whose clients may have devices that delay: of one make, or each its own."""
    if random.random() >= _DEVICES_SHARE:
        return site
    devices: tuple[Device, ...] = (draw_device(random),) * len(site.clients)
    if random.random() < 0.5:
        devices = tuple(draw_device(random) for _ in site.clients)
    return replace(site, devices=devices, thinks=(True,) * len(site.clients))


def _with_programs(random: Random, site: Site) -> Site:
    """The site, whose clients may be programs that work for nearly the same time on each answer: all for one time, or
    each for its own. Half of them work on the last one, too, before they close."""
    if random.random() >= _PROGRAMS_SHARE:
        return site
    programs = (draw_program(random, site.habits[0]),) * len(site.clients)
    if random.random() < 0.5:
        programs = tuple(draw_program(random, habits) for habits in site.habits)
    return replace(site, habits=programs, thinks=(True,) * len(site.clients))


def draw_program(random: Random, habits: ClientHabits) -> ClientHabits:
    """A program that works on each answer for 8 to 80 ms, with a standard deviation of 0.3 to 5 % of that."""
    work_s, spread = between(random, 0.008, 0.08), between(random, 0.003, 0.05)

    def work() -> float:
        return work_s * max(0.0, random.gauss(1.0, spread))

    close = work if random.random() < 0.5 else habits.close
    return replace(habits, next_request=work, answer=work, close=close, works=True)


def _drawn(seed: int, number: int) -> Scenario:
    random = Random(f"one-ended/{seed}/{number}")
    if random.random() < _MIXED_SHARE:
        return _mixed(random, seed, number)
    hard: list[str] = []
    servers = tuple(draw_server(random, place, hard) for place in range(random.choice((1, 2, 3, 3, 4, 5))))
    kind = random.choices([kind for kind, _ in _MIDDLES], [weight for _, weight in _MIDDLES])[0]
    version_6, clients = random.random() < 0.1, random.choice((1, 1, 1, 2, 3))
    sites = (draw_site(random, 0, servers, kind, hard, clients, 1.0, version_6=version_6),)
    recordings = {"client": draw_recording(random, hard)}
    for server in servers:
        recordings[server.name] = draw_recording(random, hard)
        if server.front is not None:
            recordings[f"{server.name}b"] = draw_recording(random, hard)
    if random.random() < 0.15:
        recordings["between"] = draw_recording(random, hard)
    return Scenario(seed, number, sites, servers, recordings, tuple(sorted(set(hard))))


def _mixed(random: Random, seed: int, number: int) -> Scenario:
    """One server's capture of 200 clients of 20 prefixes, 6 of them split."""
    hard = ["mixed"]
    servers = (replace(draw_server(random, 0, hard), front=None),)
    split = set(random.sample(range(20), 6))
    sites = tuple(
        draw_site(
            random, place, servers,
            MiddleKind.RELAY if place in split else random.choice((MiddleKind.NOTHING, MiddleKind.NAT)),
            hard, 10, 0.35, version_6=False,
        )
        for place in range(20)
    )  # fmt: skip
    return Scenario(
        seed, number, sites, servers, {servers[0].name: draw_recording(random, hard)}, tuple(sorted(set(hard)))
    )


def draw_recording(random: Random, hard: list[str]) -> Recording:
    """How a capture is taken: bytes of each packet, when it begins, what it misses."""
    snap_length = random.choice((96, 128, 160, 200, 262_144))
    begins_at_s, missing = 0.0, 0.0
    if random.random() < 0.08:
        begins_at_s = random.uniform(2.0, 15.0)
        hard.append("capture begins late")
    if random.random() < 0.06:
        missing = random.uniform(0.001, 0.02)
        hard.append("capture misses packets")
    return Recording(snap_length, begins_at_s, missing, random.uniform(0, 5), merges=random.random() < 0.5)


def draw_server(random: Random, place: int, hard: list[str]) -> Server:
    """A server: its address, what it takes for answers, and its front; what is hard about it goes into `hard`."""
    site = place + 1
    public = IPv4Address((203 << 24) + (site << 16) + (113 << 8) + random.randrange(2, 250))
    slow = random.random()
    command = about(random, 3e-4)
    hello, answer = about(random, between(random, 4e-4, 4e-3)), about(random, between(random, 5e-4, 1e-2), 0.8)
    if slow < 0.08:  # for everything: an overloaded machine
        hard.append("server slow for all")
        load = about(random, between(random, 0.03, 0.3))
        hello, answer, command = _added(hello, load), _added(answer, load), _added(command, load)
    elif slow < 0.25:
        hard.append("dynamic pages")
        pages = about(random, between(random, 0.03, 0.3), 0.6)
        plain, share = answer, random.uniform(0.3, 1.0)
        answer = _sometimes(random, plain, _added(plain, pages), share)
    front = _front(random, site, hard) if random.random() < 0.2 else None
    distance_s, routers = between(random, 0.001, 0.15), random.randrange(2, 12)
    jitter_s, loss_share = random.choice((5e-5, 2e-4, 1e-3)), random.choice((0.0, 0.0, 0.0, 2e-4, 1e-3))
    habits = ServerHabits(hello, answer, command)
    return Server(
        f"s{site}", public, _v6(0x500 + site, 0x10), distance_s, jitter_s, loss_share, routers, habits,
        server_stack(random), front, {443: random.random() < 0.8, 8443: False},
    )  # fmt: skip


def _sometimes(random: Random, usual: Draw, other: Draw, share: float) -> Draw:
    return lambda: other() if random.random() < share else usual()


def _front(random: Random, site: int, hard: list[str]) -> Front:
    hard.append("balancer")
    round_trip_s = random.choice((2e-4, 1e-3, 0.005, random.uniform(0.01, 0.04)))
    return Front(
        random.choice((FrontKind.RELAY, FrontKind.RELAY, FrontKind.WEB)), _box(random),
        line(round_trip_s, jitter_s=2e-5), IPv4Address((198 << 24) + (18 << 16) + (site << 8) + 1),
        IPv4Address((198 << 24) + (19 << 16) + (site << 8) + 10),
    )  # fmt: skip


def _box(random: Random) -> Box:
    return Box(
        box_stack(random), between(random, 3e-5, 1e-3), random.choice((16_384, 65_536, 262_144, 4_000_000)),
        connects_first=random.random() < 0.15, shuts_window=random.random() < 0.6,
    )  # fmt: skip


def draw_habits(random: Random, hard: list[str]) -> tuple[ClientHabits, bool]:
    """How a client answers, and whether it always thinks."""
    kind = random.random()
    if kind < 0.12:
        hard.append("client always thinks")
        low_s = between(random, 0.008, 0.06)
        high_s = low_s * random.uniform(1.2, 2.5)
        think: Draw = lambda: random.uniform(low_s, high_s)  # noqa: E731
        return ClientHabits(_added(about(random, 1e-3), think), _added(about(random, 5e-4), think), think), True
    if kind < 0.22:
        hard.append("slow device")
        slow = between(random, 0.003, 0.025)
        return ClientHabits(about(random, slow), about(random, slow / 3), about(random, slow / 6)), False
    if kind < 0.36:
        hard.append("browser")
        finish = about(random, between(random, 0.001, 0.01), 0.9)
        return ClientHabits(finish, about(random, 0.006, 1.0), about(random, 1e-3)), False
    fast = between(random, 3e-4, 2e-3)
    return ClientHabits(about(random, fast), about(random, between(random, 1e-4, 1e-3)), about(random, 3e-4)), False


def _middle(random: Random, kind: MiddleKind, place: int, hard: list[str], *, version_6: bool) -> Middle:
    ports = frozenset(PORTS)
    if kind is MiddleKind.CACHE:
        ports = frozenset({80})
    elif kind is MiddleKind.TLS_INTERCEPTION:
        ports = frozenset({80, 443, 8443})
    elif random.random() < 0.3:
        hard.append("some ports only")
        ports = frozenset(random.sample(PORTS, random.choice((1, 2, 3))))
    hides = kind in (MiddleKind.NAT, MiddleKind.TUNNEL) or (kind.splits and random.random() < 0.5)
    if kind is MiddleKind.CACHE:
        hard.append("cache")
    public: Address | None = None
    if hides:
        public = IPv4Address((192 << 24) + (88 << 16) + ((place + 10) << 8) + random.randrange(2, 250))
        if version_6:
            public = _v6(0x900 + place, random.randrange(2, 1 << 16))
    return Middle(kind, ports, _box(random), public, between(random, 0.01, 0.12) if kind is MiddleKind.TUNNEL else 0.0)


def _v6(prefix: int, host: int) -> IPv6Address:
    return IPv6Address((0x20010DB8 << 96) + (prefix << 80) + host)


def draw_site(
    random: Random,
    place: int,
    servers: tuple[Server, ...],
    kind: MiddleKind,
    hard: list[str],
    clients: int,
    activity: float,
    *,
    version_6: bool,
) -> Site:
    """Clients, their access link and what stands in the middle; each asks for an `activity` of what one alone would."""
    access, link = draw_access(random)
    hosts = random.sample(range(2, 250), clients)
    drawn = [draw_habits(random, hard)] * clients
    if random.random() < 0.5:
        drawn = [draw_habits(random, hard) for _ in hosts]
    first = (10 << 24) + ((45 + place) << 16)
    addresses: tuple[Address, ...] = tuple(
        _v6(0x100 + place, host) if version_6 else IPv4Address(first + host) for host in hosts
    )
    middle = _middle(random, kind, place, hard, version_6=version_6)
    radio = access in ("nr", "lte", "umts")
    stacks = tuple(client_stack(random, radio=radio) for _ in addresses)
    if kind is MiddleKind.TUNNEL:
        stacks = tuple(replace(stack, segment_size=min(stack.segment_size, 1360)) for stack in stacks)
    sessions = draw_sessions(random, servers, len(addresses), PORTS, activity, cache=kind is MiddleKind.CACHE)
    return Site(
        _network(addresses[0]), addresses, access, link, random.randrange(1, 6), random.choice((0.0, 0.0, 0.004, 0.02)),
        middle, tuple(habits for habits, _ in drawn), stacks,
        tuple(thinks for _, thinks in drawn), sessions, draw_pings(random, len(servers), len(addresses)),
    )  # fmt: skip


def _network(address: Address) -> str:
    if address.version == 4:
        return f"{IPv4Address(int(address) >> 8 << 8)}/24"
    return f"{IPv6Address(int(address) >> 80 << 80)}/48"
