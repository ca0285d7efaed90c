"""What a verdict is worth where it is not sure that the captures show the same transfer.

Two transfers taken for one look like a split to every method that compares, so a verdict can be no surer than the
pairing. Where that is more likely wrong than right, there is none.
"""

from __future__ import annotations

from detector.pair import Pair
from detector.verdict import Judgement, judge
from pepscope.results import Kind

#: Below this confidence in the pairing there is no verdict.
LEAST_CONFIDENCE = 0.5


def unless_mispaired(judgement: Judgement, pair: Pair) -> Judgement:
    """The judgement; where the pairing is doubtful, inconclusive and mixed with what is known without evidence."""
    confidence = pair.pairing_confidence
    if confidence >= LEAST_CONFIDENCE:
        return judgement
    prior = judge(()).probability
    mixed = {kind: confidence * judgement.probability[kind] + (1 - confidence) * prior[kind] for kind in prior}
    return Judgement(
        Kind.INCONCLUSIVE,
        mixed,
        f"It is not certain that the captures show the same transfer ({pair.pairing_ground}), and two transfers look "
        "like a split one: capture both ends of one transfer, with clocks set.",
    )
