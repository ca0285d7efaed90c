"""Ren and Lin's closed forms: values by hand, limits, the guards, and what lies outside their domains."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_sim.models import window_parameters
from reference_sim.models.domain import OutsideDomainError
from reference_sim.models.variable_bandwidth import decreases, relative_error, spurious_timeouts, throughput

PAPER = {"reference_frames": 100, "buffer_frames": 200, "mean_rate_frames_s": 1160}


def test_a_sawtooth_by_hand() -> None:
    """b = 100/s, tau = 0.3 s, B = 9: pipe 31, w_max 40, half 20. A: 0.31 * 11 s, 20 * 11 + 60.5; B: 639/200 s."""
    steady = throughput([100.0] * 5, 0.3, 9)
    assert steady.largest_window_packets == pytest.approx(40.0)
    assert steady.pipe_runs_dry
    assert steady.rate_packets_s == pytest.approx((280.5 + 319.5) / (3.41 + 3.195))


def test_with_timeouts_by_hand() -> None:
    """100 and 20/s, tau = 0.04 s, B = 15: xi = 4 > 1 + 8/17; w_max^2 = (20^2 + 16.8^2)/2, half of it fills the pipe."""
    profile = [100.0, 20.0, 100.0, 20.0]
    model = throughput(profile, 0.04, 15)
    largest = math.sqrt((400 + 16.8**2) / 2)
    assert (model.spurious_timeouts, decreases(profile), model.timeout_share) == (2, 2, 1.0)
    assert not model.pipe_runs_dry
    b_s = (largest**2 - (largest / 2) ** 2) / 120
    c_s = 4 * (0.04 + 1 / 60)
    assert model.rate_packets_s == pytest.approx((largest / 2 + 60 * b_s) / (c_s + b_s))
    half_as_often = throughput(profile, 0.04, 15, drops=4)
    assert half_as_often.timeout_share == 0.5
    assert half_as_often.rate_packets_s > model.rate_packets_s


@given(st.floats(1.0, 1000.0), st.floats(0.001, 1.0), st.floats(1.0, 500.0))
def test_a_steady_link_is_never_exceeded_and_filled_by_a_large_buffer(rate: float, tau: float, buffer: float) -> None:
    model = throughput([rate, rate], tau, buffer)
    assert model.timeout_share == 0.0
    assert 0.5 * rate < model.rate_packets_s <= rate * (1 + 1e-9)
    if not model.pipe_runs_dry:
        assert model.rate_packets_s == pytest.approx(rate)


@given(st.lists(st.floats(60.0, 200.0), min_size=2, max_size=30), st.floats(0.03, 0.2))
def test_what_is_modelled_lies_below_the_mean_rate(rates: list[float], tau: float) -> None:
    model = throughput(rates, tau, 15)
    assert 0.0 < model.rate_packets_s <= model.mean_rate_packets_s * (1 + 1e-9)
    assert model.spurious_timeouts <= decreases(rates)


def test_only_sharp_decreases_cause_timeouts() -> None:
    assert spurious_timeouts([100, 60, 30, 100], 0.04, 15) == 0
    assert spurious_timeouts([100, 30], 0.04, 15) == 1
    assert spurious_timeouts([100, 0], 0.04, 15) == 1
    assert spurious_timeouts([30, 100], 0.04, 15) == 0


def test_the_error_is_relative() -> None:
    assert relative_error(77.74, 86.80) == pytest.approx(0.117, abs=5e-4)


@pytest.mark.parametrize(
    ("rates", "round_trip_s", "buffer", "sentence"),
    [
        ([], 0.1, 15, "the bandwidth profile must have a rate above 0"),
        ([0.0, 0.0], 0.1, 15, "the bandwidth profile must have a rate above 0"),
        ([1.0, -2.0], 0.1, 15, "rates of the bandwidth profile must be finite and 0 or above, got -2"),
        ([1.0, math.inf], 0.1, 15, "rates of the bandwidth profile must be finite and 0 or above, got inf"),
        ([1.0], 0.0, 15, "round_trip_s must be above 0, got 0"),
        ([1.0], 0.1, 0.5, "buffer_packets must be at least 1, got 0.5"),
    ],
)
def test_outside_the_domain(rates: list[float], round_trip_s: float, buffer: float, sentence: str) -> None:
    with pytest.raises(OutsideDomainError) as refused:
        throughput(rates, round_trip_s, buffer)
    assert str(refused.value) == sentence


def test_the_paper_s_choice_keeps_to_its_guideline_with_four_frames_not_forty() -> None:
    choice = window_parameters.check(0.025, 35, 20, **PAPER, variation_period_s=1.0)
    assert choice.holds
    assert choice.deviation_frames == pytest.approx(4.0)
    assert window_parameters.check(0.025, 35, 200, **PAPER).deviation_frames == pytest.approx(40.0)
    assert choice.reaching_steps == 2  # an eighth of 100 frames, then an eighth of that
    slow = window_parameters.check(0.025, 20, 20, **PAPER)
    assert slow.reaching_steps is not None
    assert slow.reaching_steps > 2


@pytest.mark.parametrize(
    ("step_s", "approach_per_s", "switching", "broken"),
    [
        (0.2, 4, 20, ["drain"]),  # fig. 13: meets (43) all the same
        (0.1, 4, 20, []),  # fig. 14
        (0.025, 39.9, 20, ["deviation"]),
        (0.025, 40, 20, ["approach", "deviation"]),
    ],
)
def test_which_constraint_a_choice_breaks(
    step_s: float, approach_per_s: float, switching: float, broken: list[str]
) -> None:
    choice = window_parameters.check(step_s, approach_per_s, switching, **PAPER)
    assert [constraint.name for constraint in choice.broken] == broken


def test_a_violated_constraint_is_reported_with_its_numbers() -> None:
    drain = window_parameters.check(0.2, 4, 20, **PAPER).broken[0]
    assert drain.sentence.startswith("Ts < Bmax / b is broken: 0.2 is not below 0.1724 s; ")
    sampling = window_parameters.check(0.025, 35, 20, **PAPER, variation_period_s=0.04)
    assert [constraint.name for constraint in sampling.broken] == ["sampling"]


def test_no_choice_at_all() -> None:
    with pytest.raises(OutsideDomainError, match="step_s must be above 0, got -1"):
        window_parameters.check(-1, 35, 20, **PAPER)
    with pytest.raises(OutsideDomainError, match="must be below buffer_frames, which is 50"):
        window_parameters.check(0.025, 35, 20, reference_frames=100, buffer_frames=50, mean_rate_frames_s=1160)
