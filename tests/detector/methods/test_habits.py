"""Habits that stacks of one kind share never make packets the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detector.methods.identity.agreement import FITTED_NATS, ClassComparison, FieldAgreement, sum_fields, total_nats
from detector.methods.identity.examination import DECISIVE_NATS

voices = st.dictionaries(
    st.sampled_from(("push", "window")), st.floats(0.0, 60.0).map(lambda nats: FieldAgreement(50, 1.0, nats))
)


@given(st.lists(voices.map(lambda fields: ClassComparison(50, 50, fields)), min_size=1, max_size=4))
def test_pushes_and_windows_that_agree_convince_once(parts: list[ClassComparison]) -> None:
    assert total_nats(sum_fields(parts)) <= FITTED_NATS < DECISIVE_NATS


def test_other_pushes_still_count_in_every_class() -> None:
    other = FieldAgreement(50, 0.2, -30.0)
    assert total_nats(sum_fields([ClassComparison(50, 50, {"push": other})] * 2)) == -60.0
