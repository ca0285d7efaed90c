"""Both ends of a tunnel as processes on loopback."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_proxy.tunnel.datagram import DatagramKind, TunnelDatagram, encode_destination
from tests.reference_proxy.running import Address, Proxy, abort, echo, proxy, received, serving

DATA = bytes(range(256)) * 2000


@contextlib.contextmanager
def tunnel(directory: Path) -> Iterator[tuple[Proxy, Proxy, Address]]:
    """Server end, client end, and where the server end receives datagrams."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    (directory / "server").mkdir()
    (directory / "client").mkdir()
    far = f"{address[0]}:{address[1]}"
    with (
        proxy(directory / "server", "udp-tunnel", "--set", f"tunnel.listen={far}") as server_end,
        proxy(
            directory / "client", "udp-tunnel", "--set", "tunnel.end=client", "--set", f"tunnel.server={far}"
        ) as client_end,
    ):
        yield server_end, client_end, address


def test_bytes_and_ends_travel_both_ways(tmp_path: Path) -> None:
    with serving(echo) as server, tunnel(tmp_path) as (server_end, client_end, _):
        with client_end.ask(server, extra=b"first ") as sock:
            sock.sendall(DATA)
            sock.shutdown(socket.SHUT_WR)
            assert received(sock) == b"first " + DATA
        (near,), (far,) = client_end.truth(), server_end.truth()
    assert near["ending"] == far["ending"] == "finished"
    assert near["server_leg"]["protocol"] == far["mobile_leg"]["protocol"] == "udp"
    assert far["server_leg"]["given_bytes"] == far["server_leg"]["taken_bytes"] == len(DATA) + 6


def test_an_abort_travels_through(tmp_path: Path) -> None:
    def begin_and_abort(sock: socket.socket) -> None:
        sock.recv(1)
        abort(sock)

    with serving(begin_and_abort) as server, tunnel(tmp_path) as (server_end, client_end, _):
        with client_end.ask(server) as sock:
            sock.sendall(b"x")
            with pytest.raises(ConnectionResetError):
                received(sock)
        assert server_end.truth()[0]["ending"] == "server-aborted"
        assert client_end.truth()[0]["ending"] == "server-aborted"


def test_what_the_server_end_does_not_allow_is_refused_at_the_client(tmp_path: Path) -> None:
    with tunnel(tmp_path) as (server_end, client_end, _):
        with client_end.connect() as sock:
            sock.sendall(b"CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 403 " in received(sock)
        assert server_end.truth()[0]["ending"] == "not-allowed"


def test_who_has_not_proved_an_address_gets_a_token_and_nothing_else(tmp_path: Path) -> None:
    with (
        serving(echo) as server,
        tunnel(tmp_path) as (server_end, _, address),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.settimeout(60)
        asked = TunnelDatagram(DatagramKind.OPEN, 7, 12345, payload=encode_destination(*server)).encode()
        sock.sendto(b"garbage", address)
        sock.sendto(TunnelDatagram(DatagramKind.DATA, 7, 12345, payload=b"data").encode(), address)
        sock.sendto(asked, address)
        answer = sock.recv(2000)
        assert TunnelDatagram.decode(answer).kind is DatagramKind.CHALLENGE
        assert len(answer) <= len(asked)
        assert server_end.await_event("malformed-datagram")["level"] == "warning"
        sock.sendto(
            TunnelDatagram(
                DatagramKind.OPEN, 7, TunnelDatagram.decode(answer).token, payload=encode_destination(*server)
            ).encode(),
            address,
        )
        opened = TunnelDatagram.decode(sock.recv(2000))
        assert (opened.kind, opened.stream) == (DatagramKind.DATA, 7)
