"""Which ends of its connections a capture is far from."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.sides import Stretch, contradiction_of, judged_sides, judged_stretches
from pepscope.captures.references import ReferenceKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_exchanges import references

CLIENT, SERVER = (GroupSide.CLIENT,), (GroupSide.SERVER,)
BETWEEN = (GroupSide.CLIENT, GroupSide.SERVER)
UNSEEN = None


def sides(to_client_ms: list[float | None], to_server_ms: list[float | None], taken_at: GroupSide | None = None):
    return judged_sides(columns(to_client_ms, to_server_ms), taken_at)


def columns(
    to_client_ms: Sequence[float | None], to_server_ms: Sequence[float | None], servers: list[str] | None = None
):
    to_client, to_server = (
        np.asarray([-1 if each is None else round(each * 1e6) for each in times], np.int64)
        for times in (to_client_ms, to_server_ms)
    )
    nothing = np.full(len(to_client), -1)
    addresses = [ip_address(each) for each in servers or ["203.0.113.1"] * len(to_client)]
    packed = [each.packed if each.version == 6 else bytes(10) + b"\xff\xff" + each.packed for each in addresses]
    return {
        "server_address": np.frombuffer(b"".join(packed), np.uint8).reshape(-1, 16),
        "first_time_ns": np.zeros(len(to_client), np.int64),
        "handshake_syn_ack_ns": to_server, "handshake_ack_ns": to_client,
        "up_round_trip_time_min_ns": nothing, "down_round_trip_time_min_ns": nothing,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("to_client_ms", "to_server_ms", "wanted"),
    [
        ([0.05, 0.07], [20.0, 90.0], CLIENT),
        ([20.0, 90.0], [0.05, 0.07], SERVER),
        ([5.0, 4.0], [20.0, 30.0], BETWEEN),
        ([40.0], [30.0], BETWEEN),
        ([UNSEEN], [20.0], CLIENT),
        ([20.0], [UNSEEN], SERVER),
        ([UNSEEN], [0.05], SERVER),
        ([0.05], [UNSEEN], CLIENT),
        ([UNSEEN], [UNSEEN], BETWEEN),
        ([0.05, 0.05, 30.0], [20.0, 20.0, 0.05], CLIENT),
        ([], [], ()),
    ],
)
def test_the_end_that_answers_as_fast_as_a_kernel_is_here(to_client_ms, to_server_ms, wanted) -> None:
    assert sides(to_client_ms, to_server_ms) == wanted


@pytest.mark.parametrize("side", GroupSide)
def test_the_user_is_believed(side: GroupSide) -> None:
    assert sides([0.05], [20.0], side) == sides([20.0], [0.05], side) == sides([], [], side) == (side,)


def test_least_round_trips_of_data_stand_in_for_handshakes() -> None:
    known = columns([UNSEEN], [UNSEEN])
    known["up_round_trip_time_min_ns"] = np.asarray([30_000_000])
    known["down_round_trip_time_min_ns"] = np.asarray([40_000])
    assert judged_sides(known, None) == CLIENT


ONE_NETWORK = ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"]
TWO_UPLINKS = ["203.0.113.1", "198.51.100.1", "2001:db8:1::1", "2001:db8:2::1"]
THREE_NETWORKS = ["203.0.113.1", "198.51.100.1", "192.0.2.1", "192.0.2.2"]
THREE_OF_IPV6 = ["2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1", "203.0.113.1"]


@pytest.mark.parametrize(
    ("servers", "wanted"),
    [(ONE_NETWORK, SERVER), (TWO_UPLINKS, SERVER), (THREE_NETWORKS, BETWEEN), (THREE_OF_IPV6, BETWEEN)],
)
def test_servers_of_several_networks_that_answer_here_are_no_single_host(servers, wanted) -> None:
    assert judged_sides(columns([20.0] * 4, [0.05] * 4, servers), None) == wanted


def test_servers_further_away_do_not_tell_where_the_near_ones_stand() -> None:
    here_and_there = ["203.0.113.1"] * 4 + THREE_NETWORKS[1:]
    assert judged_sides(columns([20.0] * 7, [0.05] * 4 + [9.0] * 3, here_and_there), None) == SERVER


@pytest.mark.parametrize(
    ("to_client_ms", "syn_acks_ms", "data_ms", "wanted"),
    [
        ([0.09], [117.0], [0.05], CLIENT),  # inside a virtual machine whose NAT ends TCP
        ([2.0, 7.0], [1.2, 3.6], [0.12, 0.27], BETWEEN),
        ([20.0] * 3, [9.0, 30.0, UNSEEN], [0.05] * 3, BETWEEN),  # on the line before a relay
        ([20.0] * 3, [9.0, 0.06, 30.0], [0.05] * 3, SERVER),  # a kernel answers what does not wait for its application
        ([20.0] * 2, [9.0, UNSEEN], [0.7, 0.05], SERVER),  # the SYN-ACK is of a host that is not here
        ([20.0], [UNSEEN], [0.05], SERVER),
    ],
)
def test_an_end_that_connects_before_it_answers_is_no_host(to_client_ms, syn_acks_ms, data_ms, wanted) -> None:
    known = columns(to_client_ms, syn_acks_ms)
    known["up_round_trip_time_min_ns"] = columns(to_client_ms, data_ms)["handshake_syn_ack_ns"]
    assert judged_sides(known, None) == wanted


def test_clients_beside_the_capture_are_its_own_host_whatever_the_servers_are() -> None:
    assert judged_sides(columns([0.05] * 4, [20.0] * 4, THREE_NETWORKS), None) == CLIENT


@pytest.mark.parametrize(
    ("host", "echo_ms", "kind", "wanted"),
    [
        ("203.0.113.1", [81.0, 80.0, 83.0], ReferenceKind.ICMP_ECHO, BETWEEN),  # on the line before a split point
        ("203.0.113.1", [80.0] * 3, ReferenceKind.NTP, BETWEEN),
        ("203.0.113.1", [80.0] * 2, ReferenceKind.NTP, SERVER),  # a busy program may be late twice
        ("203.0.113.1", [80.0, 81.0, 0.04], ReferenceKind.ICMP_ECHO, SERVER),  # some were late: the host is here
        ("203.0.113.1", [4.0] * 3, ReferenceKind.ICMP_ECHO, SERVER),
        ("203.0.113.1", [80.0] * 3, ReferenceKind.QUIC_INITIAL, SERVER),  # cryptography takes its time
        ("203.0.113.1", [80.0] * 3, ReferenceKind.DNS, SERVER),  # a resolver asks others
        ("10.0.0.1", [80.0] * 3, ReferenceKind.ICMP_ECHO, SERVER),  # the host pings its client
    ],
)
def test_a_host_that_answers_echo_from_afar_is_not_here(host, echo_ms, kind, wanted) -> None:
    known, asks = columns([20.0] * 3, [0.05] * 3), np.zeros(3, np.bool_)
    known["client_address"] = columns([20.0] * 3, [0.05] * 3, ["10.0.0.1"] * 3)["server_address"]
    found = judged_stretches(known, None, asks, references([host] * len(echo_ms), echo_ms, kind))
    assert tuple(stretch.side for stretch in found) == wanted
    afar = references([host] * 3, [80.0] * 3)
    assert judged_stretches(known, GroupSide.SERVER, asks, afar) == [Stretch(GroupSide.SERVER)]


def test_echo_of_a_host_is_compared_with_its_own_tcp() -> None:
    """A backend of the next site, whose pings take as long as its TCP, beside one that is here."""
    servers = ["203.0.113.1"] * 3 + ["203.0.113.2"]
    known, pings = columns([200.0] * 4, [0.05] * 3 + [15.0], servers), references(["203.0.113.2"] * 3, [15.2] * 3)
    assert judged_sides(known, None, references=pings) == SERVER
    known = columns([200.0] * 4, [0.05] * 4, servers)
    assert judged_sides(known, None, references=pings) == BETWEEN


TIMES = st.one_of(st.none(), st.integers(0, 1_000_000).map(lambda microseconds: microseconds / 1e3))


@given(st.lists(st.tuples(TIMES, TIMES), max_size=8), st.randoms())
def test_neither_names_nor_order_matter(ends: list[tuple[float | None, float | None]], random) -> None:
    to_client, to_server = [each[0] for each in ends], [each[1] for each in ends]
    found = sides(to_client, to_server)
    shuffled = list(ends)
    random.shuffle(shuffled)
    assert sides([each[0] for each in shuffled], [each[1] for each in shuffled]) == found
    mirror = {CLIENT: SERVER, SERVER: CLIENT}
    typical = [np.median([time for time in times if time is not None] or [-1.0]) for times in (to_client, to_server)]
    if typical[0] != typical[1]:
        assert sides(to_server, to_client) == mirror.get(found, found)


OWN, ELSEWHERE, PEOPLE = "192.0.2.30", "198.18.0.5", ["203.0.113.1", "198.51.100.7", "8.8.8.8"]


def of_both_roles(asked: int, served: int, database_ms: float = 32.0, own: Sequence[str] = (OWN,)):
    """A web server's own capture: people's connections to it, and its own to a database."""
    servers = [ELSEWHERE] * asked + [own[number % len(own)] for number in range(served)]
    known = columns([0.02] * asked + [40.0] * served, [database_ms] * asked + [0.03] * served, servers)
    clients = [OWN] * asked + [PEOPLE[number % 3] for number in range(served)]
    packed = [bytes(10) + b"\xff\xff" + ip_address(each).packed for each in clients]
    return {**known, "client_address": np.frombuffer(b"".join(packed), np.uint8).reshape(-1, 16)}


def stretches_of(known: dict[str, npt.NDArray[Any]], taken_at: GroupSide | None = None) -> list[Stretch]:
    """Of connections that ask for no proxy."""
    return judged_stretches(known, taken_at, np.zeros(len(known["first_time_ns"]), np.bool_))


@pytest.mark.parametrize(("asked", "served"), [(144, 36), (36, 144), (1, 40), (40, 1)])
@pytest.mark.parametrize("database_ms", [0.01, 0.3, 32.0])
def test_a_host_that_serves_and_asks_is_left_on_both_ways(asked: int, served: int, database_ms: float) -> None:
    stretches = stretches_of(of_both_roles(asked, served, database_ms))
    assert {each.side: each.rows.tolist() for each in stretches} == {
        GroupSide.CLIENT: list(range(asked)),
        GroupSide.SERVER: list(range(asked, asked + served)),
    }


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=8), st.randoms())
def test_stretches_depend_on_no_order(ends: list[tuple[float | None, float | None]], random) -> None:
    """Of a host at either end of each connection, by turns."""
    asked = [number for number in range(len(ends)) if number % 3]
    own = [OWN if number in asked else f"198.18.{number}.9" for number in range(len(ends))]
    to_client, to_server = zip(*ends, strict=True)
    known = columns(to_client, to_server, [ELSEWHERE if number in asked else OWN for number in range(len(ends))])
    known["client_address"] = columns([0.0] * len(ends), [0.0] * len(ends), own)["server_address"]
    order = list(range(len(ends)))
    random.shuffle(order)

    def found(rows: list[int]) -> dict[GroupSide, list[int]]:
        stretches = stretches_of({name: column[rows] for name, column in known.items()})
        return {
            each.side: sorted(rows if each.rows is None else [rows[place] for place in each.rows]) for each in stretches
        }

    assert found(order) == found(sorted(order))


def test_what_is_judged_of_one_connection_depends_on_no_other_ones() -> None:
    alone = [judged_sides({name: column[rows] for name, column in of_both_roles(9, 4).items()}, None)
             for rows in (slice(0, 9), slice(9, 13))]  # fmt: skip
    assert alone == [CLIENT, SERVER]


@pytest.mark.parametrize("side", GroupSide)
def test_the_user_is_believed_of_all_connections(side: GroupSide) -> None:
    assert stretches_of(of_both_roles(9, 4), side) == [Stretch(side)]


def test_hosts_of_many_networks_that_ask_and_answer_here_are_no_single_host() -> None:
    """Right before a split point all that is asked and all that asks seems to stand here."""
    known = of_both_roles(4, 4, own=[f"198.18.{number}.1" for number in range(1, 5)])
    assert all(each.rows is None for each in stretches_of(known))


def test_a_router_between_clients_and_servers_sees_all_connections_both_ways() -> None:
    known = of_both_roles(4, 4)
    known["handshake_ack_ns"] = np.full(8, 5_000_000)
    known["handshake_syn_ack_ns"] = np.full(8, 20_000_000)
    assert stretches_of(known) == [Stretch(GroupSide.CLIENT), Stretch(GroupSide.SERVER)]


@pytest.mark.parametrize(
    ("to_client_ms", "to_server_ms", "contradicted"),
    [
        ([0.05, 0.07], [20.0, 90.0], GroupSide.SERVER),
        ([20.0, 90.0], [0.05, 0.07], GroupSide.CLIENT),
        ([0.05, 0.07], [0.1, 0.2], None),  # the NAT of a virtual machine
        ([5.0, 9.0], [20.0, 90.0], None),  # in between, or a slow kernel
        ([UNSEEN, UNSEEN], [20.0, 90.0], None),
        ([], [], None),
    ],
)
def test_a_side_that_is_named_is_contradicted_by_kernels_alone(
    to_client_ms: list[float | None], to_server_ms: list[float | None], contradicted: GroupSide | None
) -> None:
    seen = columns(to_client_ms, to_server_ms) if to_client_ms else columns([], [], [])
    for side in (GroupSide.CLIENT, GroupSide.SERVER):
        against = contradiction_of(seen, side)
        assert (against is not None) == (side is contradicted)
        if against is not None:
            assert against.startswith(f"the capture is said to be taken at the {side.value}, but ")


def test_a_side_that_is_named_is_not_contradicted_by_a_split_point_beside_the_capture() -> None:
    """A router's own proxy answers for servers of several networks, and for those whose pings take longer."""
    routers = columns([20.0] * 4, [0.05] * 4, THREE_NETWORKS)
    assert contradiction_of(routers, GroupSide.CLIENT) is None
    of_one_server, pings = columns([200.0] * 4, [0.05] * 4), references(["203.0.113.1"] * 3, [15.2] * 3)
    assert contradiction_of(of_one_server, GroupSide.CLIENT) is not None
    assert contradiction_of(of_one_server, GroupSide.CLIENT, pings) is None
