"""What other ports of a network may say of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.other_ports import Shares, with_other_ports

SPLIT_PRIOR, LATE_PRIOR = 0.2, 0.05
Share = tuple[float, float, float]
PRIORS = (SPLIT_PRIOR, LATE_PRIOR, 1 - SPLIT_PRIOR - LATE_PRIOR)
GROUPS = st.lists(
    st.tuples(*[st.floats(0.001, 1)] * 3, st.integers(0, 2)), min_size=1, max_size=6
)  # of each group three weights and its network


def moved(
    shares: Sequence[Share], network: list[int], legs: Sequence[int] = (), silent: Sequence[int] = ()
) -> np.ndarray:
    """Rows of split, late and rest, by group; `legs` has the leg of each, of four, where it is sure."""
    leg_nats = np.zeros((len(shares), 4))
    for place, leg in enumerate(legs):
        leg_nats[place] = np.where(np.arange(4) == leg, 0.0, -50.0)
    answered = np.asarray([place not in silent for place in range(len(shares))])
    split, late, rest = np.asarray(shares).T
    found = with_other_ports(
        Shares(split, late, rest, leg_nats, answered), np.asarray(network), SPLIT_PRIOR, LATE_PRIOR
    )
    return np.stack([found.split, found.late, found.rest], axis=1)


def normal(weights: tuple[float, float, float]) -> Share:
    split, late, rest = (weight / sum(weights) for weight in weights)
    return split, late, rest


@given(GROUPS)
def test_shares_sum_to_one_and_networks_say_nothing_of_each_other(drawn: list[tuple[float, float, float, int]]) -> None:
    shares, network = [normal(each[:3]) for each in drawn], [each[3] for each in drawn]
    found = moved(shares, network)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(drawn)))
    for number in set(network):
        own = [place for place, of in enumerate(network) if of == number]
        assert found[own] == pytest.approx(moved([shares[place] for place in own], [0] * len(own)))


@given(GROUPS.filter(lambda drawn: len(drawn) == 1))
def test_one_port_stays_as_it_is(drawn: list[tuple[float, float, float, int]]) -> None:
    share = normal(drawn[0][:3])
    assert moved([share], [0])[0] == pytest.approx(share, abs=1e-9)


@given(st.tuples(*[st.floats(0.01, 1)] * 3), st.integers(1, 5))
def test_ports_that_show_nothing_change_nothing(weights: tuple[float, float, float], others: int) -> None:
    share = normal(weights)
    assert moved([share, *[PRIORS] * others], [0] * (1 + others))[0] == pytest.approx(share, abs=1e-9)


def test_ports_without_an_answer_say_nothing() -> None:
    own, other = (0.5, 0.3, 0.2), (0.9, 0.05, 0.05)
    assert moved([own, other], [0, 0], silent=(1,))[0] == pytest.approx(own)
    assert moved([own, other], [0, 0])[0] != pytest.approx(own)


def test_split_ports_speak_for_a_split_and_ports_in_time_against_it() -> None:
    own = (0.8, 0.1, 0.1)
    beside_split, alone = moved([own, (0.98, 0.01, 0.01)], [0, 0])[0], moved([own], [0])[0]
    beside_whole = moved([own, (0.001, 0.001, 0.998)], [0, 0])[0]
    assert beside_split[0] > alone[0] > beside_whole[0]


def test_late_ports_speak_for_clients_that_are_always_late() -> None:
    own, late = (0.5, 0.4, 0.1), (0.05, 0.94, 0.01)
    assert moved([own, late], [0, 0])[0][1] > moved([own, PRIORS], [0, 0])[0][1]


def test_a_split_of_all_ports_has_one_leg() -> None:
    own, split = (0.8, 0.1, 0.1), (0.98, 0.01, 0.01)
    one_leg, two_legs = moved([own, split], [0, 0], legs=(1, 1)), moved([own, split], [0, 0], legs=(1, 2))
    assert one_leg[0] == pytest.approx(moved([own, split], [0, 0])[0])
    assert two_legs[0][0] < own[0] < one_leg[0][0]


def test_however_many_ports_say_little_more_than_one_nat() -> None:
    own = (0.5, 0.3, 0.2)
    found = moved([own, *[(1 - 2e-9, 1e-9, 1e-9)] * 30], [0] * 31)[0]
    odds = np.log(found[0] / (1 - found[0])) - np.log(own[0] / (1 - own[0]))
    assert 0 < odds < 1.5
