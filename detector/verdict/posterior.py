"""The verdicts of many connections at once, where one sentence gives the reason; `weighing` says what is computed.

Most connections of most networks are end to end, and most of the others show no more than that data pass unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from detector.methods.identity.findings import IdentityFinding
from detector.verdict.found import Found
from detector.verdict.weighing import FAULT, HINT_NATS, WEIGHTY_NATS
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Int64Array
from pepscope.results.finding import Finding, Weight
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.verdicts import FloatArray, Outcome

_END, _STORE = (list(Hypothesis).index(each) for each in (Hypothesis.END, Hypothesis.STORE))

#: No piece of evidence.
NO_ITEM = -1


class Weighed(Struct, frozen=True):
    """Probability of a split and of a store given a split, by connection, and which evidence may give the reason.

    Items are places among a connection's evidence, `NO_ITEM` where there is none.
    """

    split: FloatArray
    stored: FloatArray
    for_end: Int64Array  # the item that weighs most for end to end, of those that show something intact
    same_data: Int64Array  # the item that says that data arrive as they left
    is_contradicted: BoolArray  # whether some evidence against end to end is more than a hint
    is_accused: BoolArray  # whether some evidence for a split is weighty, or shows that a middlebox acknowledges

    def are_regular(self, least_probability: FloatArray) -> BoolArray:
        """Which connections are end to end, by evidence that shows something intact."""
        is_decided = (self.split <= 1.0 - least_probability) & (self.split < least_probability)
        regular: BoolArray = is_decided & (self.for_end != NO_ITEM) & ~self.is_contradicted
        return regular

    def only_pass_data(self, least_probability: FloatArray) -> BoolArray:
        """Which connections are undecided although their data arrive as they left, with nothing against it."""
        undecided = (self.split < least_probability) & (self.split > 1.0 - least_probability)
        passing: BoolArray = undecided & ~self.is_accused & (self.same_data != NO_ITEM)
        return passing


def weigh(found: Found) -> Weighed:
    """Bayes' rule over the hypotheses for every connection (`weighing`)."""
    charged = _charged(found)
    split, stored = _probabilities(charged, found.count)
    most = np.full(found.count, -math.inf)
    for_end, same_data = (np.full(found.count, NO_ITEM) for _ in range(2))
    is_accused, is_contradicted = np.zeros((2, found.count), np.bool_)
    for part, item, nats, splits in charged:
        rows, toward_end = part.rows, nats[:, _END] - splits
        if part.form.outcome is Outcome.INTACT:
            is_leading = toward_end > most[rows]
            most[rows[is_leading]] = toward_end[is_leading]
            for_end[rows[is_leading]] = item[is_leading]
        else:
            is_contradicted[rows] |= nats[:, _END] <= -HINT_NATS
        acknowledges = part.form.finding is IdentityFinding.ACKS_NOBODY_SENT
        is_accused[rows] |= (-toward_end >= WEIGHTY_NATS) | acknowledges
        if part.form.finding is IdentityFinding.SAME_DATA:
            same_data[rows] = np.where(same_data[rows] == NO_ITEM, item, same_data[rows])
    return Weighed(split, stored, for_end, same_data, is_contradicted, is_accused)


class _Charged(NamedTuple):
    """Evidence that decides, one element a piece."""

    part: EvidenceColumns
    item: Int64Array  # its place among its connection's evidence
    nats: FloatArray  # what it charges each hypothesis (columns)
    splits: FloatArray  # and the hypothesis of a split that it charges least


def _charged(found: Found) -> list[_Charged]:
    """The evidence that decides, with what it charges."""
    charged = []
    items = np.zeros(found.count, np.int64)
    for part in found.parts:
        item = items[part.rows]
        items[part.rows] += 1
        if part.form.outcome is not Outcome.INAPPLICABLE:
            nats = part.strength[:, None] * np.array(_weight_of(part).nats)
            charged.append(_Charged(part, item, nats, nats[:, _END + 1 :].max(axis=1)))
    return charged


def _probabilities(charged: Iterable[_Charged], count: int) -> tuple[FloatArray, FloatArray]:
    """The probabilities of a split, and of a store given a split, of so many connections."""
    families: dict[str, FloatArray] = {}
    any_split: dict[str, FloatArray] = {}
    for part, _, nats, splits in charged:
        family, rows = _weight_of(part).family, part.rows
        worst = families.setdefault(family, np.zeros((count, len(Hypothesis))))
        worst[rows] = np.minimum(worst[rows], nats)
        least = any_split.setdefault(family, np.zeros(count))
        least[rows] = np.minimum(least[rows], splits)
    paid = _paid(families, count)
    logs = np.log([PRIOR[each] for each in Hypothesis]) + paid
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    of = shares / shares.sum(axis=1, keepdims=True)
    explained = PRIOR[Hypothesis.END] * np.exp(paid[:, _END])
    explained += (1.0 - PRIOR[Hypothesis.END]) * np.exp(
        sum([any_split[name] for name in sorted(any_split)], np.zeros(count))
    )
    fault = math.exp(FAULT) / (math.exp(FAULT) + explained)
    split = (1.0 - fault) * (1.0 - of[:, _END]) + fault * (1.0 - PRIOR[Hypothesis.END])
    stored = of[:, _STORE] / of[:, _END + 1 :].sum(axis=1)
    return split, stored


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
