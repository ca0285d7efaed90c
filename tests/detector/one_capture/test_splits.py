"""Split points that break an assumption of the others: what they do must not clear a network."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT, LEAST_WHOLE
from detector.one_capture.hypotheses.cached_answers import answer_at_once_and_late
from detector.one_capture.hypotheses.habits.crossing_habits import HABIT_NATS, HabitLegNats, any_habit
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.likelihoods.waiting_handshakes import waiting_nats
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, HostResult, SplitPlace, Verdict
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, judged, results

HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1")
LEGS_MS = (25.0, 60.0, 110.0)
MOST_SPLIT = 1 - LEAST_WHOLE[GroupSide.CLIENT]
HELLO, FINISHED, HTTP = ExchangeKind.TLS_HELLO, ExchangeKind.TLS_FINISHED, ExchangeKind.HTTP_REQUEST
TLS = ExchangeKind.TLS_DATA


def split(talks: list[Talk], pings: list[tuple[str, float]] | None = None) -> float:
    found = judged(talks, at_client=True, pings=pings or []).groups
    return float(found.split[0] + found.site[0])


def test_handshakes_that_wait_for_the_server_and_answers_at_their_speed_are_a_split() -> None:
    """A relay that connects first: its handshakes are as long as the path, and it acknowledges data at once."""
    talks = [
        Talk(host, [(kind, leg_ms + 0.4)] * 2, 20.0, handshake_ms=20.0 + leg_ms)
        for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True)
        for kind in (HELLO, HTTP, FINISHED)
    ]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.SPLIT_TCP
    # Where acknowledgements of one host ride on answers, nothing else than the handshake times its transport.
    rides = Talk(HOSTS[0], [(HELLO, 0.3), (HTTP, 0.5)], 45.0, rides=True)
    assert split([*talks[3:], rides, rides]) > 0.5


def test_servers_near_the_split_point_tell_that_others_are() -> None:
    """How many stand beside it is a trait of the network: that four of five do is no chance of each anew, which cleared
    this network with 0.988."""
    prompt = [(HELLO, 1.0), (TLS, 0.8)] * 4
    near = [Talk(f"192.0.{number}.1", prompt, 20.0 + number / 10) for number in range(2, 6)]
    late = [(kind, leg_ms) for leg_ms in (60.3, 60.6, 61.2) for kind in (HELLO, TLS)] * 2
    far = [Talk(host, late, 20.0) for host in HOSTS[1:]]
    assert split(near) < MOST_SPLIT < split([*near, far[0]])
    assert split([*near[:3], *far]) > 0.65


def test_a_radio_link_that_is_slow_for_short_connections_is_no_leg() -> None:
    """It wakes up for handshakes, carries a long transfer in 9 ms, and what is short on a slower channel. A timer may
    have delayed the acknowledgements of this; that it did, and a leg is why answers are as late, is said by nothing."""
    long = Talk(HOSTS[0], [(HELLO, 0.3), (TLS, 0.4)] * 3, 9.0, handshake_ms=99.0, round_trips=40)
    short = [
        Talk(HOSTS[0], [(TLS, 0.3)] * 3, 98.0 + late, handshake_ms=98.4 + late, round_trips=3) for late in range(5)
    ]
    assert split([long, *short]) < 0.05


def crossing(times: Callable[[int], int], late_ms: float = 0.4) -> list[Talk]:
    """Connections of which each asks as it opens, and once more: first answers cross the leg so many `times`."""
    return [
        Talk(host, more=[
            Asked(0, 20.0 + times(number) * leg_ms + late_ms, 20.0, HTTP, first=True),
            Asked(0, 20.0 + leg_ms + late_ms, 20.0, HTTP, question_ms=1000.0),
        ])
        for host, leg_ms in zip(HOSTS[:2], LEGS_MS, strict=False)
        for number in range(6)
    ]  # fmt: skip


def test_first_answers_that_all_cross_the_leg_twice_are_one_habit() -> None:
    """One program connects for all: that only every other answer waits for it is less probable."""
    twice, mixed = (split(crossing(times)) for times in (lambda number: 2, lambda number: 1 + number % 2))
    assert twice >= LEAST_SPLIT[GroupSide.CLIENT]
    assert 1 - twice < (1 - mixed) / 2


def test_a_member_with_a_habit_of_its_own_costs_no_more_than_it_may() -> None:
    nats = np.array([[-40.0, -3.0]])
    anyhow = any_habit(np.stack([nats, nats - 30.0, nats + 2.0, nats - 9.0]))
    for common in (nats, nats - 30.0, nats + 2.0):
        found = HabitLegNats(common, common).or_else(anyhow, anyhow)
        assert np.all(found.all >= anyhow + np.log(0.19))
        assert np.all(found.all <= np.maximum(common, anyhow))
        assert np.array_equal(found.all, found.behind_tls)
    assert np.exp(HABIT_NATS).sum() == pytest.approx(1)


def test_a_balancer_that_connects_first_is_not_the_networks() -> None:
    """Before one server such a relay may stand anywhere; three servers far apart share none but the network's."""
    talks = [
        Talk(host, [(kind, leg_ms + 0.1 * number) for number in range(6)], 60.0, handshake_ms=60.0 + leg_ms)
        for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True)
        for kind in (HELLO, HTTP, FINISHED)
    ]
    (of_one,), (of_all,) = results(talks[:3], at_client=True), results(talks, at_client=True)
    assert of_one.verdict is of_all.verdict is Verdict.SPLIT_TCP
    assert of_one.where is None
    assert of_all.where is SplitPlace.NETWORK


def test_slow_pages_behind_a_balancer_that_connects_first_are_not_the_networks() -> None:
    """What answers take beyond the leg is the application's, and the same wherever the balancer stands."""
    beyond_ms = (40.0, 45.0, 60.0, 80.0, 100.0, 150.0, 200.0, 90.0, 70.0, 50.0)
    talks = [
        Talk(HOSTS[0], [(kind, ms) for kind in (HELLO, FINISHED, HTTP)], 59.0, handshake_ms=97.0) for ms in beyond_ms
    ]
    assert split(talks) >= LEAST_SPLIT[GroupSide.CLIENT]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.SPLIT_TCP
    assert group.where is None


def of_one_late_host(late_ms: list[float]) -> HostResult:
    """The last of three hosts at distances of their own; the others answer at once."""
    talks = [
        Talk(host, [(ExchangeKind.COMMAND, 0.3 + 0.1 * number) for number in range(4)], near_ms)
        for host, near_ms in zip(HOSTS[:2], (20.0, 45.0), strict=True)
        for _ in range(5)
    ]
    late = [Talk(HOSTS[2], [(ExchangeKind.TLS_DATA, ms) for ms in late_ms[start::5]], 95.0) for start in range(5)]
    (group,) = results([*talks, *late], at_client=True)
    assert group.verdict is Verdict.REGULAR
    return group.by_host[2]


def test_a_host_whose_answers_vary_as_no_wire_does_shows_no_leg_inside_its_site() -> None:
    ranks = [(number + 0.5) / 100 for number in range(100)]
    varying = of_one_late_host([100.0 * np.exp(0.6 * NormalDist().inv_cdf(rank)) for rank in ranks])
    steady = of_one_late_host([38.0 + rank for rank in ranks[::3]])
    assert 1 - varying.probability[Verdict.REGULAR] > 0.8
    assert varying.verdict is Verdict.INCONCLUSIVE
    assert steady.verdict is Verdict.SPLIT_TCP
    assert steady.where is SplitPlace.SERVER


@pytest.mark.parametrize("far_ms", [30.0, 600.0])  # hosts are as far away with such a relay as without
def test_answers_at_the_speed_of_handshakes_clear_nothing_where_all_acknowledgements_ride_on_them(
    far_ms: float,
) -> None:
    far, near = ([Talk(HOSTS[0], [(HTTP, 0.4)] * 6, ms, rides=True)] * 4 for ms in (far_ms, 8.0))
    plain = [Talk(HOSTS[0], [(HTTP, 0.4)] * 6, far_ms)] * 4
    assert split(plain) < split(far)
    assert split(plain) <= MOST_SPLIT < split(far)
    assert split(near) <= MOST_SPLIT  # no leg that shows is as short as this handshake
    (group,) = results(far, at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert "every acknowledgement rides on an answer" in group.reason


@pytest.mark.parametrize("leg_ms", [30.0, 100.0, 400.0])
def test_a_handshake_that_waits_tells_the_leg(leg_ms: float) -> None:
    later_s = np.asarray([leg_ms / 1e3, 0.0, -0.04, np.nan])
    found = waiting_nats(0.5 + later_s, np.full(4, 0.5), np.full(4, 1e-4), np.full(4, 3))
    assert found.known.tolist() == [True, True, False, False]
    assert HIDDEN_S[found.legs[0].argmax()] == pytest.approx(leg_ms / 1e3, rel=0.05)
    assert found.legs[0].max() > 2
    assert found.legs[1][HIDDEN_S > 0.02].max() < -2  # data take as long as the handshake
    np.testing.assert_array_equal(found.legs[2][HIDDEN_S < 0.45], 0.0)  # a timer acknowledged data: nothing is known
    assert found.legs[2][HIDDEN_S > 0.5].max() < -10


def test_what_wakes_up_holds_no_handshake_up_where_data_cross_no_access_network() -> None:
    """A virtual machine's NAT that connects before it answers acknowledges data within a tenth of a millisecond."""
    plain_s = np.asarray([5e-5, 5e-5, 5e-3, 5e-5])
    varies_s = np.asarray([1e-4, np.nan, 1e-4, 0.03])  # the last one's acknowledgement was another segment's
    found = waiting_nats(plain_s + 0.04, plain_s, varies_s, np.full(4, 1))
    beside, unknown, access, radio = found.legs.max(axis=1)
    assert beside > access + 1
    assert access > radio
    assert unknown > radio


def cached(leg_ms: tuple[float, ...], near_ms: tuple[float, ...]) -> list[Talk]:
    """Every second answer comes at once, the others across the leg."""
    return [
        Talk(host, [(HTTP, 0.5 if number % 2 else leg + 0.3 * (number % 5))], near)
        for host, leg, near in zip(HOSTS, leg_ms, near_ms, strict=True)
        for number in range(12)
    ]


def test_hits_of_a_cache_clear_no_network_and_own_near_ends_do() -> None:
    assert split(cached(LEGS_MS, (20.0, 20.1, 20.2))) > 0.5
    assert split(cached(LEGS_MS, (20.0, 45.0, 95.0))) <= MOST_SPLIT


@pytest.mark.parametrize(("varies_ms", "are_apart"), [(np.nan, True), (0.5, True), (10.0, True), (30.0, False)])
def test_answers_that_vary_as_the_path_does_are_no_hits_and_misses(varies_ms: float, *, are_apart: bool) -> None:
    """Grants of a satellite let answers of all hosts wait, and their acknowledgements."""
    found = judged([Talk(HOSTS[0], [(HTTP, ms) for ms in range(0, 70, 5)], 580.0)], at_client=True)
    apart = answer_at_once_and_late(found.timing, found.timing.member, np.asarray([varies_ms / 1e3]))
    assert apart.tolist() == [are_apart]


def test_tls_ends_at_one_split_point_for_all_hosts() -> None:
    """Handshakes that the split point answers itself say nothing against the leg that applications' answers cross."""
    talks = [
        Talk(host, [(HELLO, 1.0), (FINISHED, 0.8), (ExchangeKind.TLS_DATA, leg_ms + 0.5)], 20.0)
        for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True)
        for _ in range(4)
    ]
    assert split(talks) > MOST_SPLIT


def test_that_all_hosts_are_late_in_ways_of_their_own_clears_nothing() -> None:
    late_ms = [30, 75, 48, 110, 66, 91, 37, 58, 102, 84]
    talks = [
        Talk(host, [(kind, ms * (1 + place / 4))], 20.0)
        for place, host in enumerate(HOSTS)
        for kind in (HELLO, HTTP)
        for ms in late_ms
    ]
    assert split(talks) > MOST_SPLIT
    assert split(talks, [(host, 20.1) for host in HOSTS] * 5) <= MOST_SPLIT  # references find no leg


def test_one_host_that_is_slow_in_all_it_says_proves_no_leg_by_the_shape_of_its_answers() -> None:
    """Shapes of hosts' delays are assumed: a loaded server beside one that answers at once accuses no network."""
    late_ms = (
        (138.2, 64.0, 95.2), (56.0, 198.0, 74.9), (46.3, 143.7, 80.9), (68.7, 83.9, 51.5), (241.3, 62.9, 91.4),
        (139.1, 312.1, 61.5), (35.2, 76.5, 92.5), (57.6, 142.7, 56.7), (130.1, 37.9, 100.7), (186.2, 151.5, 61.8),
    )  # fmt: skip
    loaded = [
        Talk(
            HOSTS[0], [(FINISHED, finished), (TLS, data)], 75.4, more=[Asked(0, 75.4 + hello, 75.4, HELLO, first=True)]
        )
        for hello, finished, data in late_ms
    ]
    prompt = [Talk(HOSTS[1], [(HELLO, 1.6), (FINISHED, 2.3), (TLS, 4.0)], 75.6)] * 7
    assert split([*loaded, *prompt]) < LEAST_SPLIT[GroupSide.CLIENT]
