"""Closed forms: values worked out by hand, limits, and what lies outside their domains."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_sim.models import mathis, padhye
from reference_sim.models.domain import OutsideDomainError

SMALL = {"round_trip_s": 0.1, "timeout_s": 1.0}


def test_values_by_hand() -> None:
    """p = 0.01, b = 2: W = 2/3 + sqrt(132 + 4/9), Q = 0.2799, f = 1.0102; Q = 0.5222 at six segments."""
    assert mathis.rate_segments_s(0.01, 0.1, segments_an_acknowledgement=2) == pytest.approx(86.60, rel=1e-4)
    assert padhye.timeout_share(0.01, 12.175) == pytest.approx(0.2799, rel=1e-3)
    assert padhye.send_rate_segments_s(0.01, **SMALL) == pytest.approx(111.458 / 1.60314, rel=1e-4)
    assert padhye.approximate_send_rate_segments_s(0.01, **SMALL) == pytest.approx(1 / 0.0141533, rel=1e-4)
    assert padhye.send_rate_segments_s(0.01, window_limit_segments=6, **SMALL) == pytest.approx(
        (99 + 6 + 0.52216 / 0.99) / (0.1 * (1.5 + 99 / 6 + 2) + 0.52216 * 1.010204 / 0.99), rel=1e-3
    )


@given(st.sampled_from([1.0, 2.0]))
def test_without_timeouts_padhye_is_mathis(delayed: float) -> None:
    limit = mathis.rate_segments_s(1e-9, 0.1, segments_an_acknowledgement=delayed)
    for model in (padhye.send_rate_segments_s, padhye.approximate_send_rate_segments_s):
        assert model(1e-9, segments_an_acknowledgement=delayed, **SMALL) == pytest.approx(limit, rel=1e-3)


@given(
    st.floats(1e-6, 0.5),
    st.floats(0.001, 2.0),
    st.floats(1.0, 50.0),
    st.floats(1.0, 1000.0),
    st.sampled_from([1.0, 2.0]),
)
def test_more_loss_and_more_delay_never_help(p: float, round_trip_s: float, t0: float, limit: float, b: float) -> None:
    for model in (padhye.send_rate_segments_s, padhye.approximate_send_rate_segments_s):

        def rate(
            p: float, round_trip_s: float, t0: float, model: Callable[..., float] = model, limit: float = limit
        ) -> float:
            return model(p, round_trip_s, t0, window_limit_segments=limit, segments_an_acknowledgement=b)

        base = rate(p, round_trip_s, t0)
        assert base > 0
        assert rate(p, 2 * round_trip_s, t0) <= base * (1 + 1e-12)
        assert rate(p, round_trip_s, 2 * t0) <= base * (1 + 1e-12)
        assert rate(2 * p if p < 0.25 else p, round_trip_s, t0) <= base * 1.05  # the two regimes do not quite meet


@given(st.floats(1e-5, 0.1), st.floats(1.0, 200.0))
def test_every_loss_below_four_segments_is_a_timeout(p: float, window: float) -> None:
    share = padhye.timeout_share(p, window)
    assert 0 < share <= 1
    if window <= 3:
        assert share == 1


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: mathis.rate_segments_s(0.05, 0.1),
            "loss_probability must be above 0 and at most 0.01, since the model has no timeouts",
        ),
        (lambda: mathis.rate_segments_s(0.0, 0.1), "loss_probability must be above 0 and at most 0.01"),
        (lambda: mathis.rate_segments_s(0.001, -1), "round_trip_s must be above 0, got -1"),
        (lambda: padhye.send_rate_segments_s(1.0, 0.1, 1.0), "loss_probability must be above 0"),
        (lambda: padhye.send_rate_segments_s(0.1, 0.1, 0.0), "timeout_s must be above 0, got 0"),
        (lambda: padhye.send_rate_segments_s(math.nan, 0.1, 1.0), "loss_probability must be"),
        (
            lambda: padhye.approximate_send_rate_segments_s(0.1, 0.1, 1.0, window_limit_segments=0.5),
            "window_limit_segments must be",
        ),
        (lambda: padhye.timeout_share(0.1, 0.0), "window_segments must be"),
        (lambda: padhye.send_rate_segments_s(0.1, 0.1, 1.0, segments_an_acknowledgement=0), "segments_an_ack"),
    ],
)
def test_outside_a_domain_there_is_no_number(ask: Callable[[], float], sentence: str) -> None:
    with pytest.raises(OutsideDomainError) as refused:
        ask()
    assert str(refused.value).startswith(sentence)
