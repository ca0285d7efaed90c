"""The table that weighs evidence: sums, families, thresholds, and that every finding of a method has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detector
import prober
from detector.verdict import judge
from detector.weights import FINDINGS, PRIOR, Hypothesis, Weight
from pepscope.results import Evidence, Kind, Mechanism, Outcome

SPEAKING = re.compile(r'Outcome\.(?:SPLIT|INTACT),\s*"([a-z-]+)"')
CHOSEN = re.compile(r'finding = "([a-z-]+)" if [^"]+ else "([a-z-]+)"')


def evidence(finding: str, strength: float = 1.0) -> Evidence:
    outcome = Outcome.SPLIT if FINDINGS[finding].split > 0 else Outcome.INTACT
    return Evidence("some method", outcome, finding, strength, f"sentence on {finding}")


def test_every_finding_that_speaks_has_a_row() -> None:
    rooms = (detector, prober)
    sources = [path for room in rooms for path in Path(str(room.__file__)).parent.rglob("*.py")]
    texts = [path.read_text() for path in sources]
    spoken = {finding for text in texts for finding in SPEAKING.findall(text)}
    spoken |= {finding for text in texts for both in CHOSEN.findall(text) for finding in both}
    assert spoken == set(FINDINGS)


@given(st.lists(st.tuples(st.sampled_from(sorted(FINDINGS)), st.floats(0, 1))))
def test_probabilities_sum_to_one_and_support_the_verdict(found: list[tuple[str, float]]) -> None:
    judgement = judge([evidence(*item) for item in found])
    assert sum(judgement.probability.values()) == pytest.approx(1.0)
    assert judgement.reason
    if judgement.verdict is not Kind.INCONCLUSIVE:
        assert judgement.probability[judgement.verdict] == max(judgement.probability.values())


@given(st.sampled_from(sorted(FINDINGS)), st.integers(2, 5))
def test_one_family_has_one_voice(finding: str, times: int) -> None:
    assert judge([evidence(finding)] * times).probability == judge([evidence(finding)]).probability


def test_nothing_found_is_inconclusive() -> None:
    silent = Evidence("identity", Outcome.INAPPLICABLE, "too-few-segments", 0.0, "Too few segments.")
    judgement = judge([silent])
    assert judgement.verdict is Kind.INCONCLUSIVE
    assert judgement.reason == "Too few segments."


def test_absence_of_violations_alone_is_not_regular() -> None:
    assert judge([evidence("acks-after-data"), evidence("sender-in-step")]).verdict is Kind.INCONCLUSIVE


def test_same_packets_against_early_acknowledgements_is_inconclusive_and_says_so() -> None:
    judgement = judge([evidence("same-packets"), evidence("acks-before-data")])
    assert judgement.verdict is Kind.INCONCLUSIVE
    assert "same-packets" in judgement.reason
    assert "acks-before-data" in judgement.reason


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        (["same-packets"], Kind.REGULAR),
        (["other-packets"], Kind.SPLIT_TCP),
        (["acks-before-data", "sender-ahead"], Kind.SPLIT_TCP),
        (["other-packets", "stored-before-forwarded"], Kind.TCP_PROXY),
        (["other-packets", "sender-beyond-buffers"], Kind.TCP_PROXY),
        (["other-packets", "sender-far-ahead", "window-open-receiver-behind"], Kind.SPLIT_TCP),
        (["acks-nobody-sent", "acks-cross-whole-path"], Kind.REGULAR),
        (["acks-nobody-sent"], Kind.INCONCLUSIVE),
        (["acks-nobody-sent", "acks-before-data"], Kind.SPLIT_TCP),
        (["acks-nobody-sent", "acks-not-from-receiver"], Kind.SPLIT_TCP),
        (["other-packets", "sender-far-ahead", "window-alternates"], Kind.SPLIT_TCP),
        (["served-from-cache"], Kind.TCP_PROXY),
        (["acks-only-from-receiver"], Kind.REGULAR),
    ],
)
def test_verdict(findings: list[str], verdict: Kind) -> None:
    assert judge([evidence(finding) for finding in findings]).verdict is verdict


def test_early_acknowledgements_of_untouched_data_are_local_acknowledgement() -> None:
    judgement = judge([evidence("same-data"), evidence("acks-before-data")])
    assert judgement.verdict is Kind.SPLIT_TCP
    assert judgement.mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT
    assert "same-data" in judgement.reason
    assert "acks-before-data" in judgement.reason


@pytest.mark.parametrize(
    ("findings", "mechanism"),
    [
        (["same-packets"], None),
        (["other-packets", "sender-ahead", "window-alternates"], Mechanism.RELAY),
        (["other-packets", "stored-before-forwarded"], Mechanism.STORE_AND_FORWARD),
        (["other-packets", "sender-far-ahead"], Mechanism.UNDECIDED),
        (["other-packets", "rewritten-headers"], Mechanism.REWRITING),
        (["served-from-cache"], Mechanism.CACHE),
        (["another-certificate"], Mechanism.TLS_INTERCEPTION),
        (["transport-changed-relayed"], Mechanism.TUNNEL),
    ],
)
def test_mechanism(findings: list[str], mechanism: Mechanism | None) -> None:
    assert judge([evidence(finding) for finding in findings]).mechanism is mechanism


def test_an_undecided_mechanism_is_claimed_by_no_kind() -> None:
    judgement = judge([evidence("other-packets"), evidence("sender-far-ahead"), evidence("acks-before-data")])
    assert max(judgement.probability[Kind.SPLIT_TCP], judgement.probability[Kind.TCP_PROXY]) < 0.9


@given(st.floats(0.51, 1.0))
def test_below_the_least_probability_there_is_no_verdict(least: float) -> None:
    judgement = judge([evidence("dead-port-answered")], least_probability=least)
    leading = max(judgement.probability[Kind.REGULAR], 1 - judgement.probability[Kind.REGULAR])
    assert (judgement.verdict is Kind.INCONCLUSIVE) == (leading < least)


@pytest.mark.parametrize("row", FINDINGS.values(), ids=FINDINGS)
def test_a_row_charges_nothing_to_what_explains_it_best(row: Weight) -> None:
    assert max(row.of(each) for each in Hypothesis) == 0.0
    assert row.reason.endswith(".")


def test_hypotheses_start_from_probabilities() -> None:
    assert sum(PRIOR.values()) == pytest.approx(1.0)
    assert judge(()).probability[Kind.REGULAR] == pytest.approx(PRIOR[Hypothesis.END])
