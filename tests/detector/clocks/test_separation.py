import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detector.clocks.compiled_separation import separate, separate_most
from tests.detector.clocks.reference_separation import Cloud, constraints

points = st.lists(st.tuples(st.integers(0, 10**10), st.integers(-(10**8), 10**8)), min_size=1, max_size=40)
LIMIT = 5e-4


def cloud(pairs):
    x, y = zip(*pairs, strict=True)
    return Cloud(np.array(x, np.float64), np.array(y, np.float64))


def gap_at(lower, upper, slope):
    return (upper.y_ns - slope * upper.x_ns).min() - (lower.y_ns - slope * lower.x_ns).max()


@given(points, points)
def test_no_admissible_line_is_better_than_the_one_found(low, high):
    lower, upper = cloud(low), cloud(high)
    found = separate(constraints(lower, upper), LIMIT)
    assert abs(found.drift) <= LIMIT
    assert found.slack_ns == pytest.approx(gap_at(lower, upper, found.drift), abs=1e-3)
    tried = max(gap_at(lower, upper, slope) for slope in np.linspace(-LIMIT, LIMIT, 501))
    assert found.slack_ns >= tried - 1e-3


@settings(max_examples=50)
@given(points, points, st.integers(0, 3), st.integers(0, 3))
def test_sparing_points_never_narrows_the_gap_and_a_negative_slack_is_a_proof(low, high, spared_low, spared_high):
    lower, upper = cloud(low), cloud(high)
    both = constraints(lower, upper, spared_low, spared_high)
    exact = separate(both, LIMIT)
    found = separate_most(both, LIMIT, exact)
    assert found.slack_ns >= exact.slack_ns - 1e-3
    if found.slack_ns < 0 and spared_low < len(lower) and spared_high < len(upper):
        for slope in np.linspace(-LIMIT, LIMIT, 77):
            floor = np.sort(lower.y_ns - slope * lower.x_ns)[::-1][spared_low]
            ceiling = np.sort(upper.y_ns - slope * upper.x_ns)[spared_high]
            assert ceiling - floor < 1e-3


def test_a_drift_beyond_the_limit_does_not_separate():
    x = np.linspace(0, 1e11, 200)
    lower, upper = Cloud(x, 1e-3 * x), Cloud(x, 1e-3 * x + 1e6)
    assert separate(constraints(lower, upper), 2e-3).slack_ns == pytest.approx(1e6)
    assert separate(constraints(lower, upper), LIMIT).slack_ns < -1e7


def test_thinning_keeps_the_binding_points():
    random = np.random.default_rng(4)
    dense = Cloud(np.sort(random.uniform(0, 1e11, 100_000)), random.uniform(0, 1e9, 100_000))
    lower = Cloud(np.array([5e10]), np.array([-1e6]))
    both = constraints(lower, dense, 2, 2)
    lean = both.thinned(512)
    assert lean.upper_count <= 3 * 512
    whole = separate(both, LIMIT).slack_ns
    assert separate(lean, LIMIT).slack_ns == pytest.approx(whole, abs=LIMIT * 1e11 / 512)
