"""From posteriors to verdicts, for groups, their hosts and their connections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.classes import Explanation, classes
from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.judging import probability_of, verdict_of
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, results

PARTS = ("split", "end", "late", "fleet", "handshakes_answered", "site", "holding")
SHARES = st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda drawn: sum(drawn) > 0.1)


def explained(
    shares: list[float],
    exchanges: int = 5,
    least: float = 0.95,
    side: GroupSide = GroupSide.SERVER,
    *,
    timed: bool = True,
    one_host: bool = False,
    one_server: bool = False,
) -> Explanation:
    every = [*shares, *[0.0] * (len(PARTS) - len(shares))]
    parts = dict(zip(PARTS, (np.asarray([share / sum(shares)]) for share in every), strict=True))
    found = classes(
        Posterior(**parts, leg_nats=np.zeros((1, 80)), member_site=np.zeros(1), member_wired_site=np.zeros(1)),
        np.asarray([exchanges]), side=side, least_probability=least,
        handshakes_timed=timed, one_host=one_host, one_server=one_server,
    )  # fmt: skip
    return Explanation(int(found.explanation[0]))


@given(SHARES, st.floats(0.5, 1))
def test_a_verdict_has_at_least_the_probability_that_is_asked_for(shares: list[float], least: float) -> None:
    split = (shares[0] + shares[5]) / sum(shares)
    verdict = verdict_of(explained(shares, least=least))
    if verdict.is_split:
        assert split >= least - 1e-9
    elif verdict is Verdict.REGULAR:
        assert split <= 1 - least + 1e-9


def test_a_box_that_holds_its_acknowledgements_back_is_a_split_where_something_tells_it_from_a_syn_proxy() -> None:
    shares = [0.97, 0.01, 0, 0, 0, 0, 0.02]
    assert explained(shares, side=GroupSide.CLIENT) is Explanation.NETWORK
    assert explained(shares, side=GroupSide.SERVER) is Explanation.UNDECIDED


@given(SHARES)
def test_without_an_exchange_nothing_is_decided(shares: list[float]) -> None:
    assert explained(shares, exchanges=0) is Explanation.UNDECIDED


@pytest.mark.parametrize(
    ("shares", "wanted"),
    [
        ([0.985, 0.01, 0, 0, 0, 0.005], Explanation.NETWORK),
        ([0.005, 0.01, 0, 0, 0, 0.985], Explanation.SITE),
        ([0.5, 0.01, 0, 0, 0, 0.49], Explanation.NETWORK_OR_SITE),
        ([0.01, 0.98, 0, 0, 0.01, 0], Explanation.END_TO_END),
        ([0.01, 0.2, 0, 0, 0.79, 0], Explanation.HANDSHAKES_ANSWERED),
        ([0.5, 0.0, 0.5, 0, 0, 0], Explanation.LATE_OR_SPLIT),
        ([0.5, 0.0, 0.0, 0.5, 0, 0], Explanation.LATE_OR_SPLIT),
    ],
)
def test_what_is_most_probable_explains(shares: list[float], wanted: Explanation) -> None:
    assert explained(shares) is wanted


@pytest.mark.parametrize(
    ("side", "one_server", "least"),
    [(GroupSide.SERVER, False, 0.983), (GroupSide.CLIENT, False, 0.975), (GroupSide.CLIENT, True, 0.985)],
)
def test_a_split_needs_more_of_one_server_alone(side: GroupSide, one_server: bool, least: float) -> None:
    above, below = (
        explained([split, 1 - split, 0, 0, 0, 0], side=side, one_server=one_server)
        for split in (least + 1e-6, least - 1e-6)
    )
    assert (above, below) == (Explanation.NETWORK, Explanation.UNDECIDED)


def test_handshakes_that_nothing_timed_are_not_said_to_be_answered() -> None:
    assert explained([0.01, 0.2, 0, 0, 0.79, 0], timed=False) is Explanation.UNDECIDED
    assert explained([0.01, 0.98, 0, 0, 0.01, 0], timed=False) is Explanation.END_TO_END


@pytest.mark.parametrize(
    ("split", "site", "wanted"),
    [
        (0.005, 0.04, Explanation.END_TO_END),
        (0.03, 0.01, Explanation.UNDECIDED),
        (0.005, 0.05, Explanation.UNDECIDED),
        (0.015, 0.02, Explanation.UNDECIDED),
    ],
)
def test_a_connection_has_no_leg_inside_the_site_where_its_host_has_none_and_none_doubts_its_network(
    split: float, site: float, wanted: Explanation
) -> None:
    shares = [split, 1 - split - site, 0, 0, 0, site]
    assert explained(shares, side=GroupSide.CLIENT, one_host=True) is wanted
    assert explained(shares, side=GroupSide.CLIENT) is Explanation.UNDECIDED


@given(st.floats(0, 1), st.booleans())
def test_probabilities_sum_to_one(split: float, dialogues: bool) -> None:
    found = probability_of(split, dialogues=dialogues)
    assert sum(found.values()) == pytest.approx(1)
    assert found[Verdict.REGULAR] == pytest.approx(1 - split)


KIND = ExchangeKind.COMMAND
HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1")


def test_a_group_counts_its_hosts_connections_and_exchanges() -> None:
    talks = [Talk(host, [(KIND, 0.2)] * 2, 20.0 * place) for place, host in enumerate(HOSTS, start=1)] * 2
    (group,) = results(talks, at_client=True)
    assert group.hosts == tuple(sorted(HOSTS))
    assert group.pairs == tuple(range(6))
    assert group.exchanges == 12
    assert [(host.connections, host.exchanges) for host in group.by_host] == [(2, 4)] * 3
    assert {host.host for host in group.by_host} == set(HOSTS)


@pytest.mark.parametrize("at_client", [True, False])
def test_hosts_of_a_group_carry_its_verdict(at_client: bool) -> None:
    talks = [Talk(host, [(KIND, 0.2)] * 4, 20.0) for host in HOSTS] * 3
    for group in results(talks, at_client=at_client):
        assert group.verdict is Verdict.REGULAR
        assert group.hidden_round_trip_s is None
        assert {host.verdict for host in group.by_host} == {Verdict.REGULAR}


@pytest.mark.parametrize("at_client", [True, False])
def test_a_leg_that_references_confirm_is_a_split_of_that_length(at_client: bool) -> None:
    talks = [Talk(host, [(ExchangeKind.TLS_HELLO, 60.0), (ExchangeKind.COMMAND, 60.5)], 20.0) for host in HOSTS] * 4
    pings = [(host, 80.0) for host in HOSTS] * 8
    for group in results(talks, at_client=at_client, pings=pings):
        assert group.verdict is Verdict.SPLIT_TCP
        assert group.hidden_round_trip_s == pytest.approx(0.06, rel=0.2)
        assert group.near_round_trip_s == pytest.approx(0.02)
        assert all(host.reference_round_trip_s == pytest.approx(0.08) for host in group.by_host)
