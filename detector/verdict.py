"""Evidence to a verdict: each hypothesis pays for the findings that it explains badly; the posterior decides.

The hypotheses are end to end, relay, store and forward, and local acknowledgement (`detector.weights`). A finding
charges each of them its row's nats times the evidence's strength. Methods that look at one cause (the timing of
acknowledgements, say) are not independent: of one family each hypothesis pays its worst charge once. Between families
charges add up, as for independent witnesses.

Hypotheses that all explain the evidence badly contradict it together. The explanation that is left is a fault of the
captures or of their pairing, whose prior `FAULT` is small; its probability moves the verdict towards what is known
without evidence. So a contradiction ends in inconclusive, while findings that only look contradictory (data segments
that are the same packets, acknowledgements that came too early) have a hypothesis that explains both.

A verdict needs a probability of at least `DECISION_PROBABILITY` for its class, end to end or split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from detector.weights import FINDINGS, PRIOR, Hypothesis, Weight
from pepscope.results import Evidence, Kind, Mechanism, Outcome

#: Below this probability of the leading class (end to end, or split in any way) the verdict is inconclusive.
DECISION_PROBABILITY = 0.95

#: Share of a split's probability from which its mechanism is named by a hypothesis.
MECHANISM_SHARE = 0.8

#: Natural-log prior of a fault of the captures that fakes any evidence whatever: about one pair in a thousand.
FAULT = -7.0

_SPLITS = (Hypothesis.RELAY, Hypothesis.STORE, Hypothesis.LOCAL)

_MECHANISM_OF = {
    Hypothesis.RELAY: Mechanism.RELAY,
    Hypothesis.STORE: Mechanism.STORE_AND_FORWARD,
    Hypothesis.LOCAL: Mechanism.LOCAL_ACKNOWLEDGEMENT,
}

#: Findings of methods that could not decide, whose sentences say what an inconclusive verdict lacks.
TELLING = frozenset(
    {
        "one-vantage-point",
        "needs-second-capture",
        "hints-of-split",
        "no-counterpart",
        "too-alike",
        "too-few-segments",
        "segments-in-udp",
        "encrypted-candidate",
    }
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict, class probabilities (summing to one), the sentence that gives the reason, and how a split works."""

    verdict: Kind
    probability: Mapping[Kind, float]
    reason: str
    mechanism: Mechanism | None = None


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Probability of each hypothesis, given that one of them holds, and that the captures are at fault instead."""

    of: Mapping[Hypothesis, float]
    fault: float

    @property
    def split(self) -> float:
        """Probability that the connection is split, a fault counted as what is known without evidence."""
        prior = 1.0 - PRIOR[Hypothesis.END]
        return (1.0 - self.fault) * (1.0 - self.of[Hypothesis.END]) + self.fault * prior

    def share(self, hypothesis: Hypothesis) -> float:
        """Probability of one way of splitting, given a split."""
        return self.of[hypothesis] / sum(self.of[each] for each in _SPLITS)


def weight_of(evidence: Evidence) -> Weight:
    """The table's row for this evidence, scaled by its strength."""
    row, share = FINDINGS[evidence.finding], evidence.strength
    return replace(row, end=row.end * share, relay=row.relay * share, store=row.store * share, local=row.local * share)


def judge(
    evidence: Iterable[Evidence],
    *,
    of_kind: Iterable[Evidence] | None = None,
    least_probability: float = DECISION_PROBABILITY,
) -> Judgement:
    """Weigh all evidence on one connection, or on several of which one thing is known: that one rule governs them.

    With `of_kind`, only that evidence tells the ways of splitting apart, while all of `evidence` tells whether anything
    splits. Below `least_probability` of the leading class the verdict is inconclusive.
    """
    everything = list(evidence)
    spoken = [item for item in everything if item.outcome is not Outcome.INAPPLICABLE]
    silent = [item for item in everything if item.outcome is Outcome.INAPPLICABLE]
    telling = spoken if of_kind is None else [item for item in of_kind if item.outcome is not Outcome.INAPPLICABLE]
    split = _posterior(spoken).split
    kinds = _posterior(telling)
    stored = kinds.share(Hypothesis.STORE)
    probability = {
        Kind.REGULAR: 1.0 - split,
        Kind.SPLIT_TCP: split * (1.0 - stored),
        Kind.TCP_PROXY: split * stored,
    }
    if split >= least_probability:
        kind = Kind.TCP_PROXY if stored > 0.5 else Kind.SPLIT_TCP
        mechanism = _mechanism(telling, kinds)
        return Judgement(kind, probability, _split_reason(spoken, telling, kinds, mechanism), mechanism)
    if split <= 1.0 - least_probability:
        return Judgement(Kind.REGULAR, probability, _regular_reason(spoken))
    return Judgement(Kind.INCONCLUSIVE, probability, _inconclusive_reason(spoken, silent))


def _posterior(spoken: Sequence[Evidence]) -> _Posterior:
    """Bayes' rule over the hypotheses; the fault competes with end to end and with a split of any mechanism."""
    paid = charges(spoken)
    logs = {each: math.log(PRIOR[each]) + charge for each, charge in paid.items()}
    most = max(logs.values())
    shares = {each: math.exp(value - most) for each, value in logs.items()}
    total = sum(shares.values())
    end = PRIOR[Hypothesis.END]
    explained = end * math.exp(paid[Hypothesis.END]) + (1.0 - end) * math.exp(_any_split(spoken))
    fault = math.exp(FAULT)
    return _Posterior({each: share / total for each, share in shares.items()}, fault / (fault + explained))


def _any_split(spoken: Iterable[Evidence]) -> float:
    """What a split pays whose mechanism may be another one for every finding, as in several connections of one rule."""
    worst: dict[str, float] = {}
    for item in spoken:
        row = weight_of(item)
        worst[row.family] = min(worst.get(row.family, 0.0), max(row.of(each) for each in _SPLITS))
    return sum(worst[family] for family in sorted(worst))


def charges(spoken: Iterable[Evidence]) -> dict[Hypothesis, float]:
    """What each hypothesis pays (nats, 0 or below): its worst charge in every family, added up over families."""
    worst: dict[tuple[Hypothesis, str], float] = {}
    for item in spoken:
        row = weight_of(item)
        for each in Hypothesis:
            worst[each, row.family] = min(row.of(each), worst.get((each, row.family), 0.0))
    paid = dict.fromkeys(Hypothesis, 0.0)
    for (each, _), value in sorted(worst.items()):
        paid[each] += value
    return paid


def _mechanism(telling: Sequence[Evidence], kinds: _Posterior) -> Mechanism:
    """What a finding names, the strongest first; else the hypothesis that has most of the split's probability."""
    named = [(weight_of(item).split, row.mechanism) for item in telling if (row := weight_of(item)).mechanism]
    if named:
        return max(named, key=lambda each: each[0])[1] or Mechanism.UNDECIDED
    leading = max(_SPLITS, key=kinds.share)
    return _MECHANISM_OF[leading] if kinds.share(leading) >= MECHANISM_SHARE else Mechanism.UNDECIDED


def _strongest(spoken: Sequence[Evidence], sign: int) -> Evidence:
    """The evidence that says most for a split (`sign` 1) or for end to end (-1)."""
    return max(spoken, key=lambda item: sign * weight_of(item).split)


def _regular_reason(spoken: Sequence[Evidence]) -> str:
    """The strongest evidence for end to end; with a box that makes acknowledgements, what clears it."""
    intact = [item for item in spoken if item.outcome is Outcome.INTACT]
    return _strongest(intact or spoken, -1).summary


def _split_reason(
    spoken: Sequence[Evidence], telling: Sequence[Evidence], kinds: _Posterior, mechanism: Mechanism
) -> str:
    """The strongest evidence for the split, and what tells how it works."""
    leading = _strongest(spoken, 1)
    changes = [item for item in spoken if item.finding == "maker-changes" and item is not leading]
    if changes:
        return f"{leading.summary} {changes[0].summary}"
    if mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT:
        data = [item for item in spoken if item.finding in ("same-data", "acks-nobody-sent")]
        passed = f"{max(data, key=lambda item: item.strength).summary} " if data else ""
        return (
            f"{passed}{leading.summary} A box acknowledges in the receiver's name and passes the data on untouched: "
            "the sender's control loop ends there."
        )
    toward_store = kinds.share(Hypothesis.STORE) > 0.5
    sign = 1.0 if toward_store else -1.0
    said = [item for item in telling if item.outcome is Outcome.SPLIT and sign * weight_of(item).proxy > 0]
    if any(item is leading for item in said):
        return leading.summary
    if said:
        return f"{leading.summary} {max(said, key=lambda item: abs(weight_of(item).proxy)).summary}"
    if mechanism is Mechanism.UNDECIDED:
        return f"{leading.summary} Nothing tells a relay from a store-and-forward proxy here."
    return leading.summary


def _inconclusive_reason(spoken: Sequence[Evidence], silent: Sequence[Evidence]) -> str:
    """Name the contradiction, or what is missing."""
    weighty = [item for item in spoken if abs(weight_of(item).split) >= 1.0]
    for_split = [item for item in weighty if weight_of(item).split > 0]
    against = [item for item in weighty if weight_of(item).split < 0]
    if for_split and against:
        return f"The evidence disagrees: {_strongest(for_split, 1).summary} But: {_strongest(against, -1).summary}"
    if for_split and _strongest(for_split, 1).finding != "acks-nobody-sent":
        return f"A hint of a split, too weak for a verdict: {_strongest(for_split, 1).summary}"
    acknowledged = [item for item in spoken if item.finding == "acks-nobody-sent"]
    if acknowledged:
        return (
            f"{acknowledged[0].summary} Nothing shows whether it acknowledges before the data arrive, which would "
            "split the connection, or afterwards, which is harmless."
        )
    passed = [item for item in spoken if item.finding == "same-data"]
    if passed:
        return (
            f"{passed[0].summary} The acknowledgements are not known to be the receiver's, and a box that acknowledges "
            "in its name passes data on untouched."
        )
    return " ".join(dict.fromkeys(item.summary for item in silent if item.finding in TELLING)) or (
        "No method found enough to decide."
    )
