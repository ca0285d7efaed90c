"""Verdicts on pairs of which it is uncertain that the captures show the same transfer.

Two transfers taken for one look like a split to every method that compares, so a verdict can be no surer than the
pairing. Below the least confidence there is none. Packets that are the same at both vantage points need no other
ground: no two transfers share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from detector.methods.identity.findings import IdentityFinding
from detector.pair import Pair
from detector.pairing.confidence import WHEN_THE_SAME
from detector.streams.loaded import confidence_of, option_of
from detector.verdict.found import Found
from detector.verdict.weighing import Judgement, judge
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import Evidence, Verdict

#: Findings that the two captures hold the same packets.
SHARED_PACKETS = frozenset({
    IdentityFinding.SAME_PACKETS, IdentityFinding.SAME_DATA, IdentityFinding.ACKS_AHEAD,
    IdentityFinding.ACKS_NOBODY_SENT,
})  # fmt: skip


#: Clocks that synchronise themselves are nearer, and so are the two ends of one transfer (s).
_WORTH_NAMING_S = 10.0


def are_doubtful(pairs: Sequence[Pair], found: Found) -> BoolArray:
    """Of which pairs it is not sure enough that the captures show the same transfer."""
    doubtful = confidence_of(pairs) < np.array(option_of(pairs, lambda options: options.least_pairing_confidence))
    for part in found.parts:
        if part.form.finding in SHARED_PACKETS:
            doubtful[part.rows] = False
    return doubtful


def is_doubtful(pair: Pair, evidence: Iterable[Evidence]) -> bool:
    """The same of one pair, by its evidence in words."""
    sure = pair.pairing_confidence >= pair.options.least_pairing_confidence
    return not sure and not any(item.finding in SHARED_PACKETS for item in evidence)


def allow_for_mispairing(judgement: Judgement, pair: Pair) -> Judgement:
    """The judgement on a doubtful pair: inconclusive, with probabilities mixed with the prior."""
    confidence = pair.pairing_confidence
    prior = judge(()).probability
    mixed = {kind: confidence * judgement.probability[kind] + (1 - confidence) * prior[kind] for kind in prior}
    return Judgement(
        Verdict.INCONCLUSIVE,
        mixed,
        f"The captures may show two different transfers ({pair.pairing_ground}{_apart(pair)}), and these look like one "
        f"split transfer: capture one transfer at both ends, with synchronised clocks{_remedy(pair)}.",
    )


def _apart(pair: Pair) -> str:
    """How far apart the connections begin by clocks of which one may be wrong, by hours where its time zone is."""
    starts_ns = [vantage.connection.first_time_ns for vantage in pair.vantages]
    apart_s = (max(starts_ns) - min(starts_ns)) / 1e9  # 0 where the other end is a flow in UDP
    return f": they begin {apart_s:,.0f} s apart" if apart_s >= _WORTH_NAMING_S else ""


def _remedy(pair: Pair) -> str:
    """What to say to pepscope where the transfers are known to be one."""
    helps = pair.pairing_ground in WHEN_THE_SAME and not pair.options.same_transfers
    return ", or give --same-transfers where a clock alone is wrong" if helps else ""
