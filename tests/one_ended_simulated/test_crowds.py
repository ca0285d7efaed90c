"""Many clients at one public address."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise

import pytest

from benchmarks.one_ended_simulated.channels import line
from benchmarks.one_ended_simulated.crowds import draw_crowd
from benchmarks.one_ended_simulated.machines import Machine
from benchmarks.one_ended_simulated.run import Simulation
from benchmarks.one_ended_simulated.scenario import MiddleKind, Scenario
from benchmarks.one_ended_simulated.truth import groups
from detector.detection import detect
from pepscope.results.verdicts import SPLIT_VERDICTS
from tests.one_ended_simulated.networks import PORTS, WIRE_S, network, simulated, written

PUBLIC = IPv4Address("192.88.10.9")
CLIENTS = tuple(IPv4Address(f"10.45.0.{host}") for host in (7, 8, 9))
LINKS_S = (0.010, 0.040, 0.160)
FAST_TICKS_PER_S = 1000.05


def crowd(kind: MiddleKind, *, keeps_ports: bool) -> Scenario:
    """Three clients behind one address, one clock 50 ppm fast, one without anything in common to its connections."""
    alone = network(kind)
    (site,) = alone.sites
    machines = (Machine(100, timestamp_base=0), Machine(9000, FAST_TICKS_PER_S, 1 << 31), Machine(5))
    sessions = [
        replace(session, client=client, start_s=session.start_s + 20 * client)
        for client in range(3)
        for session in site.sessions
    ]
    several = replace(
        site, clients=CLIENTS, middle=replace(site.middle, public=PUBLIC, keeps_ports=keeps_ports),
        habits=site.habits * 3, stacks=site.stacks * 3, thinks=site.thinks * 3, sessions=tuple(sessions),
        links=tuple(line(round_trip_s, jitter_s=0.0) for round_trip_s in LINKS_S), machines=machines,
    )  # fmt: skip
    return replace(alone, sites=(several,))


def sent_by(simulation: Simulation, client: int) -> list[tuple[float, int, int, int]]:
    """Of the packets of one client at the server: time, timestamp, identification, port."""
    ports = {each.names_at["s1"].client_port for each in simulation.lines if each.session.client == client}
    return [
        (time_s, (face.timestamp_base + packet.timestamp) % (1 << 32), packet.identification, face.source_port)
        for time_s, packet, face in simulation.taps["s1"].records
        if face.source == PUBLIC and face.source_port in ports
    ]


@pytest.mark.parametrize("keeps_ports", [True, False])
def test_a_server_sees_one_address_and_connections_apart(keeps_ports):
    scenario = crowd(MiddleKind.NAT, keeps_ports=keeps_ports)
    simulation = simulated(scenario)
    outside = [each.names_at["s1"] for each in simulation.lines]
    inside = [each.names_at["client"] for each in simulation.lines]
    assert len(set(outside)) == len(simulation.lines) == 3 * len(PORTS)
    assert {names.client for names in outside} == {PUBLIC}
    kept = [far.client_port == near.client_port for far, near in zip(outside, inside, strict=True)]
    assert all(kept) if keeps_ports else not any(kept)


def test_a_port_that_is_taken_is_changed():
    scenario = crowd(MiddleKind.NAT, keeps_ports=True)
    simulation = simulated(scenario)
    (middle,) = (site.middle for site in scenario.sites)
    first = simulation.lines[0].names_at["client"]
    again = simulation._translated(first, 0, middle)
    assert (again.client, again.client_port) == (PUBLIC, first.client_port + 1)


def test_each_machine_has_a_clock_and_a_counter():
    simulation = simulated(crowd(MiddleKind.NAT, keeps_ports=True))
    steady, fast, without = (sent_by(simulation, client) for client in range(3))
    for sent, base, rate, link_s in ((steady, 0, 1000.0, LINKS_S[0]), (fast, 1 << 31, FAST_TICKS_PER_S, LINKS_S[1])):
        assert len(sent) > 50
        left_s = [(stamp - base) / rate for _, stamp, _, _ in sent]
        lates = [time_s - then for (time_s, *_), then in zip(sent, left_s, strict=True)]
        assert min(lates) > (link_s + WIRE_S) / 2 - 0.002
        assert max(lates) < (link_s + WIRE_S) / 2 + 0.002
        assert {after - before for (_, _, before, _), (_, _, after, _) in pairwise(sent)} <= {1}
    starts = {stamp - round(1000 * time_s) for time_s, stamp, _, _ in without}
    assert len({start // 100 for start in starts}) >= len(PORTS)  # each connection counts from its own


def test_truth_has_the_range_of_hidden_legs():
    simulation = simulated(crowd(MiddleKind.RELAY, keeps_ports=False))
    rows = [row for row in groups(simulation, "s1") if row["port"] == 443]
    assert [row["class"] for row in rows] == ["split"]
    low_s, high_s = rows[0]["hidden_round_trip_range_s"]
    assert (low_s, high_s) == (pytest.approx(LINKS_S[0], abs=0.001), pytest.approx(LINKS_S[2], abs=0.001))


def test_clients_at_three_distances_are_no_split(tmp_path):
    simulation = simulated(crowd(MiddleKind.NAT, keeps_ports=False))
    found = {group.port: group.verdict for group in detect(str(written(simulation, tmp_path)["s1"])).groups}
    assert found.keys() == {*PORTS}
    assert not {*found.values()} & {*SPLIT_VERDICTS}


def test_drawn_crowds_are_many_clients_at_one_address():
    scenarios = [draw_crowd(7, number) for number in range(25)]
    sites = [site for scenario in scenarios for site in scenario.sites]
    assert {len(site.clients) for site in sites} == {4, 8, 16, 32}
    assert all(site.middle.public is not None and len(site.machines) == len(site.clients) for site in sites)
    assert {site.middle.kind for site in sites} == {MiddleKind.NAT, MiddleKind.RELAY}
    assert {site.middle.keeps_ports for site in sites} == {True, False}
    assert draw_crowd(7, 3).sites[0].sessions == scenarios[3].sites[0].sessions
