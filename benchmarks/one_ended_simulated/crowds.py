"""Networks with one public address for many clients, each of which has an access link, habits, a clock of its own.

What one address shows a server is then no one host: behind a home's NAT and behind a carrier's, where each client has
an access of its own. A quarter of these addresses are a relay's, which splits all of them.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from random import Random

from benchmarks.one_ended_simulated.access import draw_access, with_other_traffic
from benchmarks.one_ended_simulated.draws import (
    draw_habits,
    draw_program,
    draw_recording,
    draw_server,
    draw_site,
)
from benchmarks.one_ended_simulated.machines import Machine
from benchmarks.one_ended_simulated.scenario import MiddleKind, Scenario, Site
from benchmarks.one_ended_simulated.talks import ClientHabits

_CLIENTS = (4, 8, 16, 32)
_RELAY_SHARE = 0.25
#: Of clients, those whose program works on each answer, for a time of its own.
_PROGRAMS_SHARE = 0.1
_FIRST_ADDRESS = IPv4Address("192.88.10.0")
#: What a site of one client asks for, as a share: a capture of many clients would be long otherwise.
_ACTIVITY = 0.25


def draw_crowd(seed: int, number: int) -> Scenario:
    """The network of this number: a function of seed and number alone."""
    random = Random(f"one-ended-crowd/{seed}/{number}")
    hard = ["several clients"]
    servers = tuple(replace(draw_server(random, place, hard), front=None) for place in range(random.choice((1, 2))))
    kind = MiddleKind.RELAY if random.random() < _RELAY_SHARE else MiddleKind.NAT
    site = draw_site(random, 0, servers, kind, hard, random.choice(_CLIENTS), _ACTIVITY, version_6=False)
    site = _with_machines(random, site, hard)
    if random.random() < 0.7:
        hard.append("each client its own access")
        site = _with_links(random, site)
    if random.random() < 0.5:
        hard.append("each client its own port")
        site = _with_one_port_each(random, site)
    if any(habits.works for habits in site.habits):
        hard.append("clients work on each answer")
    recordings = {server.name: draw_recording(random, hard) for server in servers}
    return Scenario(seed, number, (site,), servers, recordings, tuple(sorted(set(hard))))


def _with_machines(random: Random, site: Site, hard: list[str]) -> Site:
    """Clients that share no more than the address, which the middle has in any case."""
    drawn = [_with_program(random, *draw_habits(random, hard)) for _ in site.clients]
    keeps_ports = random.random() < 0.5
    if keeps_ports:
        hard.append("ports are kept")
    address = site.middle.public or _FIRST_ADDRESS + random.randrange(2, 250)
    return replace(
        site,
        middle=replace(site.middle, public=address, keeps_ports=keeps_ports),
        habits=tuple(habits for habits, _ in drawn),
        thinks=tuple(thinks for _, thinks in drawn),
        machines=tuple(Machine.drawn(random) for _ in site.clients),
    )


def _with_program(random: Random, habits: ClientHabits, thinks: bool) -> tuple[ClientHabits, bool]:
    if random.random() >= _PROGRAMS_SHARE:
        return habits, thinks
    return draw_program(random, habits), True


def _with_links(random: Random, site: Site) -> Site:
    links = []
    for _ in site.clients:
        _, link = draw_access(random)
        links.append(with_other_traffic(link, random) if random.random() < 0.25 else link)
    return replace(site, access="several", links=tuple(links))


def _with_one_port_each(random: Random, site: Site) -> Site:
    """Clients of which each speaks to one port only, so that one port may be near and another one far."""
    used = sorted({session.port for session in site.sessions})
    ports = [random.choice(used) for _ in site.clients]
    return replace(site, sessions=tuple(each for each in site.sessions if each.port == ports[each.client]))
