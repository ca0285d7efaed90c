"""What the other connections of a group may say of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.detection import judge_vantage
from detector.one_capture.hypotheses.other_connections import _before, with_other_connections
from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.likelihoods.priors import PRIORS
from detector.options import DECISION_PROBABILITY
from pepscope.captures.capture import open_capture
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, judged, together_and_alone
from tests.detector.one_capture.test_hypotheses import NAMES, SIDES, TALKS

CAPTURES = Path("tests/captures/one_ended")
PRIOR = PRIORS[GroupSide.CLIENT]
OF_WEB = np.ones(1, np.bool_)
BEFORE = {names[0]: float(np.squeeze(share)) for names, share in _before(OF_WEB, PRIOR)}
WEIGHTS = st.tuples(*[st.floats(1e-6, 1)] * len(NAMES))


def made(shares: dict[str, float], site: float = 0.0) -> Posterior:
    """The posterior of one group of one member, or of one connection; hypotheses that are not named are none."""
    rows = {name: np.asarray([shares.get(name, 0.0)]) for name in NAMES}
    of_site = np.asarray([site])
    return Posterior(**rows, leg_nats=np.zeros((1, 4)), member_site=of_site, member_wired_site=of_site)


def drawn(weights: tuple[float, ...]) -> Posterior:
    return made({name: weight / sum(weights) for name, weight in zip(NAMES, weights, strict=True)})


def given_others(alone: Posterior, group: Posterior, *, follows: bool = True) -> Posterior:
    nothing = np.zeros(1, np.int64)
    return with_other_connections(alone, group, nothing, nothing, np.asarray([follows]), OF_WEB, PRIOR)


def share(found: Posterior, *names: str) -> float:
    return float(sum(getattr(found, name)[0] for name in names))


@given(WEIGHTS, WEIGHTS)
def test_a_connection_is_between_itself_and_its_group(own: tuple[float, ...], of_group: tuple[float, ...]) -> None:
    alone, group = drawn(own), drawn(of_group)
    found = given_others(alone, group)
    assert share(found, *NAMES) == pytest.approx(1)
    for names in (("split",), ("holding",), ("handshakes_answered",), ("late", "fleet", "end", "site")):
        low, high = sorted((share(alone, *names), share(group, *names)))
        assert low - 1e-9 <= share(found, *names) <= high + 1e-9


@given(WEIGHTS, WEIGHTS)
def test_one_that_follows_nothing_stays_as_it_is(own: tuple[float, ...], of_group: tuple[float, ...]) -> None:
    alone = drawn(own)
    found = given_others(alone, drawn(of_group), follows=False)
    assert all(share(found, name) == pytest.approx(share(alone, name)) for name in NAMES)


def test_others_alone_accuse_no_connection_that_shows_nothing() -> None:
    sure = made({"split": 1.0})
    assert share(given_others(made(BEFORE), sure), "split") < LEAST_SPLIT[GroupSide.CLIENT]
    likely = made({name: BEFORE[name] * (20 if name == "split" else 1) for name in BEFORE} | {"end": 0.0})
    assert share(given_others(likely, sure), "split") > LEAST_SPLIT[GroupSide.CLIENT]


@given(st.floats(1e-9, 1e-4))
def test_one_that_contradicts_its_group_is_treated_apart(split: float) -> None:
    prompt = made({"split": split, "end": 1 - split})
    assert share(given_others(prompt, made({"split": 1.0})), "split") < 0.02


def test_a_host_that_is_late_in_a_group_counts_once() -> None:
    """What the host does by itself explains its connections alike, so that ten do not accuse it more than their group
    does."""
    late = made({"split": 0.9, "late": 0.08, "end": 0.02})
    assert share(given_others(late, made({"split": 0.7, "late": 0.3})), "split") < 0.9


@pytest.mark.parametrize("side", [GroupSide.CLIENT, GroupSide.SERVER])
def test_what_is_known_beforehand_is_what_a_silent_connection_shows(side: GroupSide) -> None:
    """But for what its handshake says of who answered it. A split is no likelier by itself, as caches and relays that
    connect first are left out there: a connection needs so much more of its own. So are balancers that do."""
    found = judged([Talk()], at_client=side is GroupSide.CLIENT).alone
    before = {names: float(np.squeeze(share)) for names, share in _before(~OF_WEB, PRIORS[side])}
    assert sum(before.values()) == pytest.approx(1)
    end = share(found, "end") / before["end",]
    assert share(found, "late", "fleet") / end == pytest.approx(before["late", "fleet"], rel=0.05, abs=1e-9)
    of_site = before["site",] * (1 - PRIORS[side].connects_first)
    assert share(found, "site") / end == pytest.approx(of_site, rel=0.05, abs=1e-9)
    assert 0.6 * before["split",] < share(found, "split") / end < 1.001 * before["split",]


@settings(max_examples=40)
@given(TALKS, st.integers(0, 3), SIDES)
def test_silent_connections_change_nothing(talk: Talk, silent: int, at_client: bool) -> None:
    """Nor is a connection moved that is the only one of its group."""
    found = judged([talk, *[replace(talk, excess_ms=[])] * silent], at_client=at_client)
    together, alone = together_and_alone(found)
    np.testing.assert_array_equal(together.classes.split, alone.classes.split)
    np.testing.assert_array_equal(together.explanations, alone.explanations)


@settings(max_examples=30)
@given(st.lists(TALKS, min_size=1, max_size=6), SIDES, st.randoms())
def test_the_order_of_connections_does_not_matter(talks: list[Talk], at_client: bool, random) -> None:
    order = list(range(len(talks)))
    random.shuffle(order)
    split = []
    for each in (talks, [talks[number] for number in order]):
        found = judged(each, at_client=at_client)
        split.append(together_and_alone(found)[0].classes.split)
    np.testing.assert_allclose(split[1], split[0][order], rtol=1e-6, atol=1e-9)


def test_hosts_legs_show_in_connections_that_would_be_open_by_themselves() -> None:
    kinds = (ExchangeKind.TLS_FINISHED, ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND)
    talks = [
        Talk(host, [(kind, leg_ms + 0.3 * number) for kind in kinds])
        for host, leg_ms in (("192.0.2.1", 60.0), ("192.0.2.2", 35.0), ("192.0.2.3", 70.0))
        for number in range(6)
    ]
    found = judged(talks, at_client=True)
    together, alone = together_and_alone(found)
    assert (together.classes.split >= LEAST_SPLIT[GroupSide.CLIENT]).sum() > (
        alone.classes.split >= LEAST_SPLIT[GroupSide.CLIENT]
    ).sum()
    assert together.others is not None
    assert set(together.others[together.explanations != alone.explanations].tolist()) == {len(talks) - 1}


def test_captured_connections_follow_their_split_group_and_say_so() -> None:
    capture = open_capture(str(CAPTURES / "wlan-relay.client.pcap.gz"))
    pairs, groups = judge_vantage([capture], least_probability=DECISION_PROBABILITY)
    split = {place for group in groups if group.verdict.is_split for place in group.pairs}
    helped = [place for place, pair in enumerate(pairs) if "would not decide this without the other" in pair.reason]
    assert helped
    assert set(helped) <= split
    assert all(pairs[place].verdict is not Verdict.INCONCLUSIVE for place in helped)
