"""What other ports of a network say of a split of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.one_ended_simulated.__main__ import make_network
from detector.detection import detect
from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.hypotheses.alike_ports import (
    SharedLeg,
    by_distance,
    networks_of,
    open_networks,
    with_alike_ports,
)
from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.likelihoods.other_ports import Shares, with_other_ports
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.networks import NetworkTable, places
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, vantage

PRIOR = PRIORS[GroupSide.CLIENT].split
SHARES = ("split", "end", "late", "fleet", "handshakes_answered", "holding", "site")
PROBABILITY = st.floats(0.001, 0.999)
GROUPS = st.lists(st.tuples(PROBABILITY, st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


def posterior(split: Sequence[float]) -> Posterior:
    """Groups that are split with these probabilities, and else late or end to end."""
    of_split = np.asarray(split)
    parts = {name: np.zeros(len(of_split)) for name in SHARES}
    parts |= {"split": of_split, "late": (1 - of_split) / 4, "end": (1 - of_split) * 3 / 4}
    none = np.zeros(len(of_split))
    return Posterior(**parts, leg_nats=np.zeros((len(of_split), 4)), member_site=none, member_wired_site=none)


def given_all(
    found: Posterior,
    network: Sequence[int],
    together: Sequence[float],
    answered: Sequence[bool],
    one_host: bool = False,
    side: GroupSide = GroupSide.CLIENT,
    speaks_web: bool = False,
) -> Posterior:
    """The same groups given what all ports together are said to be."""
    alone, web = (np.full(len(network), each) for each in (one_host, speaks_web))
    own = SharedLeg.of(found, alone, web, PRIORS[side])
    of_all = SharedLeg(np.asarray(together), np.full(len(together), own.before[0]))
    return with_alike_ports(found, np.asarray(answered), np.asarray(network), own, of_all.nats, alone, side)


def moved(
    split: Sequence[float],
    network: Sequence[int],
    together: Sequence[float],
    answered: Sequence[bool] = (),
    side: GroupSide = GroupSide.CLIENT,
) -> np.ndarray:
    return given_all(posterior(split), network, together, answered or [True] * len(split), side=side).split


def total(found: Posterior) -> np.ndarray:
    return np.asarray(np.sum([getattr(found, name) for name in SHARES], axis=0))


def odds(split: np.ndarray) -> np.ndarray:
    return np.asarray(split / (1 - split))


@pytest.mark.parametrize(("side", "all_split"), [(GroupSide.CLIENT, 0.7), (GroupSide.SERVER, 0.85)])
@given(GROUPS, st.tuples(PROBABILITY, PROBABILITY, PROBABILITY))
def test_other_ports_move_by_what_a_split_of_all_ports_is_likelier_and_lower_none_at_the_client(
    side: GroupSide, all_split: float, drawn, together
) -> None:
    split, network, answered = (list(each) for each in zip(*drawn, strict=True))
    given_ = posterior(split)
    found = given_all(given_, network, together, answered, side=side)
    most = all_split / (1 - all_split) * (1 - PRIOR) / PRIOR
    least = 1.0 if side is GroupSide.CLIENT else (1 - all_split) * (1 - PRIOR) / (1 - PRIOR * (1 - all_split))
    ratio = odds(found.split) / odds(given_.split)
    assert ((ratio <= most * 1.001) & (ratio >= least * 0.999)).all()
    assert total(found) == pytest.approx(np.ones(len(split)))
    assert set(Posterior.__struct_fields__) == {*SHARES, "leg_nats", "member_site", "member_wired_site"}
    for number in set(network):
        own = [place for place, of in enumerate(network) if of == number]
        alone = moved(
            [split[place] for place in own],
            [0] * len(own),
            [together[number]],
            [answered[place] for place in own],
            side,
        )
        assert found.split[own] == pytest.approx(alone)


@pytest.mark.parametrize("side", [GroupSide.CLIENT, GroupSide.SERVER])
@given(split=PROBABILITY, together=PROBABILITY)
def test_a_port_alone_stays_as_it_is(side: GroupSide, split: float, together: float) -> None:
    assert moved([split], [0], [together], side=side)[0] == split
    assert moved([split, 0.99], [0, 1], [together, together], side=side)[0] == split
    assert moved([split, 0.99], [0, 0], [together], [True, False], side=side)[0] == split


@given(PROBABILITY, PROBABILITY)
def test_what_is_no_surer_for_all_ports_together_raises_none(split: float, other: float) -> None:
    """One slow host makes all its ports look split, each as much as all together."""
    assert moved([split, other], [0, 0], [min(split, other)]) == pytest.approx([split, other])
    assert moved([split, other], [0, 0], [np.nan]) == pytest.approx([split, other])


def test_ports_that_seem_split_are_at_the_server_no_surer_than_all_together() -> None:
    """A client that takes its time makes all ports look split."""
    both = moved([0.995, 0.993], [0, 0], [0.8], side=GroupSide.SERVER)
    assert (both < LEAST_SPLIT[GroupSide.SERVER]).all()
    assert (both > 0.8).all()
    hardly = moved([0.995, PRIOR * 1.01], [0, 0], [0.01], side=GroupSide.SERVER)
    assert odds(hardly)[0] == pytest.approx(odds(np.asarray(0.995)), rel=0.02)


@given(PROBABILITY)
def test_ports_that_look_end_to_end_halve_the_odds_of_one_that_does_not_and_clear_none(split: float) -> None:
    beside = moved([split, 1e-6], [0, 0], [0.01], side=GroupSide.SERVER)[0]
    assert odds(beside) > odds(np.asarray(split)) * 0.47
    if split <= PRIOR:
        assert beside == pytest.approx(split)
    elif split > 0.5:
        assert odds(beside) < odds(np.asarray(split)) * 0.48


def test_a_sure_split_of_another_port_decides_one_that_is_nearly_sure_and_none_that_shows_nothing() -> None:
    nearly, nothing, sure = moved([0.9, PRIOR, 0.999], [0, 0, 0], [0.9999])
    assert nearly > 0.985 > 0.9 > nothing > PRIOR
    assert sure >= 0.999


def test_other_ports_accuse_none_at_the_server_that_shows_nothing() -> None:
    """However sure they are, and though they speak twice: of late clients and splits, and of all ports together."""
    priors = PRIORS[GroupSide.SERVER]
    rest = 1 - priors.split - priors.late
    sure = 1 - 1e-12
    found = Shares(
        split=np.array([priors.split, sure, sure]),
        late=np.array([priors.late, (1 - sure) / 2, (1 - sure) / 2]),
        rest=np.array([rest, (1 - sure) / 2, (1 - sure) / 2]),
        leg_nats=np.zeros((3, 4)),
        answered=np.ones(3, np.bool_),
    )
    first = with_other_ports(found, np.zeros(3, np.int64), priors.split, priors.late).split
    nothing, *_ = moved(first.tolist(), [0, 0, 0], [sure], side=GroupSide.SERVER)
    assert first[0] < nothing < LEAST_SPLIT[GroupSide.SERVER]


def test_ports_of_one_host_confirm_its_leg_and_no_place_of_it() -> None:
    """Nine in ten of each port's legs are in the network, and so they are of both together."""
    both = replace(posterior([0.83, 0.83]), site=np.full(2, 0.09), late=np.full(2, 0.08), end=np.zeros(2))
    found = given_all(both, [0, 0], [0.999], [True, True], one_host=True)
    assert (found.split + found.site > 0.985).all()
    assert found.split / found.site == pytest.approx(both.split / both.site)
    assert total(found) == pytest.approx(np.ones(2))
    several = given_all(both, [0, 0], [0.999], [True, True])
    assert (several.split > found.split).all()
    assert (several.site < both.site).all()
    assert total(several) == pytest.approx(np.ones(2))


@given(GROUPS, st.tuples(PROBABILITY, PROBABILITY, PROBABILITY))
def test_a_client_alone_has_no_leg_inside_a_site_for_its_ports_to_confirm(drawn, together) -> None:
    split, network, answered = (list(each) for each in zip(*drawn, strict=True))
    one, several = (
        given_all(posterior(split), network, together, answered, one_host, GroupSide.SERVER, speaks_web=True)
        for one_host in (True, False)
    )
    for name in SHARES:
        assert getattr(one, name) == pytest.approx(getattr(several, name))


def test_networks_are_open_where_one_of_several_ports_that_answered_is() -> None:
    split = np.asarray([0.5, 0.999, 0.5, 0.001, 0.999, 0.5, 0.999])
    network = np.asarray([0, 0, 1, 2, 2, 3, 3])
    answered = np.asarray([True, True, True, True, True, False, True])
    assert open_networks(split, answered, network, (0.02, 0.985)).tolist() == [0]


@given(
    st.lists(st.tuples(st.sampled_from(("10.1.0.1", "10.2.0.1", "10.3.0.1")), st.integers(1, 4)), min_size=1), st.data()
)
def test_ports_that_are_farther_are_a_network_of_their_own(drawn, data) -> None:
    """Numbered in the order in which they are judged together."""
    made = vantage([Talk(host, port=port) for host, port in drawn], at_client=False)
    where = places(made.columns, at_client=False, table=NetworkTable())
    groups = len(where.network)
    farther = np.asarray(data.draw(st.lists(st.booleans(), min_size=groups, max_size=groups)), np.bool_)
    network = networks_of(where, farther)
    together = places(by_distance(made.columns, farther[where.group]), at_client=False, table=NetworkTable())
    assert np.searchsorted(np.unique(network), network[where.group]).tolist() == together.group.tolist()
    assert (network % 2 == farther).all()


def test_a_client_that_thinks_is_no_split_beside_its_other_ports(tmp_path: Path) -> None:
    """Three answers alone look most probably split; the same client answers later on two other ports."""
    make_network(5981, tmp_path, 398)
    path = str(next(tmp_path.iterdir()) / "s5.pcap.gz")
    (alone,) = detect(path, filter="tcp port 443").groups
    assert alone.probability[Verdict.SPLIT_TCP] > 0.8
    assert {each.port: each.verdict for each in detect(path).groups} == dict.fromkeys(
        (443, 80, 2525), Verdict.INCONCLUSIVE
    )


@pytest.mark.parametrize(
    ("seed", "number", "side", "capture", "port"),
    [
        pytest.param(6037, 25, GroupSide.CLIENT, "client", 22, id="a relay behind LTE"),
        pytest.param(5971, 139, GroupSide.SERVER, "s2", 22, id="SSH of four exchanges behind LTE"),
    ],
)
def test_a_port_that_stays_open_by_itself_is_decided_beside_the_others(
    tmp_path: Path, seed: int, number: int, side: GroupSide, capture: str, port: int
) -> None:
    make_network(seed, tmp_path, number)
    path = str(next(tmp_path.iterdir()) / f"{capture}.pcap.gz")

    def verdict(only: str | None = None) -> Verdict:
        groups = [each for each in detect(path, filter=only).groups if each.side is side]
        return next(each.verdict for each in groups if each.port == port)

    assert verdict(f"tcp port {port}") is Verdict.INCONCLUSIVE
    assert verdict() is Verdict.SPLIT_TCP
