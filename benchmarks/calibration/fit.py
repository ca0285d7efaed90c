"""A fit of the detector's table to training draws, near what an engineer wrote into it.

Every number of a row (nats at strength 1, one a hypothesis) is a parameter. The data are flows with known truth; their
log-likelihood is that of the truth's posterior as `detector.verdict.weighing` computes it. A Gaussian prior around the
written value, of standard deviation `PRIOR_SD_NATS`, keeps rows where few flows speak; the least number of a row stays
0, and no number falls below its bound. Every truth weighs alike, however many flows it has, as the table's own prior
expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from benchmarks.calibration.material import Flow
from detector.methods import findings as method_findings
from pepscope.results.hypotheses import PRIOR, Hypothesis

#: A factor of 4.5 in a likelihood: what an engineer's estimate may be off by.
PRIOR_SD_NATS = 1.5

Floats = npt.NDArray[np.float64]
_HYPOTHESES = tuple(Hypothesis)


@dataclass(frozen=True, slots=True)
class FittedRow:
    """One finding: how many training flows showed it under each truth, the numbers as written and as fitted."""

    finding: str
    seen: Mapping[Hypothesis, int]
    written: tuple[float, ...]
    fitted: tuple[float, ...]


def fit(flows: Sequence[Flow]) -> list[FittedRow]:
    """Fit the rows of all findings that occur in these flows."""
    findings = method_findings()
    names = sorted({name for flow in flows for name, _ in flow.findings})
    place = {name: index for index, name in enumerate(names)}
    written = np.array([[findings[name].weight.of(each) for each in _HYPOTHESES] for name in names])
    bound = np.minimum(written.min(axis=1, keepdims=True), -8.0)
    counts = Counter(flow.truth for flow in flows)
    weights = np.array([1.0 / counts[flow.truth] for flow in flows]) * len(flows) / len(counts)
    families = [
        [(place[name], strength, findings[name].weight.family) for name, strength in flow.findings] for flow in flows
    ]
    truths = np.array([_HYPOTHESES.index(flow.truth) for flow in flows])
    prior = np.log([PRIOR[each] for each in _HYPOTHESES])

    def loss(values: Floats) -> tuple[float, Floats]:
        table = values.reshape(written.shape)
        gradient = (table - written) / PRIOR_SD_NATS**2
        total = float(((table - written) ** 2).sum() / (2 * PRIOR_SD_NATS**2))
        for flow, truth, weight in zip(families, truths, weights, strict=True):
            charges, paid_by = _charges(table, flow)
            logit = prior + charges
            share = np.exp(logit - logit.max())
            share /= share.sum()
            total -= weight * float(np.log(max(share[truth], 1e-12)))
            slope = weight * share
            slope[truth] -= weight
            for (row, strength), hypothesis in paid_by:
                gradient[row, hypothesis] += slope[hypothesis] * strength
        return total, gradient.ravel()

    # The hypothesis that explains a finding best stays at 0: the others are relative to it.
    bounds = [
        (float(bound[row, 0]), 0.0) if written[row, column] < 0 else (0.0, 0.0)
        for row in range(len(names))
        for column in range(len(_HYPOTHESES))
    ]
    found = scipy.optimize.minimize(loss, written.ravel(), jac=True, method="L-BFGS-B", bounds=bounds)
    table = found.x.reshape(written.shape)
    return [
        FittedRow(
            name,
            Counter(flow.truth for flow in flows if any(found == name for found, _ in flow.findings)),
            tuple(written[index].tolist()),
            tuple(table[index].tolist()),
        )
        for index, name in enumerate(names)
    ]


def _charges(
    table: Floats, flow: Sequence[tuple[int, float, str]]
) -> tuple[Floats, list[tuple[tuple[int, float], int]]]:
    """What each hypothesis pays, and the row and strength that it pays for in each family."""
    charges = np.zeros(len(_HYPOTHESES))
    paid_by = []
    for family in {family for _, _, family in flow}:
        voices = [(row, strength) for row, strength, named in flow if named == family]
        values = np.array([table[row] * strength for row, strength in voices])
        worst = values.argmin(axis=0)
        charges += values.min(axis=0)
        paid_by += [(voices[int(index)], hypothesis) for hypothesis, index in enumerate(worst)]
    return charges, paid_by
