"""Near ends, references, handshakes and legs, each by itself: what they must say whatever their constants are."""

from __future__ import annotations

import json
from functools import cache
from pkgutil import get_data
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.hypotheses.sums import by_common_habit
from detector.one_capture.likelihoods.answered_handshakes import Acknowledged, HandshakeNats, handshake_nats
from detector.one_capture.likelihoods.exchange_nats import connection_weights
from detector.one_capture.likelihoods.legs import common_leg_nats, leg_estimates
from detector.one_capture.likelihoods.timing_tables import (
    CLIENT_CLOSE,
    HIDDEN_S,
    LATE_SHARES,
    OPENING,
    Floats,
    TimingTables,
    timing_tables,
)
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged, of_library_and_program

HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1")
SIDES = [GroupSide.CLIENT, GroupSide.SERVER]


def silent(*round_trips_ms: float) -> list[Talk]:
    """A connection a host, whose applications say nothing."""
    return [Talk(host, round_trip_ms=time) for host, time in zip(HOSTS, round_trips_ms, strict=False)]


def test_one_near_end_for_all_hosts_speaks_for_a_box_and_own_ends_against_it() -> None:
    one, own = judged(silent(20.0, 20.1, 20.05, 20.1), at_client=True), judged(silent(12, 40, 90, 160), at_client=True)
    assert one.near_nats[0] > 0 > own.near_nats[0]
    assert judged(silent(20.0), at_client=True).near_nats[0] == pytest.approx(0, abs=1e-12)


@given(st.lists(st.floats(1, 300), min_size=1, max_size=4), st.randoms())
def test_near_ends_do_not_depend_on_the_order_of_hosts(times: list[float], random) -> None:
    shuffled = list(times)
    random.shuffle(shuffled)
    one, other = (judged(silent(*each), at_client=True).near_nats[0] for each in (times, shuffled))
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("at_client", [True, False])
def test_a_longer_reference_raises_a_split_and_an_equal_one_lowers_it(at_client: bool) -> None:
    talk = silent(20.0)
    without, equal, longer = (
        judged(talk, at_client=at_client, pings=pings).groups.split[0]
        for pings in ([], [(HOSTS[0], 20.2)] * 8, [(HOSTS[0], 80.0)] * 8)
    )
    assert equal < without < longer


def test_least_round_trips_of_many_connections_are_one_near_end_though_the_path_varies() -> None:
    def nats(connections: int) -> float:
        talks = [
            Talk(host, (), 20.0 + place + 15.0 * (number % 4), middle_ms=45.0)
            for place, host in enumerate(HOSTS[:3])
            for number in range(connections)
        ]
        return float(judged(talks, at_client=True).near_nats[0])

    assert nats(12) > nats(1)


def test_references_tell_a_leg_on_a_path_that_varies_where_there_are_several_of_both() -> None:
    talks = [Talk(HOSTS[0], (), 60.0 + 10.0 * (number % 4), middle_ms=95.0) for number in range(12)]
    one, many = (judged(talks, at_client=True, pings=[(HOSTS[0], 100.0)] * count).groups.split[0] for count in (1, 12))
    assert many > one


@pytest.mark.parametrize("at_client", [True, False])
def test_references_to_other_hosts_say_nothing(at_client: bool) -> None:
    alone = judged(silent(20.0), at_client=at_client)
    beside = judged(silent(20.0), at_client=at_client, pings=[(HOSTS[1], 200.0)] * 5)
    assert beside.groups.split[0] == alone.groups.split[0]
    assert np.isnan(beside.reference_s).all()


@pytest.mark.parametrize("at_client", [True, False])
def test_a_reference_locates_the_leg(at_client: bool) -> None:
    found = judged(silent(20.0), at_client=at_client, pings=[(HOSTS[0], 100.0)] * 8)
    (leg_s,), (low_s,), (high_s,) = leg_estimates(found.groups.leg_nats)
    assert low_s <= leg_s <= high_s
    assert leg_s == pytest.approx(0.08, rel=0.2)


def handshakes(
    handshake_ms: float,
    plain_ms: float = np.nan,
    share: float = np.nan,
    *,
    prompt_ms: float = np.nan,
    data_ms: float = np.nan,
    lagging: float = np.nan,
    side: GroupSide = GroupSide.CLIENT,
) -> HandshakeNats:
    handshake_s, prompt_s, plain_s, data_s, variation_s, moved, lags = (
        np.asarray([value])
        for value in (handshake_ms / 1e3, prompt_ms / 1e3, plain_ms / 1e3, data_ms / 1e3, 0.001, share, lagging)
    )
    return handshake_nats(Acknowledged(handshake_s, prompt_s, plain_s, data_s), variation_s, moved, lags, side)


def answered_nats(found: HandshakeNats) -> float:
    """What signs of another sender of the handshake say for one."""
    return float((found.other_sender - found.same_sender).sum())


def behind(found: HandshakeNats) -> Floats:
    """By the path behind whatever made the handshake."""
    nats: Floats = found.behind(np.zeros(1, np.int64))[0]
    return nats


def of_one_host(found: HandshakeNats) -> float:
    """Where one host makes the handshake and acknowledges the data."""
    return float(by_common_habit(found.habit_nats, found.as_fast, np.zeros(1, np.int64), 1)[0])


def nearer_nats(found: HandshakeNats) -> float:
    """What speaks for another sender of the handshake, with any path behind it."""
    return float(np.logaddexp.reduce(behind(found)) - np.log(1 + len(HIDDEN_S)) - of_one_host(found))


def path_s(found: HandshakeNats) -> float:
    """The path behind whatever made the handshake that fits best."""
    return float(np.concatenate([[0.0], HIDDEN_S])[behind(found).argmax()])


def test_handshakes_faster_than_any_data_are_somebody_elses() -> None:
    assert nearer_nats(handshakes(10.0, 90.0)) > 0
    assert nearer_nats(handshakes(50.0, 50.1)) < 0


def test_a_delayed_acknowledgement_is_no_sign_of_it() -> None:
    assert nearer_nats(handshakes(10.0, 50.0)) < 0


def test_what_no_receiver_delays_is_a_sign_of_it_however_late() -> None:
    assert nearer_nats(handshakes(10.0, 50.0, prompt_ms=50.0)) > nearer_nats(handshakes(10.0, 90.0)) > 0
    assert nearer_nats(handshakes(10.0, 50.0, prompt_ms=10.2)) < nearer_nats(handshakes(10.0, 50.0)) < 0


def of_members(beyond_ms: list[float], varies_ms: float = 0.5, side: GroupSide = GroupSide.CLIENT) -> HandshakeNats:
    """Members whose data are acknowledged so much later than their handshakes."""
    count = len(beyond_ms)
    unknown, handshake_s = np.full(count, np.nan), np.full(count, 0.02)
    plain_s, varies_s = handshake_s + np.asarray(beyond_ms) / 1e3, np.full(count, varies_ms / 1e3)
    return handshake_nats(Acknowledged(handshake_s, unknown, plain_s, plain_s), varies_s, unknown, unknown, side)


def one_habit(beyond_ms: list[float], varies_ms: float = 0.5, side: GroupSide = GroupSide.CLIENT) -> float:
    """What they say where one sender acknowledges for all."""
    count, found = len(beyond_ms), of_members(beyond_ms, varies_ms, side)
    return float(by_common_habit(found.habit_nats, found.as_fast, np.zeros(count, np.int64), 1)[0])


@given(st.lists(st.floats(-1.0, 300.0), min_size=1, max_size=6), st.sampled_from(SIDES))
def test_clients_acknowledge_by_habits_of_their_own_and_one_server_by_any(
    beyond_ms: list[float], side: GroupSide
) -> None:
    each = [one_habit([ms], side=side) for ms in beyond_ms]
    if side is GroupSide.SERVER:
        assert one_habit(beyond_ms, side=side) == pytest.approx(sum(each))
    with_no_path = of_members(beyond_ms, side=side).behind(np.arange(len(beyond_ms)))[:, 0]
    assert each == pytest.approx(with_no_path.tolist(), abs=1e-3)


def test_a_timer_that_delays_the_data_of_every_server_is_one_split_points_habit() -> None:
    timed, slow, at_once, mixed = ([ms] * 3 for ms in (41.0, 101.0, 0.2, 20.0))
    alone = [3 * one_habit(each[:1]) for each in (timed, slow, at_once, mixed)]
    together = [one_habit(each) for each in (timed, slow, at_once, mixed)]
    assert together[0] > alone[0] + 3
    assert together[1] > alone[1] + 3
    assert together[2:] == pytest.approx(alone[2:], abs=0.5)


@given(st.floats(20.0, 60.0), st.floats(0.0, 10.0))
def test_a_timer_is_blurred_by_what_the_path_varies(beyond_ms: float, varies_ms: float) -> None:
    """A handshake that was a little slow does not end the timer's range at once."""
    near, nearer = (one_habit([ms] * 2, varies_ms) for ms in (beyond_ms, beyond_ms + 0.1))
    assert abs(near - nearer) < 0.25


@given(st.floats(6.0, 900.0), st.booleans())
def test_data_that_a_box_lets_pass_are_acknowledged_behind_its_path(behind_ms: float, is_prompt: bool) -> None:
    prompt_ms = 10.0 + behind_ms if is_prompt else np.nan
    assert path_s(handshakes(10.0, 10.0 + behind_ms, prompt_ms=prompt_ms)) == pytest.approx(behind_ms / 1e3, rel=0.1)


@given(st.floats(0.0, 900.0))
def test_acknowledgements_that_ride_on_answers_tell_only_that_no_path_is_longer(behind_ms: float) -> None:
    """A split point that only acknowledges on answers looks like a box that lets data pass."""
    found = handshakes(10.0, data_ms=10.0 + behind_ms)
    shorter = np.concatenate([[0.0], HIDDEN_S]) <= behind_ms / 1e3
    assert of_one_host(found) == pytest.approx(0)
    assert behind(found)[shorter] == pytest.approx(0.0, abs=1e-4)
    assert np.all(np.diff(behind(found)) <= 0)
    assert np.all(behind(found)[HIDDEN_S.searchsorted(behind_ms / 1e3 * 1.2 + 0.02) + 1 :] < -2)


@pytest.mark.parametrize("rides", [True, False])
def test_only_acknowledgements_of_their_own_tell_a_split_from_a_box_that_lets_data_pass(rides: bool) -> None:
    beyond_ms = (0.5, 1.0, 0.7, 1.4, 0.6, 0.9)
    talks = [
        Talk(host, of_library_and_program([leg_ms + each for each in beyond_ms]), 10.0, rides=rides)
        for host, leg_ms in zip(HOSTS, (20.0, 40.0, 70.0, 110.0), strict=True)
        for _ in range(4)
    ]
    groups = judged(talks, at_client=True).groups
    assert groups.split[0] > 0.5
    assert bool(groups.split[0] < LEAST_SPLIT[GroupSide.CLIENT]) is rides
    assert bool(groups.handshakes_answered[0] > 0.02) is rides


@pytest.mark.parametrize(("handshake_ms", "plain_ms"), [(np.nan, 20.0), (20.0, np.nan), (np.nan, np.nan)])
def test_unknown_handshakes_say_nothing(handshake_ms: float, plain_ms: float) -> None:
    found = handshakes(handshake_ms, plain_ms)
    assert [float(nats.sum()) for nats in (found.as_fast, found.same_sender, found.other_sender)] == [0] * 3
    assert of_one_host(found) == pytest.approx(0)
    assert behind(found) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("side", SIDES)
def test_another_sender_of_handshakes_shows(side: GroupSide) -> None:
    shown, hidden = handshakes(20.0, 20.0, 1.0, side=side), handshakes(20.0, 20.0, 0.0, side=side)
    assert answered_nats(shown) > 0 > answered_nats(hidden)


@pytest.mark.parametrize("moved", [0.0, 1.0, np.nan])
def test_timestamps_that_lag_behind_the_handshakes_show_another_sender(moved: float) -> None:
    lags, on_time = (answered_nats(handshakes(20.0, 20.0, moved, lagging=share)) for share in (1.0, 0.0))
    assert lags > answered_nats(handshakes(20.0, 20.0, moved)) > on_time
    assert lags - on_time > 5


@given(st.lists(st.floats(-50, 0), min_size=len(HIDDEN_S), max_size=len(HIDDEN_S)))
def test_estimates_lie_in_the_grid_and_near_their_intervals(nats: list[float]) -> None:
    (leg_s,), (low_s,), (high_s,) = leg_estimates(np.asarray([nats]))
    assert HIDDEN_S[0] * (1 - 1e-9) <= leg_s <= HIDDEN_S[-1] * (1 + 1e-9)
    assert low_s < high_s


@pytest.mark.parametrize("place", [0, 7, len(HIDDEN_S) - 1])
def test_a_certain_leg_is_the_estimate(place: int) -> None:
    nats = np.full((1, len(HIDDEN_S)), -200.0)
    nats[0, place] = 0.0
    (leg_s,), (low_s,), (high_s,) = leg_estimates(nats)
    assert leg_s == pytest.approx(HIDDEN_S[place])
    assert low_s < leg_s < high_s


def test_common_legs_are_those_of_all_members() -> None:
    nats = np.arange(6.0).reshape(3, 2)
    assert common_leg_nats(nats, np.asarray([0, 0, 1]), 2).tolist() == [[2.0, 4.0], [4.0, 5.0]]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_more_exchanges_of_a_connection_weigh_more_together_and_less_each(connections: list[int]) -> None:
    weights = connection_weights(np.asarray(connections))
    for number in set(connections):
        own = weights[np.asarray(connections) == number]
        assert np.all(own == own[0])
        assert 1 - 1e-12 <= own.sum() <= len(own) + 1e-12
        assert (own[0] < 1) == (len(own) > 1)


@pytest.mark.parametrize("side", SIDES)
def test_tables_hold_finite_densities_and_classes_for_any_variation(side: GroupSide) -> None:
    tables = timing_tables(side)
    variations = len(tables.variation_edges_s) + 2
    for kind in range(2 * OPENING):
        for variation in range(variations):
            nats = tables.nats(kind, variation)
            assert np.isfinite(nats).all()
            assert nats.shape[1] == TimingTables.HYPOTHESES
    assert LATE_SHARES.sum() == pytest.approx(1.0, abs=1e-6)
    found = tables.variation_class(np.asarray([0.0, 1e-4, 0.01, 100.0, np.nan]))
    assert np.all((found >= 0) & (found < variations))
    assert found[-1] == variations - 1


@given(st.sampled_from(SIDES), st.integers(0, CLIENT_CLOSE), st.lists(st.lists(st.integers(0, 800)), max_size=4))
def test_bins_are_the_same_whenever_they_are_asked_for(side: GroupSide, kind: int, asked: list[list[int]]) -> None:
    once = TimingTables(_content(), side)
    whole = timing_tables(side).nats(kind, 2)
    for bins in asked:
        places = np.asarray(bins, np.int64) % len(whole)
        assert (once.rows(kind, 2, places) == whole[places]).all()


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(get_data("detector.one_capture.likelihoods", "timing_tables.json") or b"{}")
    return content
