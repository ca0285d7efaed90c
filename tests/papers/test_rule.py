"""The rule of reproduction: two one-sided tests against what is accepted, whatever the interval and its centre."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.results import Assessment, Reproduction, Statement, StatementOutcome
from papers.statements.comparing import Accepted, combined, compare_positive, compare_value, judge, tolerance_of
from reference_sim.intervals import Interval, mean_interval

R, U, D, N = (
    StatementOutcome.REPRODUCED,
    StatementOutcome.UNDECIDED,
    StatementOutcome.DIRECTION,
    StatementOutcome.NOT,
)
FAILED = (D, N)

centres = st.floats(-1e3, 1e3)
widths = st.floats(0.0, 1e3)
published_values = st.floats(0.1, 1e3)


@pytest.mark.parametrize(
    ("mean", "half_width", "published", "outcome"),
    [
        (62.0, 5.0, 66.0, U),  # Hu's 66 %, by few seeds: the published number inside the interval decides nothing
        (60.0, 2.0, 66.0, U),
        (62.4, 1.5, 66.0, R),
        (51.0, 5.4, 33.0, D),
        (51.0, 30.0, 33.0, U),
        (-33.0, 1.0, 33.0, N),
        (33.0, None, 33.0, U),  # one run has no interval
    ],
)
def test_reproduced_is_equivalent_and_not_merely_uncertain(
    mean: float, half_width: float | None, published: float, outcome: StatementOutcome
) -> None:
    assert compare_value(published, Interval(mean, half_width, 9)) is outcome


@given(centre=centres, width=widths, share=st.floats(0.0, 1.0), published=published_values, tolerance=widths)
def test_more_seeds_around_a_centre_never_turn_a_verdict_over(
    centre: float, width: float, share: float, published: float, tolerance: float
) -> None:
    accepted = Accepted.around(published, tolerance)
    wide = judge(Interval(centre, width, 9), accepted)
    narrow = judge(Interval(centre, share * width, 9), accepted)
    if wide is not U:
        assert narrow is wide
    if abs(centre - published) > tolerance * (1.0 + 1e-6) + 1e-5:
        assert R not in (wide, narrow)


@given(centre=centres, published=published_values, tolerance=st.floats(0.0, 100.0), more=st.floats(0.001, 1e3))
def test_an_interval_wider_than_what_is_accepted_is_never_reproduced(
    centre: float, published: float, tolerance: float, more: float
) -> None:
    accepted = Accepted.around(published, tolerance)
    assert judge(Interval(centre, tolerance + more, 9), accepted) is not R
    reaching = Interval(centre, abs(centre - published) + tolerance + more, 9)
    assert judge(reaching, accepted) is U


@given(mean=centres, half_width=widths)
def test_an_order_is_undecided_where_its_interval_crosses_zero(mean: float, half_width: float) -> None:
    outcome = compare_positive(Interval(mean, half_width, 9))
    assert (outcome is R) == (mean - half_width > 0.0)
    assert (outcome is N) == (mean + half_width <= 0.0)


@given(mean=st.floats(-9.0, 9.0), half_width=st.floats(0.0, 9.0), step=st.floats(0.0, 9.0))
def test_what_is_accepted_by_a_bound_is_accepted_by_a_looser_one(mean: float, half_width: float, step: float) -> None:
    found = Interval(mean, half_width, 9)
    if judge(found, Accepted(highest=0.0)) is R:
        assert judge(found, Accepted(highest=step)) is R
    if judge(found, Accepted(highest=step)) is N:
        assert judge(found, Accepted(highest=0.0)) is N


@given(st.lists(st.sampled_from([R, U, D, N]), min_size=1, max_size=6))
def test_one_failing_part_fails_a_statement_and_one_open_part_leaves_it_open(outcomes: list[StatementOutcome]) -> None:
    outcome = combined(outcomes)
    assert (outcome is R) == all(one is R for one in outcomes)
    assert (outcome in FAILED) == any(one in FAILED for one in outcomes)
    if all(one is N for one in outcomes):
        assert outcome is N


def test_the_level_is_that_of_two_one_sided_tests() -> None:
    """Values of which the truth lies on the edge of the tolerance pass in 2.5 % of all trials, not in half of them."""
    import numpy as np

    source = np.random.default_rng(3)
    trials = source.normal(110.0, 5.0, size=(4000, 12))
    passed = np.mean([compare_value(100.0, mean_interval(list(values))) is R for values in trials])
    assert passed == pytest.approx(0.025, abs=4 * math.sqrt(0.025 * 0.975 / len(trials)))


def test_a_tolerance_is_a_tenth_and_no_less_than_the_rounding() -> None:
    assert tolerance_of(66.0, 0.5) == pytest.approx(6.6)
    assert tolerance_of(-24.0) == pytest.approx(2.4)
    assert tolerance_of(0.0, 0.5) == 0.5


def test_what_follows_by_construction_is_not_counted_and_what_is_not_measured_is() -> None:
    outcomes = (R, R, U, N, StatementOutcome.BY_CONSTRUCTION, StatementOutcome.NOT_MEASURED)
    statements = tuple(Statement("section 1", f"statement {n}", "", one, "why") for n, one in enumerate(outcomes))
    result = Reproduction("hu", "title", "source", "quick", Assessment(statements))
    assert result.counted == 5
    assert result.to_dict()["counted"] == 5
    assert sum(result.counts().values()) == 6
