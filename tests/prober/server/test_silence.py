"""Ports that do not answer: for ever, or for a while; everything else goes on being served."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator

import pytest

from prober.errors import ControlError
from prober.protocol.plain_requests import TcpRequest, echo_target
from prober.server.sockets import listening
from tests.prober.server.running import Here, is_answered, serving_here


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with serving_here(tmp_path_factory.mktemp("state"), silences=3) as here:
        yield here


def test_the_dead_port_never_answers_and_all_others_do(here: Here) -> None:
    assert not is_answered(here.ports.dead)
    for port in (*here.ports.services, here.ports.control):
        assert is_answered(port), port


@pytest.mark.parametrize("name", ["http", "https", "ftp", "http_free"])
def test_a_port_is_silenced_and_answers_again(here: Here, name: str) -> None:
    port = getattr(here.ports, name)
    others = [other for other in here.ports.services if other != port]
    with here.control.silence(port, 30.0):
        assert not is_answered(port)
        assert all(is_answered(other) for other in others)
    assert is_answered(port)


def test_connections_that_are_there_go_on(here: Here) -> None:
    port = here.ports.tcp[0]
    with here.connect(port) as sock:
        sock.sendall(TcpRequest(here.session, "echo").to_line() + b"before")
        assert sock.recv(100) == b"before"
        with here.control.silence(port, 30.0):
            assert not is_answered(port)
            sock.sendall(b"during")
            assert sock.recv(100) == b"during"
    connection = http.client.HTTPConnection("127.0.0.1", here.ports.http, timeout=60)
    with here.control.silence(here.ports.ftp, 30.0):
        connection.request("GET", echo_target(here.session))
        assert connection.getresponse().read()
    connection.close()


def test_silence_of_two_sessions_ends_with_the_second(here: Here) -> None:
    port = here.ports.http
    with here.control.silence(port, 30.0):
        with here.control.silence(port, 30.0):
            assert not is_answered(port)
        assert not is_answered(port)
    assert is_answered(port)


def test_there_are_only_so_many(here: Here) -> None:
    port = here.ports.http
    with contextlib.ExitStack() as silences:
        for _ in range(3):
            silences.enter_context(here.control.silence(port, 30.0))
        with pytest.raises(ControlError, match="the maximum number of silences"):
            silences.enter_context(here.control.silence(port, 30.0))
    assert is_answered(port)


def until_answered(port: int) -> None:
    deadline = time.monotonic() + 60
    while not is_answered(port):
        assert time.monotonic() < deadline


def test_a_lease_ends_by_itself(here: Here) -> None:
    port = here.ports.http
    began = time.monotonic()
    silence = here.control.silence(port, 0.5)
    silence.__enter__()
    assert not is_answered(port, 0.2) or time.monotonic() - began > 0.5
    until_answered(port)
    with pytest.raises(ControlError, match="no silence of this name"):
        silence.__exit__(None, None, None)


def test_it_ends_with_the_session(here: Here) -> None:
    port = here.ports.http
    with here.another() as mobile:
        silence = mobile.silence(port, 30.0)
        silence.__enter__()
        assert not is_answered(port)
    until_answered(port)


def test_an_exception_of_the_measurement_ends_it_and_is_raised(here: Here) -> None:
    with pytest.raises(ZeroDivisionError), here.control.silence(here.ports.http, 30.0):
        raise ZeroDivisionError
    assert is_answered(here.ports.http)


def test_a_full_listen_queue_is_silent_where_filters_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(sock: socket.socket) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(listening, "take_nothing", refuse)
    assert "Operation not permitted" in listening.lacking()
    port = listening.listen("dead", ["127.0.0.1", "::1"], 0)
    assert is_answered(port.number)
    while True:
        with contextlib.suppress(BlockingIOError):
            port.sockets[0].accept()[0].close()
            break
    port.never_answer()
    assert not is_answered(port.number)
    assert not is_answered(port.number)
    with pytest.raises(TimeoutError):
        socket.create_connection(("::1", port.number), timeout=0.4)
    port.close()
