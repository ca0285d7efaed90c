"""Which connections are judged together, and the tables by which users say it."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.networks import NetworkTable, come_one_way, places, read_networks
from pepscope.errors import UsageError
from tests.detector.one_capture.made_exchanges import addresses

IPV4 = st.ip_addresses(v=4).map(str)
IPV6 = st.integers(2**64, 2**128 - 1).map(ipaddress.IPv6Address).map(str)
NETWORKS = st.one_of(
    st.tuples(st.ip_addresses(v=4), st.integers(0, 32)), st.tuples(st.ip_addresses(v=6), st.integers(0, 128))
).map(lambda drawn: ipaddress.ip_network((str(drawn[0]), drawn[1]), strict=False))


def table(path: Path, text: str | bytes) -> NetworkTable:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_networks(str(path))


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.77", "192.0.2.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48"), ("10.0.0.0", "10.0.0.0/24")],
)
def test_without_a_table_networks_are_prefixes(address: str, network: str) -> None:
    assert NetworkTable().name(address) == network


def test_a_table_names_prefixes_and_the_longest_wins(tmp_path: Path) -> None:
    lines = "# ours\n\n10.0.0.0/8, All\n10.1.0.0/16,North\n 10.1.2.0/24 ,Lab\n2001:db8::/32,Six\n10.9.0.0/16,North\n"
    found = table(tmp_path / "networks.csv", lines)
    wanted = {"10.1.2.3": "Lab", "10.1.3.3": "North", "10.9.0.1": "North", "10.2.0.1": "All", "2001:db8::1": "Six"}
    assert {address: found.name(address) for address in wanted} == wanted
    assert found.name("11.0.0.1") == "11.0.0.0/24"


@given(st.lists(st.tuples(NETWORKS, st.sampled_from("abc")), max_size=12), st.one_of(IPV4, IPV6))
def test_the_table_finds_what_comparing_with_every_prefix_finds(
    rows: list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]], address: str
) -> None:
    named = dict(rows)
    holding = [network for network in named if ipaddress.ip_address(address) in network]
    found = NetworkTable(named.items()).name(address)
    if holding:
        assert found == named[max(holding, key=lambda network: network.prefixlen)]
    else:
        assert ipaddress.ip_address(address) in ipaddress.ip_network(found)


@given(st.lists(st.tuples(NETWORKS, st.sampled_from("abc")), max_size=12), st.randoms(), st.one_of(IPV4, IPV6))
def test_the_order_of_a_table_does_not_matter(rows, random, address: str) -> None:
    shuffled = list(dict(rows).items())
    random.shuffle(shuffled)
    assert NetworkTable(shuffled).name(address) == NetworkTable(dict(rows).items()).name(address)


def test_spreadsheets_begin_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert table(tmp_path / "networks.csv", b"\xef\xbb\xbf192.0.2.0/24,Lab\r\n").name("192.0.2.1") == "Lab"


@pytest.mark.parametrize(
    "line",
    [
        "192.0.2.0/24", "192.0.2.0/24,", "192.0.2.0/24,Lab,more", "192.0.2.1/24,Lab", "192.0.2.0/33,Lab",
        "Lab,192.0.2.0/24", "192.0.2.0/24;Lab", ",Lab,", "\x00\x01,\x02", "fe80::%eth0/64,Lab", "x" * 200_000 + ",Lab",
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_in_one_sentence(line: str, tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    with pytest.raises(UsageError) as raised:
        table(path, f"10.0.0.0/8,All\n{line}\n")
    sentence = str(raised.value)
    assert f"{path}, line 2" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


def test_one_prefix_has_one_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 2"):
        table(tmp_path / "networks.csv", "10.0.0.0/8,All\n10.0.0.0/8,Other\n")
    assert table(tmp_path / "networks.csv", "10.0.0.0/8,All\n10.0.0.0/8,All\n").name("10.1.1.1") == "All"


def test_an_empty_table_names_nothing(tmp_path: Path) -> None:
    assert table(tmp_path / "networks.csv", "").name("192.0.2.1") == "192.0.2.0/24"


def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "words").write_text("hello\nworld\n")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "binary", tmp_path / "words"):
        with pytest.raises(UsageError) as raised:
            read_networks(str(path))
        assert str(raised.value).count(str(path)) == 1
        assert "\n" not in str(raised.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_an_error_of_ours(tmp_path_factory, content: bytes) -> None:
    try:
        name = table(tmp_path_factory.mktemp("any") / "networks.csv", content).name("192.0.2.1")
    except UsageError as error:
        name = str(error)
    assert name
    assert "\n" not in name


CONNECTIONS = st.lists(
    st.tuples(
        st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.1.1", "2001:db8::1", "2001:db8:0:5::1"]),
        st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8:9::1"]),
        st.sampled_from([80, 443, 65535]),
    ),
    max_size=12,
)


@given(CONNECTIONS, st.booleans())
def test_places_are_those_of_a_plain_reference(connections: list[tuple[str, str, int]], at_client: bool) -> None:
    clients, servers, ports = (list(column) for column in zip(*connections, strict=True)) if connections else ([],) * 3
    columns: dict[str, np.ndarray] = {
        "client_address": addresses(clients), "server_address": addresses(servers),
        "server_port": np.asarray(ports, np.uint16),
    }  # fmt: skip
    known = NetworkTable([(ipaddress.ip_network("10.0.0.0/16"), "Lab")])
    found = places(columns, at_client=at_client, table=known)
    assert len(found.group) == len(found.member) == len(connections)
    assert np.all(np.diff(found.member_group) >= 0)
    assert len(set(zip(found.network, found.port.tolist(), strict=True))) == len(found.network)
    for (client, server, port), group, member in zip(connections, found.group, found.member, strict=True):
        assert (found.network[group], found.port[group]) == (known.name(client), port)
        assert found.member_group[member] == group
        assert found.member_address[member] == (server if at_client else client)
    far = [(known.name(c), port, s if at_client else c) for c, s, port in connections]
    assert len(found.member_group) == len(set(far))


@given(st.lists(st.tuples(st.one_of(IPV4, IPV6), st.booleans()), max_size=8, unique_by=lambda drawn: drawn[0]))
def test_groups_of_one_prefix_are_those_whose_answering_servers_have_one(servers: list[tuple[str, bool]]) -> None:
    near = [address for address, _ in servers]
    beside = [str(ipaddress.ip_address(address) + (1 if int(ipaddress.ip_address(address)) % 2 == 0 else -1))
              for address in near]  # fmt: skip
    for every in (near, near + beside):
        hosts = sorted(set(every))
        columns: dict[str, np.ndarray] = {
            "client_address": addresses(["10.0.0.1"] * len(hosts)), "server_address": addresses(hosts),
            "server_port": np.full(len(hosts), 443, np.uint16),
        }  # fmt: skip
        found = places(columns, at_client=True, table=NetworkTable())
        answers = {address for address, does in servers if does}
        answering = [address in answers or address in beside for address in found.member_address]
        prefixes = [
            NetworkTable().name(each) for each, does in zip(found.member_address, answering, strict=True) if does
        ]
        wanted = len(prefixes) > 1 and len(set(prefixes)) == 1
        assert found.in_one_prefix(np.asarray(answering, np.bool_)).tolist() == [wanted] * len(found.network)


@given(CONNECTIONS)
def test_clients_come_one_way_whose_addresses_have_their_servers_for_themselves(
    connections: list[tuple[str, str, int]],
) -> None:
    clients, servers, ports = (list(column) for column in zip(*connections, strict=True)) if connections else ([],) * 3
    columns: dict[str, np.ndarray] = {
        "client_address": addresses(clients), "server_address": addresses(servers),
        "server_port": np.asarray(ports, np.uint16),
    }  # fmt: skip
    where = places(columns, at_client=False, table=NetworkTable())
    found = come_one_way(columns, where)
    for group, one_way in enumerate(found):
        own = {client for client, of in zip(clients, where.group, strict=True) if of == group}
        reached = {server for client, server in zip(clients, servers, strict=True) if client in own}
        alone = [{c for c, s in zip(clients, servers, strict=True) if s == server} for server in reached]
        assert one_way == all(len(each) == 1 for each in alone)


def test_private_addresses_are_those_of_rfc_1918_and_rfc_4193() -> None:
    private = ["10.0.0.1", "10.255.1.2", "172.16.0.1", "172.31.255.9", "192.168.3.4", "fc00::1", "fdff:1::2"]
    others = ["9.255.0.1", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.167.0.1", "fb00::1", "fe80::1", "2001:db8::a"]
    hosts = [*private, *others]
    columns: dict[str, np.ndarray] = {
        "client_address": addresses(["198.51.100.1"] * len(hosts)), "server_address": addresses(hosts),
        "server_port": np.full(len(hosts), 443, np.uint16),
    }  # fmt: skip
    where = places(columns, at_client=True, table=NetworkTable())
    assert [
        host for host, own in zip(where.member_address, where.member_private, strict=True) if own
    ] == [host for host in where.member_address if host in private]  # fmt: skip
    assert int(where.member_private.sum()) == len(private)
