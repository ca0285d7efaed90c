"""The compiled separation and step search against their NumPy references."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detector.clocks.separation import Separation
from detector.clocks.steps import stepped
from tests.detector.clocks import reference_separation, reference_steps
from tests.detector.clocks.compiled_separation import separate, separate_most
from tests.detector.clocks.generated_clouds import Shape, clouds, shapes
from tests.detector.clocks.reference_separation import constraints

limits = st.sampled_from([0.0, 1e-6, 5e-4])
spared = st.integers(0, 12)
SPLIT = Shape(7, (400, 400), 6e10, -2e9, 4e8, 2e-5, 6e8, 1.0, 0.01)


def same(found: Separation, wanted: Separation) -> None:
    for name in ("slack_ns", "offset_ns", "drift", "low_ns", "high_ns"):
        assert getattr(found, name) == getattr(wanted, name), name


@settings(deadline=None)
@given(shapes, limits)
def test_separate_gives_what_the_reference_gives(shape, limit):
    lower, upper = clouds(shape)
    same(separate(constraints(lower, upper), limit), reference_separation.separate(lower, upper, limit))


@settings(deadline=None)
@given(shapes, limits, spared, spared, st.sampled_from([2, 41, 201]))
def test_sparing_points_gives_what_the_reference_gives(shape, limit, lower_spared, upper_spared, drift_steps):
    lower, upper = clouds(shape)
    asked = (lower, upper, limit, lower_spared, upper_spared, drift_steps)
    wanted = reference_separation.separate_most(*asked)
    both = constraints(lower, upper, lower_spared, upper_spared)
    same(separate_most(both, limit, separate(both, limit), drift_steps), wanted)


@settings(deadline=None)
@given(shapes, st.integers(1, 4), st.sampled_from([1, 7, 64]))
def test_thinning_keeps_what_the_reference_keeps(shape, kept, bins):
    lower, upper = clouds(shape)
    found = constraints(lower, upper, kept - 1, kept - 1).thinned(bins)
    for columns, cloud, highest in ((found.lower, lower, True), (found.upper, upper, False)):
        wanted = reference_separation.thin(cloud, kept, bins, highest=highest)
        assert [column.tolist() for column in columns] == [wanted.x_ns.tolist(), wanted.y_ns.tolist()]


@settings(deadline=None, max_examples=200)
@given(shapes, limits, st.integers(0, 4), st.integers(0, 4), st.sampled_from([-1e6, 0.0, 1.0, 5e5, 3e7]))
@example(SPLIT, 5e-4, 2, 2, 3e7)
def test_a_step_search_gives_the_pieces_of_the_reference(shape, limit, lower_spared, upper_spared, needed_ns):
    asked = (constraints(*clouds(shape), lower_spared, upper_spared), limit, needed_ns)
    assert stepped(*asked) == reference_steps.stepped(*asked)


def test_generated_clouds_show_steps_overlaps_and_gaps():
    """Or the comparisons above would compare nothing."""
    pieces = stepped(constraints(*clouds(SPLIT), 4, 4), 5e-4, 1.0)
    assert pieces is None
    one_step = Shape(7, (400, 400), 6e10, 1.2e8, 5e7, 2e-5, 6e8, 1.0, 0.0)
    both = constraints(*clouds(one_step), 2, 2)
    found = stepped(both, 5e-4, 3e7)
    assert found is not None
    assert len(found) == 2
    exact = separate(both, 5e-4)
    assert exact.slack_ns < 0
    assert separate_most(both, 5e-4, exact).slack_ns == pytest.approx(-4.6e8, rel=0.2)
