"""Evidence to a verdict: each hypothesis pays for the findings that it explains badly; the posterior decides.

The hypotheses are end to end, relay, store and forward, and local acknowledgement (`pepscope.results.hypotheses`). A
finding charges each of them its row's nats times the evidence's strength. Methods that look at one cause (the timing of
acknowledgements, say) are not independent: of one family each hypothesis pays its worst charge once. Between families
charges add up, as for independent observations.

Hypotheses that all explain the evidence badly contradict it together. The explanation that is left is a fault of the
captures or of their pairing, whose prior `FAULT` is small; its probability moves the verdict towards what is known
without evidence. So a contradiction ends in inconclusive, while findings that only look contradictory (data segments
that are the same packets, acknowledgements that came too early) have a hypothesis that explains both.

A verdict needs a probability of at least `DECISION_PROBABILITY` for its class, end to end or split. Beside end to end
only hints may stand: what no harmless box explains contradicts it, however probable it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from detector.methods.handshake.examination import HandshakeFinding
from detector.methods.identity.findings import IdentityFinding
from detector.methods.teardown import TeardownFinding
from detector.options import DECISION_PROBABILITY
from pepscope.results.finding import Weighable, Weight, finding_of, is_missing
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.verdicts import Mechanism, Outcome, Verdict

#: Share of a split's probability from which its mechanism is named by a hypothesis.
MECHANISM_SHARE = 0.8

#: What methods that compare two captures find in one; `single_vantage` names the capture that is missing.
_NOTHING_TO_COMPARE = (
    IdentityFinding.NEEDS_SECOND_CAPTURE,
    HandshakeFinding.NEEDS_SECOND_CAPTURE,
    TeardownFinding.NEEDS_SECOND_CAPTURE,
)

#: Charges against end to end below this are hints: a harmless box or a habit of hosts explains each of them. Paths that
#: have one such box often have another, so that hints together say no more than the strongest hint could. No split of
#: the corpus or of the fresh training draws rests on hints alone.
HINT_NATS = 2.9

#: Evidence that weighs less is not named as one side of a contradiction, nor as a hint.
WEIGHTY_NATS = 1.0

#: What remains possible where data pass unchanged and nothing shows who makes the acknowledgements.
MAY_BE_LOCAL = (
    "The receiver may not have sent the acknowledgements: a middlebox that acknowledges locally also forwards the data "
    "segments unchanged."
)

#: Natural-log prior of a fault of the captures that fakes any evidence whatever: about one pair in a thousand.
FAULT = -7.0

#: A number for each hypothesis, in the order of `Hypothesis`: end to end, then the splits.
ByHypothesis = tuple[float, float, float, float]

_SPLITS = (Hypothesis.RELAY, Hypothesis.STORE, Hypothesis.LOCAL)
_PLACES = {hypothesis: place for place, hypothesis in enumerate(Hypothesis)}
_END = _PLACES[Hypothesis.END]
_NOTHING: ByHypothesis = (0.0, 0.0, 0.0, 0.0)
_LOG_PRIOR = tuple(math.log(PRIOR[each]) for each in Hypothesis)

_MECHANISM_OF = {
    Hypothesis.RELAY: Mechanism.RELAY,
    Hypothesis.STORE: Mechanism.STORE_AND_FORWARD,
    Hypothesis.LOCAL: Mechanism.LOCAL_ACKNOWLEDGEMENT,
}


#: Findings that data segments pass unchanged, while a middlebox may have made the acknowledgements.
PASSED_DATA = frozenset({IdentityFinding.SAME_DATA, IdentityFinding.ACKS_AHEAD, IdentityFinding.ACKS_NOBODY_SENT})


class Judgement(Struct, frozen=True):
    """Verdict, class probabilities (summing to one), the sentence that gives the reason, and how a split works."""

    verdict: Verdict
    probability: Mapping[Verdict, float]
    reason: str
    mechanism: Mechanism | None = None


class _Posterior(Struct, frozen=True):
    """Probability of each hypothesis, given that one of them holds, and that the captures are at fault instead."""

    of: Sequence[float]  # in the order of `Hypothesis`
    fault: float

    @property
    def split(self) -> float:
        """Probability that the connection is split, a fault counted as what is known without evidence."""
        prior = 1.0 - PRIOR[Hypothesis.END]
        return (1.0 - self.fault) * (1.0 - self.of[_END]) + self.fault * prior

    def share(self, hypothesis: Hypothesis) -> float:
        """Probability of one way of splitting, given a split."""
        return self.of[_PLACES[hypothesis]] / sum(self.of[_END + 1 :])


def weight_of(evidence: Weighable) -> Weight:
    """The weight of this evidence's finding, scaled by its strength."""
    return finding_of(evidence).weight.scaled(evidence.strength)


def judge(
    evidence: Iterable[Weighable],
    *,
    of_kind: Iterable[Weighable] | None = None,
    least_probability: float = DECISION_PROBABILITY,
) -> Judgement:
    """Weigh all evidence on one connection, or on several of which one thing is known: that one rule governs them.

    With `of_kind`, only that evidence decides between the ways of splitting, while all of `evidence` decides whether
    the connection is split. Below `least_probability` of the leading class the verdict is inconclusive.
    """
    everything = list(evidence)
    weighed = [item for item in everything if item.outcome is not Outcome.INAPPLICABLE]
    undecided = [item for item in everything if item.outcome is Outcome.INAPPLICABLE]
    on_kind = weighed if of_kind is None else [item for item in of_kind if item.outcome is not Outcome.INAPPLICABLE]
    posterior = _posterior(weighed)
    split = posterior.split
    kinds = posterior if of_kind is None else _posterior(on_kind)
    stored = kinds.share(Hypothesis.STORE)
    probability = {
        Verdict.REGULAR: 1.0 - split,
        Verdict.SPLIT_TCP: split * (1.0 - stored),
        Verdict.TCP_PROXY: split * stored,
    }
    if split >= least_probability:
        kind = Verdict.TCP_PROXY if stored > 0.5 else Verdict.SPLIT_TCP
        mechanism = _mechanism(on_kind, kinds)
        return Judgement(kind, probability, _split_reason(weighed, on_kind, kinds, mechanism), mechanism)
    if split <= 1.0 - least_probability and not any(map(_contradicts_end, weighed)):
        return Judgement(Verdict.REGULAR, probability, _regular_reason(weighed))
    return Judgement(Verdict.INCONCLUSIVE, probability, _inconclusive_reason(weighed, undecided))


def _contradicts_end(item: Weighable) -> bool:
    """Whether evidence for a split is more than a hint."""
    return item.outcome is Outcome.SPLIT and _nats(item)[_END] <= -HINT_NATS


def _posterior(weighed: Sequence[Weighable]) -> _Posterior:
    """Bayes' rule over the hypotheses; the fault competes with end to end and with a split of any mechanism."""
    families = _nats_by_family(weighed)
    paid = _charges(families)
    logs = [prior + charge for prior, charge in zip(_LOG_PRIOR, paid, strict=True)]
    most = max(logs)
    shares = [math.exp(value - most) for value in logs]
    total = sum(shares)
    end = PRIOR[Hypothesis.END]
    explained = end * math.exp(paid[_END]) + (1.0 - end) * math.exp(_any_split(families))
    fault = math.exp(FAULT)
    return _Posterior([share / total for share in shares], fault / (fault + explained))


def _nats_by_family(weighed: Iterable[Weighable]) -> list[list[ByHypothesis]]:
    """What each piece of evidence charges every hypothesis, by family, families in the order of their names."""
    families: dict[str, list[ByHypothesis]] = {}
    for item in weighed:
        families.setdefault(finding_of(item).weight.family, []).append(_nats(item))
    return [families[family] for family in sorted(families)]


def _nats(item: Weighable) -> ByHypothesis:
    """What the evidence charges every hypothesis."""
    share = item.strength
    end, relay, store, local = finding_of(item).weight.nats
    return end * share, relay * share, store * share, local * share


def _toward_split(item: Weighable) -> float:
    """The nats of `weight_of(item).split`: what the evidence weighs against end to end."""
    end, *splits = _nats(item)
    return max(splits) - end


def _any_split(families: Iterable[Sequence[ByHypothesis]]) -> float:
    """What a split pays whose mechanism may be another one for every finding, as in several connections of one rule."""
    return sum(min(0.0, *(max(nats[1:]) for nats in family)) for family in families)


def charges(weighed: Iterable[Weighable]) -> dict[Hypothesis, float]:
    """What each hypothesis pays (nats, 0 or below): its worst charge in every family, added up over families.

    End to end pays at most `HINT_NATS` for all its hints together.
    """
    return dict(zip(Hypothesis, _charges(_nats_by_family(weighed)), strict=True))


def _charges(families: Iterable[Sequence[ByHypothesis]]) -> list[float]:
    """`charges`, in the order of `Hypothesis`."""
    worst = [tuple(map(min, _NOTHING, *family)) for family in families]
    paid = [sum(column) for column in zip(_NOTHING, *worst, strict=True)]
    hints = sum(family[_END] for family in worst if family[_END] > -HINT_NATS)
    paid[_END] += max(hints, -HINT_NATS) - hints
    return paid


def _mechanism(on_kind: Sequence[Weighable], kinds: _Posterior) -> Mechanism:
    """What a finding names, the strongest first; else the hypothesis that has most of the split's probability."""
    named = [(_toward_split(item), name) for item in on_kind if (name := finding_of(item).weight.mechanism)]
    if named:
        return max(named, key=lambda each: each[0])[1]
    leading = max(_SPLITS, key=kinds.share)
    return _MECHANISM_OF[leading] if kinds.share(leading) >= MECHANISM_SHARE else Mechanism.UNDECIDED


def _strongest(weighed: Sequence[Weighable], sign: int) -> Weighable:
    """The evidence that weighs most for a split (`sign` 1) or for end to end (-1)."""
    return max(weighed, key=lambda item: sign * _toward_split(item))


def _regular_reason(weighed: Sequence[Weighable]) -> str:
    """The strongest evidence for end to end; if a middlebox makes acknowledgements, why that is harmless."""
    intact = [item for item in weighed if item.outcome is Outcome.INTACT]
    return _strongest(intact or weighed, -1).summary


def _split_reason(
    weighed: Sequence[Weighable], on_kind: Sequence[Weighable], kinds: _Posterior, mechanism: Mechanism
) -> str:
    """The strongest evidence for the split, and the evidence for its mechanism."""
    naming = [item for item in on_kind if finding_of(item).weight.mechanism is not None]
    leading = _strongest(naming or weighed, 1)
    changes = [item for item in weighed if item.finding is IdentityFinding.MAKER_CHANGES and item is not leading]
    if changes:
        return f"{leading.summary} {changes[0].summary}"
    if mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT:
        data = [item for item in weighed if item.finding in PASSED_DATA and item is not leading]
        passed = f"{max(data, key=lambda item: item.strength).summary} " if data else ""
        return (
            f"{passed}{leading.summary} A middlebox acknowledges before the receiver has the data, and forwards the "
            "data segments unchanged: the sender's control loop ends at the middlebox."
        )
    toward_store = kinds.share(Hypothesis.STORE) > 0.5
    sign = 1.0 if toward_store else -1.0
    supporting = [item for item in on_kind if item.outcome is Outcome.SPLIT and sign * weight_of(item).proxy > 0]
    if any(item is leading for item in supporting):
        return leading.summary
    if supporting:
        return f"{leading.summary} {max(supporting, key=lambda item: abs(weight_of(item).proxy)).summary}"
    if mechanism is Mechanism.UNDECIDED:
        return f"{leading.summary} The captures do not show whether it is a relay or a store-and-forward proxy."
    return leading.summary


def _inconclusive_reason(weighed: Sequence[Weighable], undecided: Sequence[Weighable]) -> str:
    """Name the contradiction, or what is missing."""
    weighty = [(toward, item) for item in weighed if abs(toward := _toward_split(item)) >= WEIGHTY_NATS]
    for_split = [item for toward, item in weighty if toward > 0]
    against = [item for toward, item in weighty if toward < 0]
    if for_split and against:
        return f"The evidence disagrees: {_strongest(for_split, 1).summary} But: {_strongest(against, -1).summary}"
    if for_split and _strongest(for_split, 1).finding is not IdentityFinding.ACKS_NOBODY_SENT:
        return f"A hint of a split, too weak for a verdict: {_strongest(for_split, 1).summary}"
    acknowledged = [item for item in weighed if item.finding is IdentityFinding.ACKS_NOBODY_SENT]
    if acknowledged:
        return (
            f"{acknowledged[0].summary} The captures do not show whether it acknowledges before the data arrive at "
            "the receiver, which would split the connection, or afterwards, which is harmless."
        )
    passed = [item for item in weighed if item.finding is IdentityFinding.SAME_DATA]
    if passed:
        return f"{passed[0].summary} {MAY_BE_LOCAL}"
    missing = [item for item in undecided if is_missing(item)]
    # That two captures cannot be compared says no more than which one is missing.
    named = [item for item in missing if not any(item.finding is each for each in _NOTHING_TO_COMPARE)] or missing
    return " ".join(dict.fromkeys(item.summary for item in named)) or "No method found enough to decide."
