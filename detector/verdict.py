"""Evidence to a verdict: one table says what each finding is worth, one function adds it up.

Every finding carries two weights, natural-log likelihood ratios at full strength:

- `split`: P(finding | split in any way) against P(finding | end to end); negative speaks for end to end;
- `proxy`: P(finding | TCP proxy, store-and-forward) against P(finding | Split-TCP); only matters once split.

An evidence's weight is multiplied by its strength. Methods that look at the same cause (the timing of acknowledgements,
say) are not independent: of one family only the strongest voice on each side counts. Between families weights add up,
as for independent witnesses. A verdict needs a probability of at least `DECISION_PROBABILITY`; what stays below is
inconclusive. Absence of violations weighs little, because a split point that never queues shows none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pepscope.results import Evidence, Kind, Outcome

#: Below this probability of the leading class (end to end, or split in any way) the verdict is inconclusive.
DECISION_PROBABILITY = 0.95

#: Split connections without evidence on the kind are Split-TCP twice as often as store-and-forward: seed deployments
#: (Wei et al., Table I) show six Split-TCP entries against four TCP proxy entries, and store-and-forward leaves marks
#: on all but short transfers.
PRIOR_PROXY_LOGIT = -0.7

#: No preference between end to end and split before the evidence.
PRIOR_SPLIT_LOGIT = 0.0


@dataclass(frozen=True, slots=True)
class Weight:
    """What a finding is worth at strength 1: log-likelihood ratios, and the family whose voices overlap."""

    family: str
    split: float
    proxy: float = 0.0


#: finding -> family, weight for split against end to end, weight for TCP proxy against Split-TCP.
FINDINGS: Mapping[str, Weight] = {
    # identity: nats of its own likelihood ratio are far beyond these; the cap stands for what its model leaves out
    "same-packets": Weight("identity", -8.0),
    "other-packets": Weight("identity", 8.0),
    "acks-nobody-sent": Weight("identity", -8.0),
    # TCP here, UDP with the same bytes there; the kind is read off when they left
    "transport-changed": Weight("identity", 8.0),
    "transport-changed-relayed": Weight("identity", 8.0, -4.0),
    "transport-changed-stored": Weight("identity", 8.0, 4.0),
    # timing: when acknowledgements came, and how far the sender got by them; one cause, one family
    "acks-before-data": Weight("timing", 6.0),
    "acks-after-data": Weight("timing", -1.0),
    "acks-cross-whole-path": Weight("timing", -3.0),
    "sender-in-step": Weight("timing", -1.0),
    "sender-ahead": Weight("timing", 6.0, -1.5),
    "sender-far-ahead": Weight("timing", 6.0, 3.0),
    "stored-before-forwarded": Weight("timing", 6.0, 6.0),
    # acknowledgements held back on purpose: needs no clock, so it stands beside the timing
    "acks-not-from-receiver": Weight("held-acks", 7.0),
    "acks-only-from-receiver": Weight("held-acks", -5.0),
    # the window at the sender against the one that the receiver advertised
    "window-alternates": Weight("window", 4.0, -4.0),
    "window-open-receiver-behind": Weight("window", 3.0, 1.0),
    # other bytes: only somebody who reassembles the stream can change it
    "rewritten-headers": Weight("content", 7.0),
    "other-bytes": Weight("content", 5.0, 1.5),
    "other-size": Weight("content", 4.0, 1.5),
    "served-from-cache": Weight("content", 5.0, 6.0),
    # active: TLS ended by somebody who is not the server
    "another-certificate": Weight("content", 7.0),
    # what aborts leave behind
    "acknowledged-beyond-abort": Weight("teardown", 5.0),
    "abort-end-to-end": Weight("teardown", -0.5),
    "leg-outlives-abort": Weight("teardown", 5.0),
    # active: firewalls that answer SYNs in a server's stead write handshakes anew, and filters answer in a stream that
    # they do not split, so neither decides alone
    "syn-of-another-stack": Weight("handshake", 2.5),
    "handshake-answered-nearer": Weight("handshake", 2.5),
    "handshake-answered-at-the-end": Weight("handshake", -1.0),
    "handshake-shorter-than-path": Weight("handshake", 2.5),
    "handshake-as-long-as-path": Weight("handshake", -0.5),
    "dead-port-answered": Weight("handshake", 2.5),
    "dead-port-silent": Weight("handshake", -0.5),
    "answered-for-the-server": Weight("answers", 2.5),
    # active: somebody took payload that the receiver certainly had not
    "dead-port-took-data": Weight("taken-in-between", 6.0),
    "more-taken-than-receiver-holds": Weight("taken-in-between", 6.0),
    "no-more-taken-than-receiver-holds": Weight("taken-in-between", -1.0),
}


#: Findings of methods that could not decide, whose sentences say what an inconclusive verdict lacks.
TELLING = frozenset(
    {"needs-second-capture", "hints-of-split", "no-counterpart", "too-alike", "too-few-segments", "segments-in-udp"}
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict, class probabilities (summing to one) and the sentence that gives the reason."""

    verdict: Kind
    probability: Mapping[Kind, float]
    reason: str


def weight_of(evidence: Evidence) -> Weight:
    """The table's row for this evidence, scaled by its strength."""
    row = FINDINGS[evidence.finding]
    return Weight(row.family, row.split * evidence.strength, row.proxy * evidence.strength)


def judge(evidence: Iterable[Evidence], *, of_kind: Iterable[Evidence] | None = None) -> Judgement:
    """Weigh all evidence on one connection, or on several of which one thing is known: that one rule governs them.

    With `of_kind`, only that evidence tells a TCP proxy from Split-TCP, while all of `evidence` tells whether anything
    splits.
    """
    everything = list(evidence)
    spoken = [item for item in everything if item.outcome is not Outcome.INAPPLICABLE]
    silent = [item for item in everything if item.outcome is Outcome.INAPPLICABLE]
    telling = spoken if of_kind is None else [item for item in of_kind if item.outcome is not Outcome.INAPPLICABLE]
    split_logit = PRIOR_SPLIT_LOGIT + _combined((w.family, w.split) for w in map(weight_of, spoken))
    proxy_logit = PRIOR_PROXY_LOGIT + _combined((w.family, w.proxy) for w in map(weight_of, telling))
    split, proxy = _logistic(split_logit), _logistic(proxy_logit)
    probability = {
        Kind.REGULAR: 1.0 - split,
        Kind.SPLIT_TCP: split * (1.0 - proxy),
        Kind.TCP_PROXY: split * proxy,
    }
    return _decide(spoken, silent, telling, split, proxy, probability)


def _combined(voices: Iterable[tuple[str, float]]) -> float:
    """Strongest voice on each side of each family, added up over families."""
    best: dict[tuple[str, bool], float] = {}
    for family, value in voices:
        key = (family, value > 0)
        if abs(value) > abs(best.get(key, 0.0)):
            best[key] = value
    return sum(best.values())


def _logistic(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))


def _decide(
    spoken: list[Evidence],
    silent: list[Evidence],
    telling: list[Evidence],
    split: float,
    proxy: float,
    probability: Mapping[Kind, float],
) -> Judgement:
    if split >= DECISION_PROBABILITY:
        kind = Kind.TCP_PROXY if proxy > 0.5 else Kind.SPLIT_TCP
        return Judgement(kind, probability, _split_reason(spoken, telling, proxy))
    if split <= 1.0 - DECISION_PROBABILITY:
        return Judgement(Kind.REGULAR, probability, _strongest(spoken, -1).summary)
    return Judgement(Kind.INCONCLUSIVE, probability, _inconclusive_reason(spoken, silent))


def _strongest(spoken: list[Evidence], sign: int) -> Evidence:
    """The evidence that says most for split (`sign` 1) or for end to end (-1)."""
    return max(spoken, key=lambda item: sign * weight_of(item).split)


def _split_reason(spoken: list[Evidence], telling: list[Evidence], proxy: float) -> str:
    """The strongest evidence for the split, and what tells the kind."""
    leading = _strongest(spoken, 1)
    kinds = [item for item in telling if item is not leading and weight_of(item).proxy * (proxy - 0.5) > 0]
    if any(item is leading for item in telling) and weight_of(leading).proxy * (proxy - 0.5) > 0:
        return leading.summary
    if kinds:
        return f"{leading.summary} {max(kinds, key=lambda item: abs(weight_of(item).proxy)).summary}"
    return f"{leading.summary} Nothing tells a relay from a store-and-forward proxy here."


def _inconclusive_reason(spoken: list[Evidence], silent: list[Evidence]) -> str:
    """Name the contradiction, or what is missing."""
    weighty = [item for item in spoken if abs(weight_of(item).split) >= 1.0]
    for_split = [item for item in weighty if weight_of(item).split > 0]
    against = [item for item in weighty if weight_of(item).split < 0]
    if for_split and against:
        return f"The evidence disagrees: {_strongest(for_split, 1).summary} But: {_strongest(against, -1).summary}"
    if for_split:
        return f"A hint of a split, too weak for a verdict: {_strongest(for_split, 1).summary}"
    return " ".join(dict.fromkeys(item.summary for item in silent if item.finding in TELLING)) or (
        "No method found enough to decide."
    )
