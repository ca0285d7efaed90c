"""What a connection may be, and how probable each of that is before any evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Hypothesis(StrEnum):
    """What a connection may be."""

    END = "end to end"
    RELAY = "relay"
    STORE = "store and forward"
    LOCAL = "local acknowledgement"


#: Prior probabilities, before any evidence. Seed deployments (Wei et al., Table I) show six Split-TCP entries against
#: four TCP proxy entries, and store-and-forward leaves marks on all but short transfers, so that a relay is twice as
#: frequent where nothing shows; local acknowledgement is known from satellite paths only.
PRIOR: Mapping[Hypothesis, float] = {
    Hypothesis.END: 0.5,
    Hypothesis.RELAY: 0.31,
    Hypothesis.STORE: 0.155,
    Hypothesis.LOCAL: 0.035,
}


def logistic(nats: float) -> float:
    """Probability of one of two hypotheses that explains the evidence better than the other by `nats`, at even priors.

    Takes any number, infinite ones too; below zero it is the other hypothesis that explains better.
    """
    if nats >= 0:
        return 1.0 / (1.0 + math.exp(-nats))
    odds = math.exp(nats)
    return odds / (1.0 + odds)


def logistics(nats: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """`logistic` of each number of an array."""
    import numpy as np

    odds = np.exp(-np.abs(nats))
    return np.where(nats >= 0, 1.0, odds) / (1.0 + odds)


def log_odds(probability: float) -> float:
    """The inverse of `logistic`, for a probability between 0 and 1, both excluded."""
    return math.log(probability / (1.0 - probability))
