"""Odds to probabilities, and back."""

from __future__ import annotations

import math

import pytest

from pepscope.results.hypotheses import log_odds, logistic


def test_even_odds_are_a_half_and_ten_to_one_is_ten_of_eleven() -> None:
    assert logistic(0.0) == 0.5
    assert logistic(math.log(10)) == pytest.approx(10 / 11)


@pytest.mark.parametrize("nats", [0.0, 0.3, 5.0, 30.0])
def test_both_hypotheses_together_are_certain(nats: float) -> None:
    assert logistic(nats) + logistic(-nats) == pytest.approx(1.0)


@pytest.mark.parametrize(("nats", "probability"), [(1e6, 1.0), (-1e6, 0.0), (math.inf, 1.0), (-math.inf, 0.0)])
def test_no_number_is_too_large(nats: float, probability: float) -> None:
    assert logistic(nats) == probability


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.5, 0.9])
def test_log_odds_are_the_inverse(probability: float) -> None:
    assert logistic(log_odds(probability)) == pytest.approx(probability)
