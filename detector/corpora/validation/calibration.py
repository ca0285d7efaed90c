"""Probabilities beside truth: Brier score, reliability in bins, and the ROC of the probability of a split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from detector.corpora.validation.intervals import Share

Floats = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Edges of the bins of a reliability table; verdicts need 0.05 or 0.95.
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)

#: What no probability counts as in the ROC: nothing known.
UNKNOWN = 0.5

#: Points of a ROC that are kept, the corners of the curve.
MOST_POINTS = 500


@dataclass(frozen=True, slots=True)
class Bin:
    """Probabilities between two edges: how many were said, their mean, and how many of the claims held."""

    low: float
    high: float
    mean_said: float
    held: Share


@dataclass(frozen=True, slots=True)
class Claims:
    """Probabilities that something holds, and whether it did."""

    name: str
    said: tuple[float, ...]
    held: tuple[bool, ...]

    @property
    def brier(self) -> float:
        """Mean squared difference of probability and outcome (Brier 1950): 0 is perfect, 0.25 a coin's."""
        return float(np.mean((np.array(self.said) - np.array(self.held)) ** 2)) if self.said else float("nan")

    def bins(self) -> list[Bin]:
        """The bins that hold any claim."""
        said, held = np.array(self.said), np.array(self.held, np.bool_)
        found = []
        for low, high in itertools.pairwise(EDGES):
            inside = (said >= low) & ((said < high) | (high == EDGES[-1]))
            if inside.any():
                found.append(
                    Bin(low, high, float(said[inside].mean()), Share(int(held[inside].sum()), int(inside.sum())))
                )
        return found


@dataclass(frozen=True, slots=True)
class Roc:
    """Receiver operating characteristic (Fawcett 2006): shares of regular and split cases from each threshold on.

    `area` is the probability that a split gets a higher probability than a regular case, ties counting half; None
    where one of both is missing. `unknown` cases had no probability.
    """

    false_alarm: tuple[float, ...]
    found: tuple[float, ...]
    threshold: tuple[float, ...]
    area: float | None
    unknown: int


def roc(said: Sequence[float | None], split: Sequence[bool]) -> Roc:
    """The curve of the probabilities of a split; a case without one counts as undecided."""
    scores = np.array([UNKNOWN if each is None else each for each in said], np.float64)
    truth = np.array(split, np.bool_)
    unknown = sum(each is None for each in said)
    splits, regular = int(truth.sum()), int((~truth).sum())
    if not splits or not regular:
        return Roc((), (), (), None, unknown)
    thresholds = np.unique(scores)[::-1]
    # Of each threshold the cases at or above it.
    at = [np.searchsorted(np.sort(-scores[chosen]), -thresholds, side="right") for chosen in (~truth, truth)]
    x = np.concatenate([[0.0], at[0] / regular])
    y = np.concatenate([[0.0], at[1] / splits])
    area = float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))
    kept = _corners(x, y)
    marks = np.concatenate([[1.0], thresholds])
    return Roc(tuple(x[kept].tolist()), tuple(y[kept].tolist()), tuple(marks[kept].tolist()), area, unknown)


def _corners(x: Floats, y: Floats) -> IntArray:
    """Places of points that are not on a straight line between their neighbours, thinned where there are many."""
    turns = np.diff(x)[:-1] * np.diff(y)[1:] != np.diff(x)[1:] * np.diff(y)[:-1]
    inner = np.flatnonzero(turns) + 1
    step = max(1, len(inner) // MOST_POINTS)
    return np.concatenate([[0], inner[::step], [len(x) - 1]])
