"""Verdicts on many connections at once are those on each alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.methods import findings
from detector.options import DECISION_PROBABILITY
from detector.verdict.found import Found
from detector.verdict.regular import weigh
from detector.verdict.weighing import judge
from pepscope.results.evidence.columns import columns_of
from pepscope.results.finding import Finding
from pepscope.results.verdicts import Evidence, Verdict

DECLARED = sorted(findings().values())


@st.composite
def evidence(draw: st.DrawFn, place: int) -> Evidence | None:
    if draw(st.booleans()):
        return None
    finding: Finding = draw(st.sampled_from(DECLARED))
    strength = draw(st.sampled_from([0.0, 0.3, 0.5, 0.97, 1.0]))
    return finding.evidence(f"method{place}", strength, f"{finding} {strength}.")


@given(st.lists(st.tuples(*(evidence(place) for place in range(5))), min_size=1, max_size=6))
def test_connections_are_weighed_together_as_alone(rows: list[tuple[Evidence | None, ...]]) -> None:
    parts = [part for placed in zip(*rows, strict=True) for part in columns_of(placed)]
    found = Found(len(rows), parts)
    weighed = weigh(found)
    for row, items in enumerate(rows):
        known = [item for item in items if item is not None]
        assert found.evidence(row) == tuple(known)
        wanted, made = judge(known), weighed.regular(row, DECISION_PROBABILITY)
        if made is None:
            assert wanted.verdict is not Verdict.REGULAR or not any(item.outcome == "intact" for item in known)
            continue
        assert (made.verdict, made.reason, made.mechanism) == (wanted.verdict, wanted.reason, wanted.mechanism)
        assert made.probability == pytest.approx(wanted.probability, rel=1e-9, abs=1e-15)
