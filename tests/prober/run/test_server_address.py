"""How a server is named, and found."""

from __future__ import annotations

import pytest

from prober.errors import PlanError, UnreachableError
from prober.run.server_address import resolve, with_server
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
