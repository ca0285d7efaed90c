"""Verdicts on pairs of which it is uncertain that the captures show the same transfer.

Two transfers taken for one look like a split to every method that compares, so a verdict can be no surer than the
pairing. Below the least confidence there is none. Packets that are the same at both vantage points need no other
ground: no two transfers share them.
"""

from __future__ import annotations

from collections.abc import Iterable

from detector.methods.identity.findings import IdentityFinding
from detector.pair import Pair
from detector.verdict.weighing import Judgement, judge
from pepscope.results.verdicts import Verdict

#: Findings that the two captures hold the same packets.
SHARED_PACKETS = frozenset({IdentityFinding.SAME_PACKETS, IdentityFinding.SAME_DATA, IdentityFinding.ACKS_NOBODY_SENT})


def is_doubtful(pair: Pair, findings: Iterable[str]) -> bool:
    """Whether it is not sure enough that the captures show the same transfer."""
    sure = pair.pairing_confidence >= pair.options.least_pairing_confidence
    return not sure and not any(finding in SHARED_PACKETS for finding in findings)


def allow_for_mispairing(judgement: Judgement, pair: Pair, findings: Iterable[str]) -> Judgement:
    """The judgement; if the pairing is doubtful, inconclusive, with probabilities mixed with the prior."""
    confidence = pair.pairing_confidence
    if not is_doubtful(pair, findings):
        return judgement
    prior = judge(()).probability
    mixed = {kind: confidence * judgement.probability[kind] + (1 - confidence) * prior[kind] for kind in prior}
    return Judgement(
        Verdict.INCONCLUSIVE,
        mixed,
        f"The captures may show two different transfers ({pair.pairing_ground}), and these look like one split "
        "transfer: capture one transfer at both ends, with synchronised clocks.",
    )
