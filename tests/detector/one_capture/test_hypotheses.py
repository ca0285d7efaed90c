"""What the posteriors of groups and connections must be, whatever the numbers in the tables are."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from detector.one_capture.hypotheses import group_exchanges, side_evidence
from detector.one_capture.hypotheses import member_nats as of_members
from detector.one_capture.hypotheses.cached_answers import answer_at_once_and_late
from detector.one_capture.hypotheses.member_nats import member_nats
from detector.one_capture.hypotheses.natures import Paths
from detector.one_capture.hypotheses.posteriors import Posterior, posterior
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import sum_nats
from detector.one_capture.hypotheses.transport_nats import TransportNats
from detector.one_capture.likelihoods.exchange_nats import BinnedExchanges
from detector.one_capture.likelihoods.legs import leg_estimates
from detector.one_capture.likelihoods.priors import PRIORS, Priors
from detector.one_capture.likelihoods.references.reference_nats import ReferenceNats
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, excess_bin, timing_tables
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.likelihoods.test_exchange_timing import judged as timed
from tests.detector.one_capture.made_exchanges import Asked, Trips
from tests.detector.one_capture.made_vantages import Talk, judged

KINDS = st.sampled_from(
    [ExchangeKind.TLS_HELLO, ExchangeKind.TLS_FINISHED, ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND]
)
HOSTS = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
APART = ("192.0.2.1", "198.51.100.1", "203.0.113.1")  # of one prefix they may stand behind one front
EXCESS_MS = st.one_of(st.floats(-2, 3), st.floats(3, 1500))
TALKS = st.builds(
    Talk,
    st.sampled_from(HOSTS),
    st.lists(st.tuples(KINDS, EXCESS_MS), max_size=4),
    st.floats(1, 200),
    st.none() | st.floats(1, 200),
    st.none() | st.floats(1, 400),
    port=st.sampled_from([80, 443]),
)
SIDES = st.booleans()
NAMES = ("split", "end", "late", "fleet", "handshakes_answered", "holding", "site")
PINGS = st.lists(st.tuples(st.sampled_from(HOSTS), st.floats(1, 500)), max_size=3)


def total(found: Posterior) -> np.ndarray:
    every = np.asarray([getattr(found, name) for name in NAMES], np.float64)
    summed: np.ndarray = np.add.reduce(every)
    return summed


def of_connections(found: SidePosteriors, name: str) -> np.ndarray:
    posteriors: np.ndarray = getattr(found.alone, name)[found.connection_kind]
    return posteriors


@settings(max_examples=60)
@given(st.lists(TALKS, min_size=1, max_size=6), SIDES, PINGS)
def test_posteriors_are_probabilities(talks: list[Talk], at_client: bool, pings: list[tuple[str, float]]) -> None:
    found = judged(talks, at_client=at_client, pings=pings)
    for each in (found.groups, found.alone):
        np.testing.assert_allclose(total(each), 1.0, atol=1e-9)
        for name in (*NAMES, "member_site", "member_wired_site"):
            assert np.all((getattr(each, name) >= 0) & (getattr(each, name) <= 1 + 1e-12)), name
        np.testing.assert_allclose(np.exp(each.leg_nats).sum(axis=1), 1.0, atol=1e-9)
    assert len(found.connection_kind) == len(talks)
    assert len(found.groups.split) == len({talk.port for talk in talks})


@settings(max_examples=40)
@given(st.lists(TALKS, min_size=1, max_size=6), SIDES, PINGS, st.randoms())
def test_order_does_not_matter(talks: list[Talk], at_client: bool, pings, random) -> None:
    order = list(range(len(talks)))
    random.shuffle(order)
    backwards = [replace(talk, excess_ms=talk.excess_ms[::-1]) for talk in talks]
    one = judged(talks, at_client=at_client, pings=pings)
    other = judged([backwards[number] for number in order], at_client=at_client, pings=pings[::-1])
    for name in (*NAMES, "member_site", "member_wired_site", "leg_nats"):
        np.testing.assert_allclose(getattr(other.groups, name), getattr(one.groups, name), rtol=1e-6, atol=1e-12)
        mine, its = of_connections(one, name)[order], of_connections(other, name)
        np.testing.assert_allclose(its, mine, rtol=1e-6, atol=1e-12)


@settings(max_examples=40)
@given(st.lists(TALKS, min_size=1, max_size=5), st.lists(TALKS, min_size=1, max_size=5), SIDES)
def test_groups_know_nothing_of_each_other(talks: list[Talk], others: list[Talk], at_client: bool) -> None:
    """But for ports of one network of clients."""
    talks, others = ([replace(talk, port=port) for talk in of] for of, port in ((talks, 80), (others, 8080)))
    if at_client:
        others = [replace(talk, near="100.64.0.1") for talk in others]
    else:
        others = [replace(talk, host=f"100.64.0.{1 + HOSTS.index(talk.host)}") for talk in others]
    alone, beside = judged(talks, at_client=at_client), judged(others + talks, at_client=at_client)
    (place,) = np.flatnonzero(beside.places.port == 80)
    for name in NAMES:
        assert getattr(beside.groups, name)[place] == pytest.approx(getattr(alone.groups, name)[0], rel=1e-6, abs=1e-12)


@settings(max_examples=60)
@given(TALKS, SIDES, PINGS)
def test_a_group_of_one_connection_is_judged_as_that_connection(talk: Talk, at_client: bool, pings) -> None:
    """Where the variation of its round trips is not known: a server's group weighs it besides, and whether its clients
    look at regular times. So does a group of clients a cache, where some answers are late and others not."""
    found = judged([replace(talk, round_trips=2)], at_client=at_client, pings=pings)
    assume(at_client or of_connections(found, "split")[0] <= 0.5)
    assume(not (at_client and answer_at_once_and_late(found.timing, found.timing.member, np.zeros(1)).any()))
    for name in (*NAMES, "member_site", "member_wired_site", "leg_nats"):
        group, connection = getattr(found.groups, name), of_connections(found, name)
        np.testing.assert_allclose(connection, group, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("at_client", [True, False])
@pytest.mark.parametrize("kind", [ExchangeKind.TLS_HELLO, ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND])
def test_many_late_answers_are_a_split_or_late_and_never_prompt(at_client: bool, kind: ExchangeKind) -> None:
    talks = [Talk(host, [(kind, 80.0)]) for host in HOSTS * 6]
    assert judged(talks, at_client=at_client).groups.end[0] < 0.05


@pytest.mark.parametrize("at_client", [True, False])
@pytest.mark.parametrize("kind", [ExchangeKind.TLS_HELLO, ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND])
def test_many_answers_at_transport_speed_are_no_split(at_client: bool, kind: ExchangeKind) -> None:
    talks = [Talk(host, [(kind, 0.3)], 10.0 + 30 * number) for number, host in enumerate(HOSTS * 3)]
    assert judged(talks, at_client=at_client).groups.split[0] < 0.05


def test_a_server_with_a_short_leg_stands_beside_others_with_longer_ones_and_not_alone() -> None:
    """Servers that are 8 ms late are busy, unless others behind the same near end are late by legs of their own."""
    kinds = (ExchangeKind.TLS_FINISHED, ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND)

    def split(legs_ms: tuple[float, ...]) -> float:
        talks = [
            Talk(host, [(kind, leg_ms + 0.3 * number) for kind in kinds])
            for host, leg_ms in zip(APART, legs_ms, strict=True)
            for number in range(6)
        ]
        return float(judged(talks, at_client=True).groups.split[0])

    assert split((8.0, 35.0, 70.0)) > 0.98
    assert split((8.0, 8.0, 8.0)) < 0.5


#: A host is prompt, or behind a split.
PROMPT = Priors(
    split=0.2, fleet=0.0, busy=0.0, handshakes_answered=0.0, late=0.0, late_application=0.0, balancer=0.0,
    front_end=0.0, too_short=(0.0,), shortest_s=0.0, all_ports=0.7, elsewhere=0.03, common_leg=0.0,
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(TALKS, min_size=1, max_size=5), SIDES, KINDS, st.floats(-0.5, 0.5))
def test_an_answer_at_transport_speed_never_raises_a_split(talks, at_client: bool, kind, beyond_ms) -> None:
    """Of one host, against hosts that are prompt, where no split ends TLS: such a split answers in time itself. What an
    answer says of its path's nature makes the others a little more or less probable."""
    host = HOSTS[0]
    talks = [replace(talk, host=host, port=80, round_trip_ms=20.0, handshake_ms=None, middle_ms=None) for talk in talks]
    nothing = Talk(host)  # its round trips are there before and after: only the exchange is new
    answered = replace(nothing, excess_ms=[(kind, beyond_ms)])
    priors = {side: structs.replace(PROMPT, too_short=own.too_short) for side, own in PRIORS.items()}
    never = (patch.object(module, "ENDS_TLS", 0.0) for module in (group_exchanges, of_members))
    with patch.dict(PRIORS, priors), next(never), next(never):
        before, after = (judged([*talks, more], at_client=at_client).groups for more in (nothing, answered))
    assert after.split[0] * before.end[0] <= 1.1 * before.split[0] * after.end[0] + 1e-9


#: A member is prompt, or late in everything; a group may be a fleet.
PROMPT_OR_LATE = Priors(
    split=0.2, fleet=0.05, busy=0.0, handshakes_answered=0.0, late=0.05, late_application=0.0, balancer=0.0,
    front_end=0.0, too_short=(0.0,), shortest_s=0.0, all_ports=0.7, elsewhere=0.03, common_leg=0.5,
)  # fmt: skip


@pytest.mark.parametrize("at_client", [True, False])
@given(KINDS, st.floats(0.06, 0.6), st.integers(2, 8), st.integers(1, 3))
def test_the_same_late_answer_again_never_speaks_for_promptness(
    at_client: bool, kind: ExchangeKind, excess_s: float, times: int, members: int
) -> None:
    found = [_of_equal_answers(kind, excess_s, number, members, at_client=at_client) for number in (times, times + 1)]
    assert found[1].end[0] <= found[0].end[0] + 1e-6
    assert found[1].end[0] < PROMPT_OR_LATE.split


def _of_equal_answers(kind: ExchangeKind, excess_s: float, times: int, members: int, *, at_client: bool) -> Posterior:
    """A group whose members answer so many times alike, each time in a connection of its own, and nothing else."""
    asked = [Asked(connection, 20.0 + 1e3 * excess_s, 20.0, kind) for connection in range(times * members)]
    timing, _ = timed(asked, [Trips(20.0)] * len(asked), [], [n % members for n in range(len(asked))], at_client=True)
    side = GroupSide.CLIENT if at_client else GroupSide.SERVER
    none, bins = np.zeros(len(asked), np.int64), excess_bin(timing.excess_s)
    tables = timing_tables(side)
    nats = BinnedExchanges(timing.member, timing.kind, none, bins, timing.weight, members).once().nats(tables)
    nothing = np.zeros(1)
    silent = ReferenceNats(unknown := np.zeros((members, 1 + len(HIDDEN_S))), np.full(members, np.nan))
    transport = TransportNats(*(nothing for _ in TransportNats.__struct_fields__))
    paths = Paths(*(
        np.repeat(rows[:1], members, axis=0) for rows in (tables.nature_nats, tables.end_nature_nats, tables.shift_nats)
    ))  # fmt: skip
    together = BinnedExchanges(none, timing.kind, none, bins, timing.weight, 1).once().nats(tables)
    every = member_nats(nats, np.ones(members, np.bool_), PROMPT_OR_LATE, paths)
    alike = member_nats(together, np.ones(1, np.bool_), PROMPT_OR_LATE, paths.of(np.zeros(1, np.int64)))
    groups = Groups(every, alike, silent, np.zeros(members, np.int64), 1, PROMPT_OR_LATE)
    waiting = WaitingNats(np.zeros(members, np.bool_), unknown[:, 1:])
    return posterior(groups, transport, waiting, unknown)


@pytest.mark.parametrize("priors", PRIORS.values())
def test_priors_leave_room_for_what_is_ordinary(priors: Priors) -> None:
    assert priors.split + 1e-9 < 0.5
    assert priors.fleet + priors.handshakes_answered < 0.5
    assert priors.late + priors.late_application + priors.balancer + priors.front_end < 0.5


@given(st.lists(st.lists(st.floats(-700, 50), min_size=1, max_size=5).map(tuple), min_size=1, max_size=1))
def test_sums_of_probabilities_are_taken_without_underflow(rows) -> None:
    values = np.asarray(rows) - 1e4
    assert sum_nats(values)[0] == pytest.approx(np.logaddexp.reduce(values[0]))


STEADY_MS, SPREAD_MS = (0.2, 0.5, 0.9, 0.4, 0.7), (0.0, 35.0, 12.0, 60.0, 24.0)


@pytest.mark.parametrize("at_client", [True, False])
@pytest.mark.parametrize("leg_ms", [40.0, 90.0])
def test_legs_of_any_nature_are_found_and_a_steady_one_is_located_better(at_client: bool, leg_ms: float) -> None:
    """Behind a wire answers come alike late, behind a radio link by what it varies."""
    widths = []
    for beyond in (STEADY_MS, SPREAD_MS):
        talks = [Talk(host, [(ExchangeKind.TLS_HELLO, leg_ms + more)]) for more in beyond for host in HOSTS]
        found = judged(talks, at_client=at_client).groups
        assert found.split[0] + found.late[0] + found.fleet[0] + found.site[0] > 0.95
        low_s, high_s = leg_estimates(found.leg_nats)[1:]
        widths.append(float((high_s / low_s)[0]))
    assert widths[0] < widths[1]


@given(st.lists(st.integers(0, 6000), max_size=12))
def test_members_are_weighed_some_thousands_at_a_time_and_each_group_whole(sizes: list[int]) -> None:
    group = np.repeat(np.arange(len(sizes)), sizes)
    ranges = list(side_evidence._together(group, len(sizes)))
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges)][: len(ranges)]
    assert not sizes or ranges[-1][1] == len(sizes)
    for first, last in ranges:
        assert last == first + 1 or sum(sizes[first:last]) <= side_evidence._MEMBERS_TOGETHER
