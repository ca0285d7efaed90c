"""Verdicts on many connections at once are those on each alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.methods import findings
from detector.options import DECISION_PROBABILITY
from detector.verdict.found import Found
from detector.verdict.posterior import weigh
from detector.verdict.weighing import MAY_BE_LOCAL, judge
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
    weighed, least = weigh(found), np.full(len(rows), DECISION_PROBABILITY)
    regular, passed = weighed.are_regular(least), weighed.only_pass_data(least)
    assert not (regular & passed).any()
    for row, items in enumerate(rows):
        known = [item for item in items if item is not None]
        assert found.evidence(row) == tuple(known)
        wanted = judge(known)
        if regular[row]:
            made = Verdict.REGULAR, known[weighed.for_end[row]].summary
        elif passed[row]:
            made = Verdict.INCONCLUSIVE, f"{known[weighed.same_data[row]].summary} {MAY_BE_LOCAL}"
        else:
            assert wanted.verdict is not Verdict.REGULAR or not any(item.outcome == "intact" for item in known)
            continue
        assert (*made, None) == (wanted.verdict, wanted.reason, wanted.mechanism)
        split, stored = weighed.split[row], weighed.stored[row]
        probability = {
            Verdict.REGULAR: 1.0 - split,
            Verdict.SPLIT_TCP: split * (1.0 - stored),
            Verdict.TCP_PROXY: split * stored,
        }
        assert probability == pytest.approx(wanted.probability, rel=1e-9, abs=1e-15)
