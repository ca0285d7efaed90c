"""What verdicts are worth, the rates of failures, and the tests of their differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from detector.corpora.validation.calibration import MOST_POINTS, Claims, roc
from detector.corpora.validation.comparing import fisher, mcnemar
from detector.corpora.validation.factors import MOST_WORDS, OTHERS, by_factor
from detector.corpora.validation.intervals import Share, wilson
from detector.corpora.validation.labels import CLASSES
from detector.corpora.validation.scoring import (
    FAILED,
    NOT_JUDGED,
    RATES,
    SAYINGS,
    Judgement,
    Score,
    confusion,
    rates,
    score_of,
)
from pepscope.results.verdicts import SplitPlace
from tests.detector.corpora.validation.labelled_corpora import case

WORTH = {
    ("regular", "regular"): Score.RIGHT,
    ("regular", "split-tcp"): Score.FALSE_ALARM,
    ("regular", "tcp-proxy"): Score.FALSE_ALARM,
    ("split-tcp", "regular"): Score.REVERSED,
    ("split-tcp", "split-tcp"): Score.RIGHT,
    ("split-tcp", "tcp-proxy"): Score.OTHER_KIND,
    ("tcp-proxy", "regular"): Score.REVERSED,
    ("tcp-proxy", "split-tcp"): Score.OTHER_KIND,
    ("tcp-proxy", "tcp-proxy"): Score.RIGHT,
}


def test_every_verdict_has_its_worth() -> None:
    for truth in CLASSES:
        for said in SAYINGS:
            expected = WORTH.get((truth.value, said), Score.NOT_FOUND)
            assert score_of(case(truth.value), said) is expected
            assert expected.is_error == (expected in (Score.FALSE_ALARM, Score.REVERSED))
    assert {said for said in SAYINGS if said not in CLASSES} == {"inconclusive", NOT_JUDGED, FAILED}


def test_an_accepted_kind_is_right() -> None:
    assert score_of(case("split-tcp", "tcp-proxy"), "tcp-proxy") is Score.RIGHT


def test_the_network_is_not_to_be_blamed_for_the_servers_own_split() -> None:
    own = replace(case("split-tcp"), where=SplitPlace.SERVER)
    assert score_of(own, "split-tcp", SplitPlace.NETWORK) is Score.FALSE_ALARM
    assert score_of(own, "split-tcp", SplitPlace.SERVER) is Score.RIGHT
    assert score_of(own, "split-tcp", None) is Score.RIGHT
    assert score_of(case("split-tcp"), "split-tcp", SplitPlace.NETWORK) is Score.RIGHT
    declared = replace(own, where=SplitPlace.PROXY)
    assert score_of(declared, "split-tcp", SplitPlace.NETWORK) is Score.FALSE_ALARM
    assert score_of(declared, "split-tcp", SplitPlace.PROXY) is Score.RIGHT
    judged = Judgement("split-tcp", Score.FALSE_ALARM)
    assert rates([own], [judged])["network-blamed"] == Share(1, 1)
    assert rates([own], [judged])["missed"] == Share(0, 1)


def test_rates_count_what_they_say() -> None:
    said = {
        "regular": ["regular", "regular", "split-tcp", "inconclusive", FAILED],
        "split-tcp": ["split-tcp", "tcp-proxy", "regular", "inconclusive", NOT_JUDGED],
    }
    cases = [case(truth) for truth, words in said.items() for _ in words]
    judged = [Judgement(word, score_of(case(truth), word)) for truth, words in said.items() for word in words]
    found = rates(cases, judged)
    assert found == {
        "false-alarm": Share(1, 5), "unconfirmed": Share(3, 5), "missed": Share(3, 5), "reversed": Share(1, 5),
        "kind-missed": Share(4, 5), "network-blamed": Share(0, 0),
    }  # fmt: skip
    assert set(found) == {rate.name for rate in RATES}
    table = confusion(cases, judged)
    assert {word: count for word, count in table["split-tcp"].items() if count} == dict.fromkeys(said["split-tcp"], 1)
    assert sum(table["regular"].values()) == 5
    assert sum(table["tcp-proxy"].values()) == 0


def test_wilson_intervals() -> None:
    assert wilson(0, 100_000) == pytest.approx((0.0, 3.84e-5), abs=1e-6)
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)  # Wilson 1927
    assert wilson(0, 0) == (0.0, 1.0)
    for count, of in ((0, 83), (83, 83), (5, 9)):
        ours, theirs = wilson(count, of), scipy.stats.binomtest(count, of).proportion_ci(method="wilson")
        assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-5)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_exact_test_of_a_coin(worse: int, better: int) -> None:
    both = worse + better
    expected = scipy.stats.binomtest(worse, both, alternative="greater").pvalue if both else 1.0
    assert mcnemar(worse, better) == pytest.approx(expected)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_fisher_is_the_exact_test_of_two_shares(before: int, now: int, data: st.DataObject) -> None:
    old, new = Share(data.draw(st.integers(0, before)), before), Share(data.draw(st.integers(0, now)), now)
    table = [[new.count, new.of - new.count], [old.count, old.of - old.count]]
    assert fisher(old, new) == pytest.approx(scipy.stats.fisher_exact(table, alternative="greater").pvalue)


def test_five_runs_that_got_worse_are_no_chance_and_four_are() -> None:
    assert mcnemar(5, 0) < 0.05 < mcnemar(4, 0)
    assert mcnemar(6, 2) > 0.05
    assert mcnemar(2000, 1) < 1e-300 or mcnemar(2000, 1) == 0.0


SAID = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.floats(0, 1))


@given(st.lists(st.tuples(SAID, st.booleans()), max_size=40))
def test_the_area_is_the_chance_that_a_split_ranks_above_a_regular_case(said: list[tuple[float | None, bool]]) -> None:
    curve = roc([each for each, _ in said], [split for _, split in said])
    numbers = [(0.5 if each is None else each, split) for each, split in said]
    splits, regular = ([number for number, split in numbers if split is kind] for kind in (True, False))
    assert curve.unknown == sum(each is None for each, _ in said)
    if not splits or not regular:
        assert curve.area is None
        return
    wins = [(one > other) + 0.5 * (one == other) for one in splits for other in regular]
    assert curve.area == pytest.approx(np.mean(wins))
    assert curve.false_alarm[0] == curve.found[0] == 0.0
    assert curve.false_alarm[-1] == curve.found[-1] == 1.0
    assert list(curve.false_alarm) == sorted(curve.false_alarm)
    for x, y, threshold in list(zip(curve.false_alarm, curve.found, curve.threshold, strict=True))[1:]:
        assert x == pytest.approx(np.mean([number >= threshold for number in regular]))
        assert y == pytest.approx(np.mean([number >= threshold for number in splits]))


def test_a_curve_of_many_thresholds_is_thinned_and_keeps_its_area() -> None:
    generator = np.random.default_rng(1)
    truth = generator.random(20_000) < 0.5
    said = np.clip(generator.normal(0.4 + 0.2 * truth, 0.2), 0, 1)
    curve = roc(said.tolist(), truth.tolist())
    assert len(curve.found) <= 2 * MOST_POINTS + 2
    assert curve.area == pytest.approx(scipy.integrate.trapezoid(curve.found, curve.false_alarm), abs=0.01)


def test_reliability_counts_each_claim_once() -> None:
    said = tuple(np.linspace(0, 1, 101).tolist())
    claims = Claims("split", said, tuple(each > 0.5 for each in said))
    bins = claims.bins()
    assert sum(each.held.of for each in bins) == 101
    assert sum(each.held.count for each in bins) == 50
    assert all(each.low <= each.mean_said <= each.high for each in bins)
    assert claims.brier == pytest.approx(np.mean([(each - (each > 0.5)) ** 2 for each in said]))
    assert Claims("split", (1.0, 0.0), (True, False)).brier == 0.0


def test_circumstances_of_many_numbers_are_quarters_and_rare_words_are_others() -> None:
    right = Judgement("regular", Score.RIGHT)
    cases = [
        case("regular", size=float(number), word=f"w{min(number, 20)}", alike="x", half=1.0 + number % 2)
        for number in range(40)
    ]
    rows = by_factor(cases, [right] * 40)
    by_name = {name: [row for row in rows if row.factor == name] for name in ("size", "word", "alike", "half")}
    assert [row.value for row in by_name["size"]] == ["up to 9", "above 9 to 19", "above 19 to 29", "above 29"]
    assert [row.cases for row in by_name["size"]] == [10, 10, 10, 10]
    assert len(by_name["word"]) == MOST_WORDS
    assert by_name["word"][-1].value == OTHERS
    assert by_name["alike"] == []
    assert [(row.value, row.rates["false-alarm"]) for row in by_name["half"]] == [
        ("1", Share(0, 20)),
        ("2", Share(0, 20)),
    ]
    (mostly_none, some) = by_factor([case(loss=max(0.0, number - 30.0)) for number in range(40)], [right] * 40)[:2]
    assert [(row.value, row.cases) for row in (mostly_none, some)] == [("0", 31), ("above 0", 9)]
    for found in by_name.values():
        assert sum(row.cases for row in found) in (0, 40)
