"""Packet identity over a group: each connection compared too little, and all of them together may be enough.

The connections are independent draws, so their natural-log likelihood ratios add up, field by field. What one
middlebox, or one habit of two stacks, does to every connection alike is not independent. Such a cause counts once,
however many connections show it:

- a middlebox that gives packets its own IP IDs or removes timestamps, one that regulates acknowledgements and windows,
  one that resegments: each is on the path of one connection in a hundred, so that all disagreement it explains is
  bounded by ln 100;
- two stacks of one kind push, acknowledge and widen windows alike, and may have one clock: all agreement there together
  is worth e^3, as in one connection, and never makes a group end to end;
- one counter numbers the packets of all connections of a host: agreement of IP IDs is worth no more than its 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from detector.groups.membership import Group
from detector.methods.identity import (
    DECISIVE_NATS,
    FITTED_NATS,
    IP_ID_NATS,
    REWRITABLE_NATS,
    ClassField,
    class_field_name,
    field_nats,
)
from detector.methods.identity.findings import NAME, IdentityFinding
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Evidence

#: Findings of comparisons that decided nothing.
_UNDECIDED = frozenset({IdentityFinding.TOO_ALIKE, IdentityFinding.TOO_FEW_SEGMENTS})

#: The field whose agreement adds up over connections, up to the bits of one counter; in other fields it is a habit.
_COUNTED = "ip-id"

#: Fields whose disagreement one middlebox explains in all connections; the fields of one middlebox are bounded
#: together.
_BOXES: Mapping[str, str] = {
    "ip-id": "rewrites",
    "timestamps-present": "rewrites",
    "timestamps-added": "adds",
    "window": "regulates",
    "acknowledgement": "regulates",
    "boundaries": "cuts",
    "pieces": "cuts",
}

#: Fields whose disagreement only another stack explains: each connection is an independent observation.
_INDEPENDENT = frozenset({"push"})

#: One connection's log-likelihood ratio for same packets, by class of segments and field, in nats.
FieldNats = Mapping[ClassField, float]


def pooled_identity(group: Group) -> Evidence | None:
    """What the connections whose own comparison was undecided show together; None where that is not enough either.

    Findings, as of one connection: `same-packets` and `same-data` (intact), `other-packets` and
    `other-acknowledgements` (split).
    """
    are_undecided = group.pieces.are(lambda form: form.method == NAME and form.finding in _UNDECIDED)
    undecided = {
        int(group.pieces.owner[at]): nats
        for at in np.flatnonzero(are_undecided).tolist()
        if (nats := field_nats(group.piece(at).numbers))
    }
    if len(undecided) < 2:
        return None
    each = list(undecided.values())
    pooled = _pool(each)
    total = sum(pooled.values())
    if abs(total) < DECISIVE_NATS or _are_divided(each):
        return None
    data, acks = (sum(nats for field, nats in pooled.items() if field.of == of) for of in ("data", "acks"))
    strength = logistic(abs(total))
    numbers = {
        "pooled_nats": round(total, 2),
        "pooled_connections": len(undecided),
        **{class_field_name(field): round(nats, 2) for field, nats in sorted(pooled.items())},
    }
    fields = _strongest_fields(pooled, total)
    if total > 0:
        same = IdentityFinding.SAME_PACKETS if acks >= DECISIVE_NATS else IdentityFinding.SAME_DATA
        return same.evidence(
            NAME, strength,
            f"In {len(undecided):,} connections, none of which decides alone, the segments that arrive are the "
            f"segments that left: together {fields} agree too often for segments of another sender.", numbers,
        )  # fmt: skip
    confidence = min(group.results.pairing_confidence(int(group.places[owner])) for owner in undecided)
    other = IdentityFinding.OTHER_PACKETS if data < 0 else IdentityFinding.OTHER_ACKNOWLEDGEMENTS
    return other.evidence(
        NAME, strength * confidence,
        f"In {len(undecided):,} connections, none of which decides alone, segments arrive that the far end never sent: "
        f"together {fields} differ too often for segments of the far end.", numbers,
    )  # fmt: skip


def _pool(connections: Sequence[FieldNats]) -> dict[ClassField, float]:
    """The sum over connections by class and field, with what one cause explains counted once."""
    fields = sorted({field for nats in connections for field in nats})
    by_field = {field: [nats[field] for nats in connections if field in nats] for field in fields}
    total = {field: _for_other(field.field, nats) for field, nats in by_field.items()}
    for box in sorted(set(_BOXES.values())):
        explained = {field: nats for field, nats in total.items() if _BOXES.get(field.field) == box and nats < 0}
        share = min(1.0, REWRITABLE_NATS / -sum(explained.values())) if explained else 1.0
        total |= {field: nats * share for field, nats in explained.items()}
    for field, nats in _for_same(by_field).items():
        total[field] += nats
    return total


def _for_same(by_field: Mapping[ClassField, Sequence[float]]) -> dict[ClassField, float]:
    """The weight of agreement over all connections by class and field; of habits only the strongest one counts."""
    agreeing = {field: sum(nats for nats in each if nats > 0) for field, each in by_field.items()}
    worth = {field: min(IP_ID_NATS, nats) for field, nats in agreeing.items() if field.field == _COUNTED}
    habits = {field: max(by_field[field]) for field, nats in agreeing.items() if field.field != _COUNTED and nats > 0}
    if habits:
        strongest = max(habits, key=lambda field: habits[field])
        worth[strongest] = min(FITTED_NATS, habits[strongest])
    return worth


def _for_other(field: str, by_connection: Sequence[float]) -> float:
    """The weight of disagreement in a field over all connections, before what middleboxes explain is bounded."""
    differing = [nats for nats in by_connection if nats < 0]
    if field in _INDEPENDENT or field in _BOXES:
        return sum(differing)
    return min(differing, default=0.0)


def _are_divided(connections: Sequence[FieldNats]) -> bool:
    """Whether some of the connections together would decide for end to end and the others for a split."""
    sides = ([nats for nats in connections if (sum(nats.values()) > 0) is wanted] for wanted in (True, False))
    for_same, for_other = (sum(_pool(side).values()) for side in sides)
    return for_same >= DECISIVE_NATS and for_other <= -DECISIVE_NATS


def _strongest_fields(pooled: FieldNats, total: float) -> str:
    """The fields with the largest weight for the conclusion, in words."""
    sums: dict[str, float] = {}
    for field, nats in pooled.items():
        sums[field.field] = sums.get(field.field, 0.0) + nats
    ranked = sorted((name for name, nats in sums.items() if nats * total > 0), key=lambda name: -abs(sums[name]))
    words = [name.replace("-", " ") for name in ranked[:3]]
    return " and ".join(([", ".join(words[:-1])] if words[:-1] else []) + words[-1:])
