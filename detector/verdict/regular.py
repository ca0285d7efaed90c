"""The verdict of many connections at once, where it is that they are end to end; `weighing` says what is computed.

Most connections of most networks are, and of these no more than one sentence is read for the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from detector.verdict.found import Found
from detector.verdict.weighing import FAULT, HINT_NATS, Judgement
from pepscope.results.evidence.columns import EvidenceColumns
from pepscope.results.finding import Finding, Weight
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.verdicts import FloatArray, Outcome, Verdict

_END, _STORE = (list(Hypothesis).index(each) for each in (Hypothesis.END, Hypothesis.STORE))


@dataclass(frozen=True, slots=True)
class Weighed:
    """Probability of a split and of a store given a split, and what weighs most for end to end, by connection."""

    split: FloatArray
    stored: FloatArray
    leading: Sequence[tuple[EvidenceColumns, int] | None]

    def regular(self, row: int, least_probability: float) -> Judgement | None:
        """The judgement that a connection is end to end, if it is, and if evidence shows that it is intact."""
        split, leading = float(self.split[row]), self.leading[row]
        if split > 1.0 - least_probability or split >= least_probability or leading is None:
            return None
        part, place = leading
        stored = float(self.stored[row])
        probability = {
            Verdict.REGULAR: 1.0 - split,
            Verdict.SPLIT_TCP: split * (1.0 - stored),
            Verdict.TCP_PROXY: split * stored,
        }
        return Judgement(Verdict.REGULAR, probability, part.words(place).summary)


def weigh(found: Found) -> Weighed:
    """Bayes' rule over the hypotheses for every connection (`weighing`)."""
    families: dict[str, FloatArray] = {}
    any_split: dict[str, FloatArray] = {}
    most = np.full(found.count, -math.inf)
    leading: list[tuple[EvidenceColumns, int] | None] = [None] * found.count
    for part in found.parts:
        if part.form.outcome is Outcome.INAPPLICABLE:
            continue
        weight = _weight_of(part)
        nats = part.strength[:, None] * np.array(weight.nats)
        splits = nats[:, _END + 1 :].max(axis=1)
        worst = families.setdefault(weight.family, np.zeros((found.count, len(Hypothesis))))
        worst[part.rows] = np.minimum(worst[part.rows], nats)
        least = any_split.setdefault(weight.family, np.zeros(found.count))
        least[part.rows] = np.minimum(least[part.rows], splits)
        if part.form.outcome is Outcome.INTACT:
            for_end = nats[:, _END] - splits
            for place in np.flatnonzero(for_end > most[part.rows]).tolist():
                row = int(part.rows[place])
                most[row], leading[row] = for_end[place], (part, place)
    paid = _paid(families, found.count)
    logs = np.log([PRIOR[each] for each in Hypothesis]) + paid
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    of = shares / shares.sum(axis=1, keepdims=True)
    explained = PRIOR[Hypothesis.END] * np.exp(paid[:, _END])
    explained += (1.0 - PRIOR[Hypothesis.END]) * np.exp(
        sum([any_split[name] for name in sorted(any_split)], np.zeros(found.count))
    )
    fault = math.exp(FAULT) / (math.exp(FAULT) + explained)
    split = (1.0 - fault) * (1.0 - of[:, _END]) + fault * (1.0 - PRIOR[Hypothesis.END])
    return Weighed(split, of[:, _STORE] / of[:, _END + 1 :].sum(axis=1), leading)


def _weight_of(part: EvidenceColumns) -> Weight:
    finding = part.form.finding
    if not isinstance(finding, Finding):
        raise TypeError(f"the finding {finding!r} of {part.form.method} is a bare key, not a Finding")
    return finding.weight


def _paid(families: Mapping[str, FloatArray], count: int) -> FloatArray:
    """What each hypothesis pays: `weighing.charges` by connection."""
    paid, hints = np.zeros((count, len(Hypothesis))), np.zeros(count)
    for name in sorted(families):
        worst = families[name]
        paid += worst
        hints += np.where(worst[:, _END] > -HINT_NATS, worst[:, _END], 0.0)
    paid[:, _END] += np.maximum(hints, -HINT_NATS) - hints
    return paid
