"""How a server is named, and found."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from prober.errors import PlanError, UnreachableError
from prober.run.server_address import reach, resolve, with_server
from tests.prober.runs_made_by_hand import plan


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("example.net", "example.net", 8443),
        ("192.0.2.1:99", "192.0.2.1", 99),
        ("2001:db8::1", "2001:db8::1", 8443),
        ("[2001:db8::1]", "2001:db8::1", 8443),
        ("[2001:db8::1]:99", "2001:db8::1", 99),
    ],
)
def test_servers_are_named_in_every_way(text: str, host: str, port: int) -> None:
    named = with_server(plan(), text, "k").server
    assert (named.host, named.control_port) == (host, port)


@pytest.mark.parametrize("text", ["a:b", "a:0", "a:70000", "[::1", "[::1]x"])
def test_servers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="server must be"):
        with_server(plan(), text, None)


def test_a_key_of_the_command_line_counts_for_more() -> None:
    mine = plan(server={"host": "a", "key": "of the plan"})
    assert with_server(mine, None, None).server.key == "of the plan"
    assert with_server(mine, None, "given").server.key == "given"


def test_names_are_resolved_once_and_invalid_names_are_reported() -> None:
    assert resolve("127.0.0.1", 0) == "127.0.0.1"
    assert resolve("::1", 0) == "::1"
    assert resolve("localhost", 0) in ("127.0.0.1", "::1")
    with pytest.raises(UnreachableError, match="has no address"):
        resolve("no-such-host.invalid", 0)
    with pytest.raises(PlanError, match="a host must be"):
        resolve("a" * 64 + ".example", 0)
    with pytest.raises(PlanError, match="no server is named"):
        resolve("", 0)


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port that answers no further SYN: its queue of connections is full (listen(2))."""
    with contextlib.ExitStack() as closing:
        listener = closing.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            link = closing.enter_context(socket.socket())
            link.setblocking(False)
            link.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_the_address_that_answers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("127.0.0.9", "127.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert reach("server.example", port) == "127.0.0.1"
        found.reverse()
        assert reach("server.example", port) == "127.0.0.1"


def test_what_was_tried_is_said_with_each_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_port() as port:
        with pytest.raises(UnreachableError, match=rf"tried: 127.0.0.1 port {port} \(no answer for 1 s\)"):
            reach("127.0.0.1", port, 0.5)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("127.0.0.9", "127.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with pytest.raises(UnreachableError, match=r"127.0.0.9 port \d+ \(Connection refused\), 127.0.0.1 port"):
            reach("server.example", port, 0.5)
