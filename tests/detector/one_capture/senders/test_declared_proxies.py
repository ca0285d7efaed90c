"""Which connections declare a proxy, and what follows for them and those beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.senders.declared_proxies import ProxyForm, declared_proxies
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupResult, Mechanism, SplitPlace, Verdict
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, results, vantage

PROXY, OTHER = "192.0.2.1", "198.51.100.1"
CONNECT, REQUEST, ABSOLUTE = ExchangeKind.PROXY_CONNECT, ExchangeKind.PROXY_REQUEST, ExchangeKind.ABSOLUTE_REQUEST
ALONE = ProxyForm.ABSOLUTE_ALONE
GREETING, SOCKS, TURN = ExchangeKind.SOCKS_GREETING, ExchangeKind.SOCKS_REQUEST, ExchangeKind.TURN
HTTP, HELLO, HEADER = ExchangeKind.HTTP_REQUEST, ExchangeKind.TLS_HELLO, ExchangeKind.PROXY_HEADER


def talk(*kinds: ExchangeKind, late_ms: float = 0.3, host: str = PROXY, port: int = 8080, **more: object) -> Talk:
    """A connection whose client asks these; all answers come so much later than the transport's round trip."""
    asked = [Asked(0, 20.0 + late_ms, 20.0, kind, Direction.UP, 1000.0 * place, strict=kind is HTTP)
             for place, kind in enumerate(kinds)]  # fmt: skip
    return replace(Talk(host=host, port=port, more=asked), **more)  # type: ignore[arg-type]


def forms(*talks: Talk) -> list[int]:
    """The forms in which connections ask for a proxy."""
    made = vantage(talks, at_client=True)
    found: list[int] = declared_proxies(made.exchanges, made.columns).form.tolist()
    return found


def client_results(*talks: Talk) -> list[GroupResult]:
    return results(talks, at_client=True)


def test_what_a_proxy_grants_declares_it() -> None:
    assert forms(talk(CONNECT, HELLO)) == [ProxyForm.CONNECT]
    assert forms(talk(GREETING, SOCKS, HTTP)) == [ProxyForm.SOCKS]
    assert forms(talk(GREETING, HELLO)) == [ProxyForm.SOCKS], "the request did not wait for the answer"
    assert forms(talk(GREETING, GREETING), talk(HTTP), talk(HELLO), talk(TURN), talk(HEADER)) == [0] * 5


def test_absolute_form_declares_where_it_is_granted_again_and_again() -> None:
    assert forms(talk(REQUEST)) == [0], "a scanner asks once"
    assert forms(talk(REQUEST), talk(REQUEST, host=OTHER)) == [0, 0], "of each server"
    assert forms(talk(REQUEST), replace(talk(REQUEST), near="10.0.0.9")) == [0, 0], "and each client"
    assert forms(talk(REQUEST), talk(REQUEST)) == [ProxyForm.ABSOLUTE_ALONE] * 2
    assert forms(talk(REQUEST, REQUEST)) == [ProxyForm.ABSOLUTE_ALONE]
    assert forms(talk(REQUEST, REQUEST), talk(HTTP)) == [0, 0], "a web server takes both forms"
    assert forms(talk(REQUEST, REQUEST), talk(HTTP, host=OTHER), talk(HTTP, port=80)) == [ALONE, 0, 0]
    assert forms(talk(ABSOLUTE, ABSOLUTE)) == [0], "servers have to accept it"
    assert forms(talk(ABSOLUTE), talk(CONNECT, HELLO), talk(HTTP)) == [ProxyForm.ABSOLUTE, ProxyForm.CONNECT, 0]
    assert forms(talk(REQUEST, CONNECT, TURN)) == [ProxyForm.CONNECT]


def test_a_tunnel_that_nothing_passes_declares_nothing() -> None:
    assert forms(talk(CONNECT)) == [0], "a server that answers CONNECT with its page"
    assert forms(talk(HTTP, CONNECT)) == [0]
    assert forms(talk(CONNECT), talk(HELLO)) == [0, 0]


def test_a_server_that_is_no_proxy_for_sure_makes_its_port_none() -> None:
    """One group has both, and what one server grants says nothing of the other."""
    tunnels = [talk(CONNECT, HELLO, late_ms=0.2) for _ in range(3)]
    doubtful = [talk(REQUEST, REQUEST, late_ms=0.2, host=OTHER) for _ in range(3)]
    (group,) = client_results(*tunnels, *doubtful)
    assert (group.verdict, group.asks_proxy) == (Verdict.INCONCLUSIVE, True)
    (group,) = client_results(*tunnels)
    assert group.verdict is Verdict.SPLIT_TCP


def test_absolute_form_of_which_nothing_is_timed_decides_nothing() -> None:
    untimed = talk(REQUEST, REQUEST)
    untimed = replace(untimed, more=[replace(each, repeated=True) for each in untimed.more])
    (group,) = client_results(untimed, untimed)
    assert (group.exchanges, group.verdict) == (0, Verdict.INCONCLUSIVE)
    assert group.asks_proxy, "which tells it from a group of the same port that asks for none"
    assert "absolute-form" in group.reason


def test_hosts_are_as_probable_as_what_is_asked_of_them() -> None:
    (group,) = client_results(*(talk(REQUEST, REQUEST, REQUEST) for _ in range(6)))
    (host,) = group.by_host
    assert host.verdict is group.verdict is Verdict.INCONCLUSIVE
    assert host.probability[Verdict.REGULAR] == pytest.approx(group.probability[Verdict.REGULAR])


def test_connections_that_began_before_the_capture_are_as_their_port() -> None:
    begun = talk(TURN, TURN, begun=True)
    assert forms(begun) == [0]
    assert forms(begun, talk(GREETING, SOCKS)) == [ProxyForm.SOCKS] * 2
    assert forms(begun, talk(CONNECT, HELLO, port=3128)) == [0, ProxyForm.CONNECT]
    assert forms(begun, talk(REQUEST, REQUEST)) == [0, ALONE], "no port that is surely a proxy's"
    assert forms(begun, talk(CONNECT, HELLO), talk(HTTP)) == [0, ProxyForm.CONNECT, 0], "a port of both"
    http = talk(HTTP, HTTP, begun=True)
    assert forms(http, talk(GREETING, SOCKS)) == [ProxyForm.SOCKS] * 2, "HTTP within the tunnel"
    assert forms(talk(TURN), talk(GREETING, SOCKS)) == [0, ProxyForm.SOCKS], "its beginning was seen"


def test_a_proxy_in_the_questions_of_servers_is_none() -> None:
    asked = [replace(each, asked=Direction.DOWN) for each in talk(CONNECT, HELLO).more]
    assert forms(replace(talk(), more=asked)) == [0]


@pytest.mark.parametrize("late_ms", [0.2, 3.0, 40.0])
@pytest.mark.parametrize("kinds", [(CONNECT, HELLO, HTTP), (GREETING, SOCKS, HELLO)])
def test_a_granted_tunnel_is_split_whatever_its_timing(kinds: tuple[ExchangeKind, ...], late_ms: float) -> None:
    (group,) = client_results(*(talk(*kinds, late_ms=late_ms) for _ in range(5)))
    assert (group.verdict, group.where, group.mechanism) == (Verdict.SPLIT_TCP, SplitPlace.PROXY, Mechanism.RELAY)
    assert group.probability[Verdict.REGULAR] < 0.01
    assert group.probability[Verdict.TCP_PROXY] < 0.05
    assert (group.hidden_round_trip_s is not None) == (late_ms == 40.0), "a leg is stated where timing shows it"
    assert {(host.verdict, host.where) for host in group.by_host} == {(Verdict.SPLIT_TCP, SplitPlace.PROXY)}
    assert group.evidence[0].finding == "proxy-asked-for"
    assert group.asks_proxy


def test_connections_of_which_no_exchange_is_timed_are_declared() -> None:
    (group,) = client_results(talk(GREETING, SOCKS, unanswered=True))
    assert (group.exchanges, group.verdict) == (0, Verdict.SPLIT_TCP)
    assert "SOCKS proxy" in group.reason


@pytest.mark.parametrize("late_ms", [0.2, 40.0])
def test_absolute_form_is_weighed_with_the_timing(late_ms: float) -> None:
    (group,) = client_results(*(talk(REQUEST, REQUEST, REQUEST, late_ms=late_ms) for _ in range(6)))
    if late_ms < 1:
        assert (group.verdict, group.where) == (Verdict.INCONCLUSIVE, None)
        assert group.evidence[0].finding == "asked-as-proxy"
    else:
        assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, SplitPlace.PROXY)
        assert group.mechanism is Mechanism.UNDECIDED, "it may answer from its cache"
        assert group.evidence[0].caveats
    assert group.asks_proxy


def test_a_mixed_port_is_judged_by_what_connections_ask() -> None:
    alone = client_results(*(talk(HTTP, HTTP, HTTP) for _ in range(6)))
    plain, declared = client_results(
        *(talk(HTTP, HTTP, HTTP) for _ in range(6)), *(talk(CONNECT, HELLO, late_ms=40.0) for _ in range(4))
    )
    assert (len(plain.pairs), len(declared.pairs)) == (6, 4)
    assert (plain.network, plain.port) == (declared.network, declared.port)
    assert (plain.asks_proxy, declared.asks_proxy) == (False, True)
    assert (plain.verdict, plain.reason) == (Verdict.REGULAR, alone[0].reason)
    assert "6 other connections to this port get none" in declared.reason


def test_a_proxy_changes_nothing_on_other_ports() -> None:
    others = [talk(HTTP, HTTP, late_ms=8.0, port=80) for _ in range(3)]
    (alone,) = client_results(*others)
    beside = client_results(*others, *(talk(CONNECT, HELLO, late_ms=40.0, port=3128) for _ in range(8)))
    assert next(group for group in beside if group.port == 80).probability == alone.probability


def test_at_the_servers_side_timing_decides_and_the_proxy_is_named() -> None:
    made = vantage([talk(CONNECT, HELLO)] * 2, at_client=False)
    assert declared_proxies(made.exchanges, made.columns).asks.all()
    (group,) = results([Talk(excess_ms=[(HELLO, 0.2), (TURN, 0.3)], more=talk(CONNECT).more)] * 6, at_client=False)
    assert not group.verdict.is_split
    assert not group.asks_proxy


@given(st.lists(st.tuples(st.sampled_from(ExchangeKind), st.integers(0, 3), st.booleans()), max_size=12))
def test_no_connection_declares_what_no_exchange_asks(asked: list[tuple[ExchangeKind, int, bool]]) -> None:
    talks = [talk(kind, host=(PROXY, OTHER)[place % 2], port=80 + place // 2, begun=begun)
             for kind, place, begun in asked]  # fmt: skip
    made = vantage(talks, at_client=True) if talks else None
    if made is None:
        return
    found = declared_proxies(made.exchanges, made.columns)
    granted = {SOCKS}
    servers = {(each.host, each.port) for each, (kind, *_) in zip(talks, asked, strict=True) if kind in granted}
    for each, form, (kind, _, begun) in zip(talks, found.form.tolist(), asked, strict=True):
        if kind in granted:
            assert form == ProxyForm.SOCKS
        elif form and not begun:
            assert kind in (REQUEST, ABSOLUTE)
        elif form:
            assert (each.host, each.port) in servers or kind in (REQUEST, ABSOLUTE)
    assert np.array_equal(found.is_of_proxy, [kind is HEADER for kind, *_ in asked])
