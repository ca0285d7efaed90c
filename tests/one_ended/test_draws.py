"""What the one-ended laboratory draws, and what it takes for the truth of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.one_ended import middles, truth
from benchmarks.one_ended.plan import DECK, GREETING, HTTP, HTTPS, MIDDLES, PORTS, draw
from benchmarks.one_ended.traffic import draw_jobs

SEED = 5
PLANS = [draw(SEED, index) for index in range(3 * len(DECK))]


def found(kind, *, clients=1, ports=None):
    """The first plan with that middle, one client and nothing in front of the servers but what is asked for."""
    plan = next(plan for index in range(400) if len((plan := draw(SEED, index, middle=kind)).clients) >= clients)
    plain = tuple(replace(server, balancer=None, slow=False) for server in plan.servers)
    return replace(plan, servers=plain, split_ports=ports if ports is not None else plan.split_ports)


def group(plan, place, port, host=None):
    """The group of a place, a port and a host."""
    (one,) = (g for g in truth.groups(plan, place) if g["port"] == port and g["host"] == host)
    return one


def test_a_plan_follows_from_seed_and_index_alone():
    assert draw(SEED, 7) == draw(SEED, 7)
    assert draw_jobs(PLANS[7], PLANS[7].clients[0]) == draw_jobs(draw(SEED, 7), draw(SEED, 7).clients[0])
    assert draw(SEED, 7) != draw(SEED + 1, 7)
    assert len({plan.name for plan in PLANS}) == len(PLANS)


def test_every_middle_of_the_deck_is_dealt_once_before_one_comes_again():
    for turn in range(3):
        dealt = Counter(plan.middle for plan in PLANS[turn * len(DECK) : (turn + 1) * len(DECK)])
        assert dealt == Counter(DECK)


def test_every_middle_can_be_started_and_is_in_the_deck():
    assert set(middles.STARTS) == set(MIDDLES) == set(DECK)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_addresses_are_of_one_host_only_and_links_can_exist(plan):
    addresses = [a for client in plan.clients for a in client.addresses]
    addresses += [server.address for server in plan.servers] + [plan.middle_address]
    addresses += [a for s in plan.servers if s.balancer for a in (s.balancer.address, s.balancer.backend_address)]
    assert len(addresses) == len(set(addresses))
    for link in [h.link for h in (*plan.clients, *plan.servers)]:
        for one in (link.down, link.up):
            assert one.delay_s > 0
            assert one.rate_bit_s > 0
            assert 0 <= one.loss < 0.05
            assert one.typical_s >= one.delay_s
    assert set(plan.split_ports) <= set(plan.kind.ports)
    assert bool(plan.split_ports) == (plan.kind.truth != "regular")


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_every_capture_has_groups_and_only_split_ones_hide_a_leg(plan):
    for place in plan.captures:
        groups = truth.groups(plan, place)
        assert groups
        for one in groups:
            assert (one["class"] == "split") == (one["hidden_round_trip_s"] is not None)
            assert (one["class"] == "regular") == (one["where"] is None)
        rows = [(g["stretch"], g["network"], g["port"], g["host"]) for g in groups]
        assert len(rows) == len(set(rows))


def test_a_relay_hides_the_wire_from_the_client_and_the_access_link_from_the_server():
    plan = found("haproxy", ports=PORTS)
    client, server = plan.clients[0], plan.servers[0]
    near = group(plan, "client", HTTPS, server.address)
    assert (near["class"], near["where"]) == ("split", "network")
    assert near["hidden_round_trip_s"] == pytest.approx(server.link.round_trip_s, abs=1e-6)
    assert near["near_round_trip_s"] == pytest.approx(client.link.round_trip_s, abs=1e-6)
    far = next(g for g in truth.groups(plan, server.name) if g["port"] == HTTPS and g["host"] == client.addresses[0])
    assert far["hidden_round_trip_s"] == pytest.approx(client.link.round_trip_s, abs=1e-6)


def test_what_the_middle_does_not_take_is_end_to_end():
    plan = found("haproxy", ports=(HTTP,))
    assert {g["class"] for g in truth.groups(plan, "client") if g["port"] == HTTPS} == {"regular"}
    assert {g["class"] for g in truth.groups(plan, "client") if g["port"] == HTTP} == {"split"}
    spared = replace(plan, clients=tuple(replace(client, taken=False) for client in plan.clients))
    assert {g["class"] for g in truth.groups(spared, "client")} == {"regular"}


def test_a_balancer_is_a_split_at_the_servers_site_and_only_there():
    drawn = next(plan for plan in PLANS if plan.middle == "none" and any(s.balancer for s in plan.servers))
    balanced = next(server for server in drawn.servers if server.balancer)
    seen = group(drawn, "client", GREETING, balanced.address)
    assert (seen["class"], seen["where"], seen["mechanism"]) == ("split", "server", "balancer")
    assert seen["hidden_round_trip_s"] == pytest.approx(balanced.balancer.link.round_trip_s, abs=1e-6)
    assert {g["class"] for g in truth.groups(drawn, balanced.name)} == {"regular"}
    assert {g["where"] for g in truth.groups(drawn, f"{balanced.name}b")} == {"server"}


def test_a_tls_end_reaches_the_server_on_another_port_from_its_own_address():
    plan = found("stunnel", ports=(HTTPS,))
    plan = replace(plan, clients=tuple(replace(client, taken=True) for client in plan.clients))
    groups = truth.groups(plan, plan.servers[0].name)
    assert {g["port"] for g in groups if g["class"] == "split"} == {HTTP}
    assert {g["network"] for g in groups if g["class"] == "split"} == {plan.middle_network}
    assert HTTPS not in {g["port"] for g in groups}


@pytest.mark.parametrize(
    ("kind", "at_client", "at_server"), [("local-down", "regular", "split"), ("local-up", "split", "regular")]
)
def test_local_acknowledgement_hides_a_leg_from_those_whose_data_it_acknowledges(kind, at_client, at_server):
    plan = found(kind, ports=PORTS)
    assert {g["class"] for g in truth.groups(plan, "client")} == {at_client}
    assert {g["class"] for g in truth.groups(plan, plan.servers[0].name)} == {at_server}


def test_the_plan_can_be_written_down():
    assert dataclasses.asdict(PLANS[0])["seed"] == SEED
