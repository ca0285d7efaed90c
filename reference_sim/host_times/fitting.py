"""Robust fits: a log-normal distribution above a least time, how a pause makes it longer, and two of them apart.

All go by quantiles of logarithms, so that a few acts that waited for something else do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Of samples that a fit rests on.
LEAST_SAMPLES = 12
#: With fewer the shape of the law of pauses is not fitted.
LEAST_FOR_COOLING = 200
_ENOUGH = 25
_QUANTILES = 33
_DIGITS = 4
_MOST_SPREAD = 2.5
_LEAST_SPREAD = 0.02
_FULL_S = np.geomspace(1e-3, 0.3, 26)
_EXPONENTS = np.arange(0.3, 1.51, 0.1)
_FACTORS = np.geomspace(1.0, 60.0, 60)
#: Prices of a law that makes even the shortest pauses count, and of one that makes pauses count at all: where all of
#: them are alike, any factor would do.
_FOR_SHORT, _FOR_ANY = 0.02, 2e-4
_ROUNDS = 60
#: A share of acts below which they are no kind of their own, and how much longer, as a logarithm, another kind is.
_RARE = 0.05
_FAR = 0.6
#: Acts of a run that persistence is measured in, and its values with their autocorrelations.
LEAST_IN_RUN = 15
_PERSISTENCES = np.arange(0.0, 0.951, 0.01)
_ODD = np.arange(1, 12, 2)[:, None]
_AUTOCORRELATIONS = np.asarray(96 / (np.pi * _ODD) ** 4 * np.sinc(_ODD * (1 - _PERSISTENCES))).sum(axis=0)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A time of an act, in seconds: a least one, and log-normally distributed above it."""

    least_s: float
    median_s: float
    #: Standard deviation of the natural logarithm of what is above the least.
    spread: float
    #: What equal shares of the samples lie between, from the least to the greatest, where they are known: the
    #: distribution whatever its form, of two kinds of act for example.
    quantiles_s: tuple[float, ...] = ()

    def table(self) -> dict[str, Any]:
        """As scenarios have it, to four digits."""
        least_s = rounded(self.least_s)
        table = {
            "least_s": least_s, "median_s": max(rounded(self.median_s), least_s), "spread": rounded(self.spread),
        }  # fmt: skip
        quantiles = {"quantiles_s": [rounded(one) for one in self.quantiles_s]} if self.quantiles_s else {}
        return table | quantiles

    def above(self, times_s: Floats) -> Floats:
        """Logarithms of what times have above the least, as shares of the median's; at least -3 times the spread."""
        typical_s = max(self.median_s - self.least_s, 1e-12)
        return np.log(np.maximum((times_s - self.least_s) / typical_s, np.exp(-3 * max(self.spread, _LEAST_SPREAD))))


@dataclass(frozen=True, slots=True)
class Cooling:
    """How many times as long an act takes after a pause (docs/models/hosts.md)."""

    full_s: float
    exponent: float
    most: float

    def factors(self, pauses_s: Floats) -> Floats:
        """After these pauses; a negative one is that of the first packet."""
        share = np.where(pauses_s < 0, 1.0, np.minimum(np.maximum(pauses_s, 0.0) / self.full_s, 1.0))
        return np.asarray(1.0 + (self.most - 1.0) * share**self.exponent)


def fit_log_normal(times_s: Floats) -> LogNormal:
    """By quantiles: of a log-normal distribution above a least time x, (q95 - x)(q05 - x) is (q50 - x)^2.

    Where no x below one sample in a hundred makes it so, that sample is the least.
    """
    first, low, lower, median, upper, high = np.quantile(times_s, (0.01, 0.05, 0.16, 0.5, 0.84, 0.95))
    skew = low + high - 2 * median
    least = (low * high - median**2) / skew if skew > 1e-3 * median else first
    least = float(min(max(least, 0.0), first))
    if lower <= least:  # as good as constant
        return LogNormal(least, float(max(median, least)), 0.0)
    spread = float(np.log((upper - least) / (lower - least)) / 2)
    return LogNormal(least, float(median), min(max(spread, _LEAST_SPREAD), _MOST_SPREAD))


def fit_time(times_s: Floats) -> LogNormal:
    """As a log-normal distribution, and by its quantiles, which say nothing of what was never seen."""
    fitted = fit_log_normal(times_s)
    shown = np.quantile(times_s, np.linspace(0, 1, _QUANTILES))
    return LogNormal(fitted.least_s, fitted.median_s, fitted.spread, tuple(shown.tolist()))


def rounded(value: float) -> float:
    """To the digits that are written."""
    return float(f"{value:.{_DIGITS}g}")


def fit_cooling(times_s: Floats, pauses_s: Floats) -> Cooling | None:
    """The law of pauses that medians of times follow; `None` where pauses are too much alike or too few.

    It is found on a grid, by least squares of logarithms; a bin of many samples counts hardly more than one of fifty.
    """
    known = pauses_s > 0
    if np.count_nonzero(known) < LEAST_FOR_COOLING:
        return None
    pauses, medians, weights = _bins(times_s[known], pauses_s[known])
    if len(pauses) < 5 or pauses[-1] < 10 * pauses[0]:
        return None
    best, found = np.inf, None
    for full_s in _FULL_S:
        for exponent in _EXPONENTS:
            share = np.minimum(pauses / full_s, 1.0) ** exponent
            residues = np.log(medians) - np.log1p((_FACTORS[:, None] - 1) * share)
            residues -= np.average(residues, axis=1, weights=weights)[:, None]
            errors = np.average(residues**2, axis=1, weights=weights)
            errors += _FOR_SHORT * np.log1p((_FACTORS - 1) * share[0]) ** 2 + _FOR_ANY * np.log(_FACTORS) ** 2
            at = int(np.argmin(errors))
            if errors[at] < best - 1e-12:
                best, found = float(errors[at]), Cooling(float(full_s), float(exponent), float(_FACTORS[at]))
    return found


def _bins(times_s: Floats, pauses_s: Floats) -> tuple[Floats, Floats, Floats]:
    """Typical pauses, median times and weights of bins, four a factor of ten of the pause."""
    number = np.floor(4 * np.log10(pauses_s)).astype(np.int64)
    kept = [number == one for one in np.unique(number) if np.count_nonzero(number == one) >= LEAST_SAMPLES]
    return (
        np.array([np.median(pauses_s[rows]) for rows in kept]),
        np.array([np.median(times_s[rows]) for rows in kept]),
        np.array([np.count_nonzero(rows) / (np.count_nonzero(rows) + _ENOUGH) for rows in kept]),
    )


def fit_persistence(runs: Sequence[Floats]) -> float | None:
    """How much neighbouring times of runs are alike, as scenarios have it; `None` where too few follow one another.

    By the autocorrelation of their ranks within a run: a simulated act's rank moves by a uniformly distributed step of
    at most h = 1 - persistence, folded at both ends, whose autocorrelation is the sum over odd k of
    96 / (pi k)^4 sin(pi k h) / (pi k h).
    """
    product = square = 0.0
    count = 0
    for run in runs:
        if len(run) < LEAST_IN_RUN:
            continue
        ranks = np.argsort(np.argsort(run)) - (len(run) - 1) / 2
        # Numbers without order have -1 / n.
        product += float(np.sum(ranks[1:] * ranks[:-1])) + float(np.sum(ranks**2)) / len(run)
        square += float(np.sum(ranks**2))
        count += len(run)
    if count < LEAST_FOR_COOLING:
        return None
    correlation = product / square
    return float(_PERSISTENCES[int(np.argmin(np.abs(_AUTOCORRELATIONS - correlation)))])


def slower_mode(logs: Floats, quick: tuple[float, float] | None = None) -> npt.NDArray[np.bool_]:
    """Which of the times with these natural logarithms are of slower kinds of act, by mixtures of normal distributions.

    `quick` is what acts of the quicker kind are like, a mean and a standard deviation. With it there may be two slower
    kinds, whose means are far above. Without it there is one at most, and none where two do not explain the times
    better than one does (the Bayesian information criterion). None is slower where few are.
    """
    nothing = np.zeros(len(logs), np.bool_)
    if quick is None:
        mixture = _mixture(logs, np.quantile(logs, (0.25, 0.85)))
        together = len(logs) * (np.log(np.std(logs) + 1e-12) + 0.5)
        if 2 * (np.log(_odds(logs, *mixture).sum(axis=1)).sum() + together) < 3 * np.log(len(logs)):
            return nothing
        far = _FAR
    else:
        mixture = _mixture(logs, quick[0] + np.array([0.0, 1.0, 3.0]))
        far = max(_FAR, 2 * quick[1])
    means, _, shares = mixture
    first = float(means[shares > _RARE].min())
    slower = means > first + far
    odds = _odds(logs, *mixture)
    is_slower = (odds[:, slower].sum(axis=1) > odds[:, ~slower].sum(axis=1)) & (logs > first)
    return is_slower if _RARE < is_slower.mean() < 1 - _RARE else nothing


def _mixture(logs: Floats, means: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations and shares of normal distributions, by their likelihood from these means on."""
    sigmas, shares = np.full(len(means), max(np.std(logs) / 2, 0.1)), np.full(len(means), 1 / len(means))
    for _ in range(_ROUNDS):
        odds = _odds(logs, means, sigmas, shares)
        members = odds / odds.sum(axis=1, keepdims=True)
        counts = members.sum(axis=0) + 1e-9
        means = (members * logs[:, None]).sum(axis=0) / counts
        sigmas = np.sqrt((members * (logs[:, None] - means) ** 2).sum(axis=0) / counts) + 0.02
        shares = counts / len(logs)
    return means, sigmas, shares


def _odds(logs: Floats, means: Floats, sigmas: Floats, shares: Floats) -> Floats:
    return np.asarray(shares * np.exp(-0.5 * ((logs[:, None] - means) / sigmas) ** 2) / sigmas + 1e-300)
