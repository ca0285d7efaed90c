"""From a scenario to captures: connections laid over the links, everything run in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from benchmarks.one_ended_simulated.applications import Player
from benchmarks.one_ended_simulated.assembly import Bases, Leg, Names, lay, lay_through
from benchmarks.one_ended_simulated.boxes import SynProxy, join_relay
from benchmarks.one_ended_simulated.captures import Tap
from benchmarks.one_ended_simulated.channels import Channel, Link, line
from benchmarks.one_ended_simulated.devices import Processor
from benchmarks.one_ended_simulated.draws import about
from benchmarks.one_ended_simulated.echo import Part, Ping, Spot
from benchmarks.one_ended_simulated.endpoints import Endpoint
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.scenario import (
    Box,
    FrontKind,
    Middle,
    MiddleKind,
    Scenario,
    Server,
    Session,
    Site,
)
from benchmarks.one_ended_simulated.shell import shell
from benchmarks.one_ended_simulated.talks import ClientHabits, ServerHabits, Talk, fetching, mail, web

MAIL_PORT, SHELL_PORT = 2525, 22
_LONGEST_S = 300.0

Channels = tuple[Channel, Channel]


@dataclass(slots=True)
class Line:
    """What happened on one connection, for the truth: who spoke with whom as which tap saw it."""

    site: int
    server: int
    port: int
    session: Session
    client_answers_near: int  # automatic answers of the client's side, as the first leg saw them
    server_answers_near: int
    client_answers_far: int  # as the last leg saw them
    names_at: dict[str, Names] = field(default_factory=dict)


@dataclass(slots=True)
class Simulation:
    """A network while it runs."""

    scenario: Scenario
    random: Random
    clock: Clock = field(default_factory=Clock)
    taps: dict[str, Tap] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    access: dict[tuple[int, int], Channels] = field(default_factory=dict)
    wires: dict[tuple[int, int], Channels] = field(default_factory=dict)
    backends: dict[int, Channels] = field(default_factory=dict)
    ports: dict[tuple[int, ...], int] = field(default_factory=dict)
    translated: set[Names] = field(default_factory=set)
    processors: dict[tuple[int, int], Processor] = field(default_factory=dict)

    def run(self) -> None:
        """Lay every connection, and let all happen."""
        scenario, clock, random = self.scenario, self.clock, self.random
        self.taps = {name: Tap(clock) for name in scenario.recordings}
        for place, server in enumerate(scenario.servers):
            if server.front is not None:
                self.backends[place] = server.front.link.channels(clock, random)
        for number, site in enumerate(scenario.sites):
            for client in range(len(site.clients)):
                self.access[number, client] = site.link_of(client).channels(clock, random)
            for client, device in enumerate(site.devices):
                own = Random(f"{scenario.seed}/{scenario.number}/{number}/{client}")
                self.processors[number, client] = Processor(own, device)
            for place, server in enumerate(scenario.servers):
                self.wires[number, place] = wire(site, server).channels(clock, random)
            for place, (start_s, client, server_place) in enumerate(site.pings):
                clock.at(start_s, self._ping(number, client, server_place, place).start)
            for session in site.sessions:
                clock.at(session.start_s, partial(self._start, number, session))
        clock.run(_LONGEST_S)

    def _port(self, *machine: int) -> int:
        drawn, step = self.random.randrange(2_000, 20_000), self.random.randrange(1, 3)
        self.ports[machine] = self.ports.get(machine, drawn) + step
        return 32_768 + self.ports[machine] % 28_000

    def _translated(self, inside: Names, number: int, middle: Middle) -> Names:
        """What a connection is called outside, where the middle has an address of its own."""
        assert middle.public is not None
        if not middle.keeps_ports:
            return replace(inside, client=middle.public, client_port=self._port(1000 + number))
        outside = replace(inside, client=middle.public)
        while outside in self.translated:
            outside = replace(outside, client_port=1024 + (outside.client_port - 1023) % 64_512)
        self.translated.add(outside)
        return outside

    def _ping(self, number: int, client: int, place: int, count: int) -> Ping:
        site, server = self.scenario.sites[number], self.scenario.servers[place]
        address, middle = site.clients[client], site.middle
        target, public = server.address_for(address), middle.public or address
        sent, left, routers = site.stacks[client].hops, server.stack.hops, site.routers + server.routers
        parts: list[Part] = [
            Spot(self.taps.get("client"), address, target, sent, left - routers - 1),
            self.access[number, client],
            Spot(self.taps.get("between"), address, target, sent - 1, left - routers),
            self.wires[number, place],
            Spot(self.taps.get(server.name), public, target, sent - 1 - routers, left),
        ]
        return Ping(self.clock, parts, 7000 + client, count % 65_536, 3e-5 * (1 + self.random.random()))

    def _start(self, number: int, session: Session) -> None:
        scenario, random, clock = self.scenario, self.random, self.clock
        site, server, port = scenario.sites[number], scenario.servers[session.server], session.port
        middle, front = site.middle, server.front
        client, origin = Endpoint(clock, random, site.stacks[session.client]), Endpoint(clock, random, server.stack)
        address = site.clients[session.client]
        machine = site.machines[session.client] if site.machines else None
        own = (number,) if machine is None else (number, session.client)
        inside = Names(address, self._port(*own), server.address_for(address), port)
        outside = inside
        if middle.public is not None and (middle.kind in (MiddleKind.NAT, MiddleKind.TUNNEL) or middle.splits(port)):
            outside = self._translated(inside, number, middle)
        line_ = Line(number, session.server, port, session, 0, 0, 0, {"client": inside, "between": inside})
        line_.names_at[server.name] = outside
        path = _Path(self, client)
        if machine is not None:
            client.machine = machine
            if machine.timestamp_base is not None:
                path.leg.near.timestamp = machine.timestamp_base
        path.tap("client", inside)
        path.leg.add_link(self.access[number, session.client], 1)
        path.tap("between", inside)
        fetcher: Box | None = None
        if middle.acts_on(port):
            if middle.kind is MiddleKind.SYN_PROXY:
                path.proxy(SynProxy(clock, middle.box.stack, shuts_window=middle.box.shuts_window))
            elif middle.kind is MiddleKind.RELAY or port in (MAIL_PORT, SHELL_PORT):
                path.relay(middle.box)
            else:
                path.end_at(middle.box)
                fetcher = middle.box
        path.leg.add_link(self.wires[number, session.server], site.routers + server.routers)
        path.tap(server.name, outside)
        if front is not None:
            if (
                front.kind is FrontKind.WEB
                and fetcher is None
                and port not in (MAIL_PORT, SHELL_PORT)
                and not path.has_proxy
            ):
                path.end_at(front.box)
                fetcher = front.box
            else:
                path.relay(front.box)
            names = Names(front.inner, self._port(2000 + session.server), front.backend, port)
            line_.names_at[f"{server.name}b"] = names
            path.leg.add_link(self.backends[session.server], 1)
            path.tap(f"{server.name}b", names)
        path.finish(origin)
        self._play(line_, site, server, session, path, fetcher)
        self.lines.append(line_)
        client.connect()

    def _play(self, made: Line, site: Site, server: Server, session: Session, path: _Path, fetcher: Box | None) -> None:
        random, clock = self.random, self.clock
        processor = self.processors.get((made.site, session.client))
        client, origin = path.ends[0][0], path.ends[-1][1]
        requests = list(session.requests)
        if fetcher is None:
            if session.port == MAIL_PORT:
                talk = mail(
                    random, site.habits[session.client], server.habits, sum(each.request_bytes for each in requests)
                )
            elif session.port == SHELL_PORT:
                talk = shell(random, requests, site.habits[session.client], server.habits)
            else:
                talk = web(random, requests, site.habits[session.client], server.habits, session.secure)
            _finish(talk, session, site.habits[session.client])
            made.client_answers_near = made.client_answers_far = talk.client_answers
            made.server_answers_near = talk.server_answers
            Player(clock, client, talk.client, closes=True, processor=processor)
            Player(clock, origin, talk.server, closes=False)
            return
        quick = about(random, 4e-4)
        box_server = ServerHabits(about(random, 1.5e-3), quick, quick)
        box_client = ClientHabits(about(random, 6e-4), quick, quick)
        near, far, connect = fetching(
            random, requests, site.habits[session.client], server.habits, box_server, box_client, session.secure
        )
        _finish(near, session, site.habits[session.client])
        made.client_answers_near, made.server_answers_near = near.client_answers, near.server_answers
        outer, inner = path.joints[path.fetches_at]
        Player(clock, client, near.client, closes=True, processor=processor)
        Player(clock, outer, near.server, closes=False)
        if far is None:
            return
        made.client_answers_far = far.client_answers
        far.from_client(b"", session.linger_s)
        Player(clock, inner, far.client, closes=True)
        Player(clock, origin, far.server, closes=False)
        connect.waiting.append(inner.connect)


def _finish(talk: Talk, session: Session, client: ClientHabits) -> None:
    """The client closes when all has been said."""
    talk.from_client(b"", session.linger_s + client.close())


def wire(site: Site, server: Server) -> Link:
    """The wide area between a site and a server."""
    round_trip_s = server.distance_s + site.away_s + site.middle.round_trip_s
    return line(round_trip_s, jitter_s=server.jitter_s, loss_share=server.loss_share)


class _Path:
    """The legs of one connection, built from the client towards the server."""

    def __init__(self, simulation: Simulation, client: Endpoint) -> None:
        self.simulation = simulation
        self.near = client
        self.ends: list[tuple[Endpoint, Endpoint]] = []
        self.joints: list[tuple[Endpoint, Endpoint]] = []
        self.fetches_at = -1
        self.has_proxy = False
        self._first: tuple[Leg, SynProxy] | None = None
        self.leg = self._new_leg(Bases.drawn(simulation.random), client.stack.hops)

    def _new_leg(self, near: Bases, near_hops: int) -> Leg:
        return Leg(near, Bases.drawn(self.simulation.random), near_hops, 64)

    def tap(self, name: str, names: Names) -> None:
        self.leg.add_tap(self.simulation.taps.get(name), names)

    def proxy(self, proxy: SynProxy) -> None:
        """Here the handshake is answered, and nothing else."""
        self._first, self.has_proxy = (self.leg, proxy), True
        self.leg = self._new_leg(self.leg.near, self.leg.near_hops - self.leg.routers)

    def end_at(self, box: Box) -> None:
        """Here one connection ends and another one begins."""
        clock, random = self.simulation.clock, self.simulation.random
        outer, inner = Endpoint(clock, random, box.stack), Endpoint(clock, random, box.stack)
        self.fetches_at = len(self.joints)
        self.joints.append((outer, inner))
        self.finish(outer)
        self.near = inner
        self.leg = self._new_leg(Bases.drawn(random), inner.stack.hops)

    def relay(self, box: Box) -> None:
        """As `end_at`, and what comes from one side is passed to the other."""
        fetches_at = self.fetches_at
        self.end_at(box)
        self.fetches_at = fetches_at
        outer, inner = self.joints[-1]
        join_relay(self.simulation.clock, outer, inner, box.delay_s, box.queue_bytes, connects_first=box.connects_first)

    def finish(self, far: Endpoint) -> None:
        """The leg ends here."""
        self.leg.far_hops = far.stack.hops
        if self._first is None:
            lay(self.simulation.clock, self.leg, self.near, far)
        else:
            first, proxy = self._first
            first.far_hops = far.stack.hops - self.leg.routers
            lay_through(self.simulation.clock, (first, self.leg), self.near, far, proxy)
            self._first = None
        self.ends.append((self.near, far))
