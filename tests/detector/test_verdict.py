"""The table that weighs evidence: sums, families, thresholds, and that every finding of a method has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detector.methods
import prober.experiments
from detector.verdict import FINDINGS, judge
from pepscope.results import Evidence, Kind, Outcome

SPEAKING = re.compile(r'Outcome\.(?:SPLIT|INTACT),\s*"([a-z-]+)"')


def evidence(finding: str, strength: float = 1.0) -> Evidence:
    outcome = Outcome.SPLIT if FINDINGS[finding].split > 0 else Outcome.INTACT
    return Evidence("some method", outcome, finding, strength, f"sentence on {finding}")


def test_every_finding_that_speaks_has_a_row() -> None:
    rooms = (detector.methods, prober.experiments)
    sources = [path for room in rooms for path in Path(str(room.__file__)).parent.rglob("*.py")]
    spoken = {finding for path in sources for finding in SPEAKING.findall(path.read_text())}
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
        (["other-packets", "sender-far-ahead", "window-alternates"], Kind.SPLIT_TCP),
        (["served-from-cache"], Kind.TCP_PROXY),
        (["acks-only-from-receiver"], Kind.REGULAR),
    ],
)
def test_verdict(findings: list[str], verdict: Kind) -> None:
    assert judge([evidence(finding) for finding in findings]).verdict is verdict
