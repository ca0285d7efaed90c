"""Probes with few hops, across a real router: who answered what."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from prober.host.hop_probe import Answer, HopAnswer, probe_connections, probe_echo, probe_echo_requests
from tests.end_to_end.network import MIDDLE_CLIENT_ADDRESS, SERVER_ADDRESS, Network, network
from tests.prober.namespaces import Inside, inside

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTENING, CLOSED, DROPPED, ECHO = 5001, 5002, 5003, 5007
SERVER_ADDRESS_6, MIDDLE_ADDRESS_6 = "fd00:213:2::2", "fd00:213:1::1"
ROUTERS = {SERVER_ADDRESS: MIDDLE_CLIENT_ADDRESS, SERVER_ADDRESS_6: MIDDLE_ADDRESS_6}


@pytest.fixture(scope="module")
def names() -> Iterator[Network]:
    with network() as made:
        _prepare(made)
        with inside(made.server) as server, contextlib.ExitStack() as stack:
            stack.enter_context(server.call(_listen))
            echo = stack.enter_context(server.call(_echo_socket))
            threading.Thread(target=_serve_echo, args=(echo,), daemon=True).start()
            yield made
            with contextlib.suppress(OSError):  # it wakes the server all the same
                echo.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def client(names: Network) -> Iterator[Inside]:
    with inside(names.client) as thread:
        yield thread


@pytest.fixture(params=[SERVER_ADDRESS, SERVER_ADDRESS_6], ids=["ipv4", "ipv6"])
def address(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answers(made: list[HopAnswer]) -> list[tuple[int, Answer, str]]:
    return [(item.hops, item.answer, item.router) for item in made]


def test_handshakes_are_reported_with_their_hops(client: Inside, address: str) -> None:
    made = client.call(probe_connections, address, LISTENING, range(1, 4), 5.0)
    assert answers(made) == [
        (1, Answer.ROUTER, ROUTERS[address]),
        (2, Answer.ANSWERED, ""),
        (3, Answer.ANSWERED, ""),
    ]
    assert len({item.mobile_port for item in made}) == 3


def test_datagrams_are_reported_with_their_hops(client: Inside, address: str) -> None:
    made = client.call(probe_echo, address, ECHO, range(1, 4), 5.0, b"question")
    assert answers(made) == [
        (1, Answer.ROUTER, ROUTERS[address]),
        (2, Answer.ANSWERED, ""),
        (3, Answer.ANSWERED, ""),
    ]


def test_echo_requests_are_reported_with_their_hops(names: Network, client: Inside, address: str) -> None:
    # Of both versions of IP.
    allowed = names.inside(names.client, "sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")
    subprocess.run(allowed, check=True, capture_output=True)
    made = client.call(probe_echo_requests, address, range(1, 4), 5.0)
    assert answers(made) == [
        (1, Answer.ROUTER, ROUTERS[address]),
        (2, Answer.ANSWERED, ""),
        (3, Answer.ANSWERED, ""),
    ]


@pytest.mark.parametrize("probe", ["connection", "datagram"])
def test_a_refusal_is_no_answer(client: Inside, address: str, probe: str) -> None:
    def ask() -> list[HopAnswer]:
        if probe == "connection":
            return probe_connections(address, CLOSED, [2], 5.0)
        return probe_echo(address, CLOSED, [2], 5.0, b"question")

    (made,) = client.call(ask)
    assert made.answer is Answer.REFUSED


def test_silence_is_reported_at_the_end_of_its_time(client: Inside, address: str) -> None:
    made = client.call(probe_connections, address, DROPPED, [1, 2], 0.4)
    assert answers(made) == [(1, Answer.ROUTER, ROUTERS[address]), (2, Answer.SILENT, "")]


def test_more_probes_than_are_sent_at_once_come_back_in_order(client: Inside) -> None:
    made = client.call(probe_connections, SERVER_ADDRESS, LISTENING, range(2, 22), 5.0)
    assert [item.hops for item in made] == list(range(2, 22))
    assert {item.answer for item in made} == {Answer.ANSWERED}


def test_a_network_that_is_not_there_is_an_error(client: Inside) -> None:
    with pytest.raises(OSError, match="unreachable"):
        client.call(probe_connections, "fd99::1", LISTENING, [1], 0.2)


def _listen() -> socket.socket:
    return socket.create_server(("::", LISTENING), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)


def _echo_socket() -> socket.socket:
    link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    link.bind(("::", ECHO))
    return link


def _serve_echo(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, peer = link.recvfrom(2000)
            if not data:
                return
            link.sendto(data, peer)


def _prepare(names: Network) -> None:
    commands = [
        ["ip", "-n", names.client, "address", "add", "fd00:213:1::2/64", "dev", "up0", "nodad"],
        ["ip", "-n", names.middle, "address", "add", f"{MIDDLE_ADDRESS_6}/64", "dev", "client0", "nodad"],
        ["ip", "-n", names.middle, "address", "add", "fd00:213:2::1/64", "dev", "server0", "nodad"],
        ["ip", "-n", names.server, "address", "add", f"{SERVER_ADDRESS_6}/64", "dev", "up0", "nodad"],
        ["ip", "-n", names.client, "-6", "route", "add", "fd00:213:2::/64", "via", MIDDLE_ADDRESS_6],
        ["ip", "-n", names.server, "-6", "route", "add", "default", "via", "fd00:213:2::1"],
        # Every message is to come, however many were sent.
        names.inside(names.middle, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"),
        names.inside(names.middle, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"),
    ]
    for command in ("iptables", "ip6tables"):
        drop = ("-A", "INPUT", "-p", "tcp", "--dport", str(DROPPED), "-j", "DROP")
        commands.append(names.inside(names.server, command, "-w", "60", *drop))
    for words in commands:
        subprocess.run(words, check=True, capture_output=True)
