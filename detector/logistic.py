"""From natural-log odds to a probability, and back."""

from __future__ import annotations

import math

import numpy as np

from pepscope.results.verdicts import FloatArray


def logistic(nats: float) -> float:
    """Probability of one of two hypotheses that explains the evidence better than the other by `nats`, at even priors.

    Takes any number, infinite ones too; below zero it is the other hypothesis that explains better.
    """
    if nats >= 0:
        return 1.0 / (1.0 + math.exp(-nats))
    odds = math.exp(nats)
    return odds / (1.0 + odds)


def logistics(nats: FloatArray) -> FloatArray:
    """`logistic` of each number of an array."""
    odds = np.exp(-np.abs(nats))
    return np.where(nats >= 0, 1.0, odds) / (1.0 + odds)


def log_odds(probability: float) -> float:
    """The inverse of `logistic`, for a probability between 0 and 1, both excluded."""
    return math.log(probability / (1.0 - probability))
