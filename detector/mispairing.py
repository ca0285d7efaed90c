"""What a verdict is worth where it is not sure that the captures show the same transfer.

Two transfers taken for one look like a split to every method that compares, so a verdict can be no surer than the
pairing. Below the least confidence there is none. Packets that are the same at both vantage points need no other
ground: no two transfers share them.
"""

from __future__ import annotations

from collections.abc import Iterable

from detector.pair import Pair
from detector.verdict import Judgement, judge
from pepscope.results import Evidence, Kind

#: Findings that the two captures hold the same packets.
SHARED_PACKETS = frozenset({"same-packets", "same-data", "acks-nobody-sent"})


def is_doubtful(pair: Pair, evidence: Iterable[Evidence]) -> bool:
    """Whether it is not sure enough that the captures show the same transfer."""
    sure = pair.pairing_confidence >= pair.options.least_pairing_confidence
    return not sure and not any(item.finding in SHARED_PACKETS for item in evidence)


def unless_mispaired(judgement: Judgement, pair: Pair, evidence: Iterable[Evidence]) -> Judgement:
    """The judgement; where the pairing is doubtful, inconclusive and mixed with what is known without evidence."""
    confidence = pair.pairing_confidence
    if not is_doubtful(pair, evidence):
        return judgement
    prior = judge(()).probability
    mixed = {kind: confidence * judgement.probability[kind] + (1 - confidence) * prior[kind] for kind in prior}
    return Judgement(
        Kind.INCONCLUSIVE,
        mixed,
        f"It is not certain that the captures show the same transfer ({pair.pairing_ground}), and two transfers look "
        "like a split one: capture both ends of one transfer, with clocks set.",
    )
