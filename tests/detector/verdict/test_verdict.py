"""The table that weighs evidence: sums, families, thresholds, and that every finding of a method has a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.methods import findings as method_findings
from detector.methods.identity import IdentityFinding
from detector.options import DECISION_PROBABILITY
from detector.verdict.weighing import judge
from pepscope.results.finding import Weight
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.verdicts import Evidence, Mechanism, Verdict
from prober.experiments.registry import findings as experiment_findings

FINDINGS = {**method_findings(), **experiment_findings()}


def evidence(finding: str, strength: float = 1.0) -> Evidence:
    return FINDINGS[finding].evidence("some method", strength, f"sentence on {finding}")


@given(st.lists(st.tuples(st.sampled_from(sorted(FINDINGS)), st.floats(0, 1))))
def test_probabilities_sum_to_one_and_support_the_verdict(found: list[tuple[str, float]]) -> None:
    judgement = judge([evidence(*item) for item in found])
    assert sum(judgement.probability.values()) == pytest.approx(1.0)
    assert judgement.reason
    if judgement.verdict is not Verdict.INCONCLUSIVE:
        assert judgement.probability[judgement.verdict] == max(judgement.probability.values())


@given(st.sampled_from(sorted(FINDINGS)), st.integers(2, 5))
def test_one_family_has_one_voice(finding: str, times: int) -> None:
    assert judge([evidence(finding)] * times).probability == judge([evidence(finding)]).probability


def test_nothing_found_is_inconclusive() -> None:
    silent = IdentityFinding.TOO_FEW_SEGMENTS.undecided("identity", "Too few segments.")
    judgement = judge([silent])
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.reason == "Too few segments."


def test_absence_of_violations_alone_is_not_regular() -> None:
    assert judge([evidence("acks-after-data"), evidence("sender-in-step")]).verdict is Verdict.INCONCLUSIVE


def test_same_packets_against_early_acknowledgements_is_inconclusive_with_a_reason() -> None:
    judgement = judge([evidence("same-packets"), evidence("acks-before-data")])
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "same-packets" in judgement.reason
    assert "acks-before-data" in judgement.reason


def test_what_no_harmless_box_explains_leaves_the_most_probable_end_to_end_undecided() -> None:
    """Local acknowledgement that lets the receiver's own acknowledgements pass, seen by lossy captures."""
    found = ["same-packets", "handshake-same-segments", "sender-in-step", "window-alternates"]
    judgement = judge([evidence(finding) for finding in found])
    assert judgement.probability[Verdict.REGULAR] > DECISION_PROBABILITY
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "The evidence disagrees" in judgement.reason


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        (["same-packets"], Verdict.REGULAR),
        (["other-packets"], Verdict.SPLIT_TCP),
        (["acks-before-data", "sender-ahead"], Verdict.SPLIT_TCP),
        (["other-packets", "stored-before-forwarded"], Verdict.TCP_PROXY),
        (["other-packets", "sender-beyond-buffers"], Verdict.TCP_PROXY),
        (["other-packets", "sender-far-ahead", "window-open-receiver-behind"], Verdict.SPLIT_TCP),
        (["acks-nobody-sent", "acks-cross-whole-path"], Verdict.REGULAR),
        (["acks-nobody-sent"], Verdict.INCONCLUSIVE),
        (["acks-nobody-sent", "acks-before-data"], Verdict.SPLIT_TCP),
        (["acks-nobody-sent", "acks-not-from-receiver"], Verdict.SPLIT_TCP),
        (["other-packets", "sender-far-ahead", "window-alternates"], Verdict.SPLIT_TCP),
        (["served-from-cache"], Verdict.TCP_PROXY),
        (["acks-only-from-receiver"], Verdict.REGULAR),
        (["handshake-made-anew", "acks-nearer-than-path", "fin-before-sent"], Verdict.INCONCLUSIVE),
        (["handshake-made-anew", "acks-nearer-than-path", "window-alternates"], Verdict.SPLIT_TCP),
    ],
)
def test_findings_end_in_the_verdict_that_their_weights_give(findings: list[str], verdict: Verdict) -> None:
    assert judge([evidence(finding) for finding in findings]).verdict is verdict


def test_early_acknowledgements_of_untouched_data_are_local_acknowledgement() -> None:
    judgement = judge([evidence("same-data"), evidence("acks-before-data")])
    assert judgement.verdict is Verdict.SPLIT_TCP
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
def test_findings_end_in_the_mechanism_that_they_name(findings: list[str], mechanism: Mechanism | None) -> None:
    assert judge([evidence(finding) for finding in findings]).mechanism is mechanism


def test_an_undecided_mechanism_is_claimed_by_no_kind() -> None:
    judgement = judge([evidence("other-packets"), evidence("sender-far-ahead"), evidence("acks-before-data")])
    assert max(judgement.probability[Verdict.SPLIT_TCP], judgement.probability[Verdict.TCP_PROXY]) < 0.9


@given(st.floats(0.51, 1.0))
def test_below_the_least_probability_there_is_no_verdict(least: float) -> None:
    judgement = judge([evidence("dead-port-answered")], least_probability=least)
    leading = max(judgement.probability[Verdict.REGULAR], 1 - judgement.probability[Verdict.REGULAR])
    assert (judgement.verdict is Verdict.INCONCLUSIVE) == (leading < least)


@pytest.mark.parametrize("row", [finding.weight for finding in FINDINGS.values()], ids=FINDINGS)
def test_a_row_charges_nothing_to_what_explains_it_best(row: Weight) -> None:
    assert max(row.of(each) for each in Hypothesis) == 0.0
    assert row.reason.endswith(".")


def test_hypotheses_start_from_probabilities() -> None:
    assert sum(PRIOR.values()) == pytest.approx(1.0)
    assert judge(()).probability[Verdict.REGULAR] == pytest.approx(PRIOR[Hypothesis.END])
