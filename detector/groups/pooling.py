"""Packet identity over a group: each connection compared too little, and all of them together may be enough.

The connections are independent draws, so their natural-log likelihood ratios add up, field by field. What is not
independent is what one box, or one habit of two stacks, does to every connection alike. Such a cause counts once,
however many connections show it:

- a box that gives packets IP IDs of its own or takes timestamps away, one that regulates acknowledgements and windows,
  one that cuts segments anew: each passes one connection in a hundred, so that all disagreement it explains is bounded
  by ln 100;
- two stacks of one kind push, acknowledge and widen windows alike, and may have one clock: all agreement there together
  is worth e^3, as in one connection, and never makes a group end to end;
- one counter numbers the packets of all connections of a host: agreement of IP IDs is worth no more than its 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from detector.groups.membership import Member
from detector.methods.identity import (
    DECISIVE_NATS,
    FITTED_NATS,
    IP_ID_NATS,
    REWRITABLE_NATS,
    Voice,
    field_nats,
    voice_name,
)
from pepscope.results import Evidence, Outcome

METHOD = "identity"

#: Findings of comparisons that decided nothing.
_UNDECIDED = frozenset({"too-alike", "too-few-segments"})

#: The field whose agreement adds up over connections, as far as one counter explains it; elsewhere it is a habit.
_COUNTED = "ip-id"

#: Fields whose disagreement one box explains in all connections; those of one box are bounded together.
_BOXES: Mapping[str, str] = {
    "ip-id": "rewrites",
    "timestamps-present": "rewrites",
    "window": "regulates",
    "acknowledgement": "regulates",
    "boundaries": "cuts",
}

#: Fields whose disagreement nothing but another stack explains: each connection is a witness of its own.
_INDEPENDENT = frozenset({"push"})

#: What one connection says, by class of segments and field, in nats for same packets.
Voices = Mapping[Voice, float]


def pooled_identity(members: Sequence[Member]) -> Evidence | None:
    """What the members whose own comparison was undecided show together; None where that is not enough either.

    Findings, as of one connection: `same-packets` and `same-data` (intact), `other-packets` and
    `other-acknowledgements` (split).
    """
    undecided = [
        (member, nats)
        for member in members
        for item in member.result.evidence
        if item.method == METHOD and item.finding in _UNDECIDED and (nats := field_nats(item.numbers))
    ]
    if len(undecided) < 2:
        return None
    pooled = _pool([nats for _, nats in undecided])
    total = sum(pooled.values())
    if abs(total) < DECISIVE_NATS or _are_divided([nats for _, nats in undecided]):
        return None
    data, acks = (sum(nats for voice, nats in pooled.items() if voice.of == of) for of in ("data", "acks"))
    strength = 1.0 / (1.0 + math.exp(-abs(total)))
    numbers = {
        "pooled_nats": round(total, 2),
        "pooled_connections": len(undecided),
        **{voice_name(voice): round(nats, 2) for voice, nats in sorted(pooled.items())},
    }
    fields = _loudest(pooled, total)
    if total > 0:
        return Evidence(
            METHOD, Outcome.INTACT, "same-packets" if acks >= DECISIVE_NATS else "same-data", strength,
            f"In {len(undecided)} connections, none of which decides alone, the segments that arrive are the ones that "
            f"left: together {fields} agree too often for another sender's.", numbers,
        )  # fmt: skip
    confidence = min(member.result.pairing_confidence for member, _ in undecided)
    return Evidence(
        METHOD, Outcome.SPLIT, "other-packets" if data < 0 else "other-acknowledgements", strength * confidence,
        f"In {len(undecided)} connections, none of which decides alone, segments arrive that the far end never sent: "
        f"together {fields} differ too often for the same packets.", numbers,
    )  # fmt: skip


def _pool(connections: Sequence[Voices]) -> dict[Voice, float]:
    """The sum over connections by voice, with what one cause explains counted once."""
    voices = sorted({voice for nats in connections for voice in nats})
    said = {voice: [nats[voice] for nats in connections if voice in nats] for voice in voices}
    total = {voice: _for_other(voice.field, nats) for voice, nats in said.items()}
    for box in sorted(set(_BOXES.values())):
        explained = {voice: nats for voice, nats in total.items() if _BOXES.get(voice.field) == box and nats < 0}
        share = min(1.0, REWRITABLE_NATS / -sum(explained.values())) if explained else 1.0
        total |= {voice: nats * share for voice, nats in explained.items()}
    for voice, nats in _for_same(said).items():
        total[voice] += nats
    return total


def _for_same(said: Mapping[Voice, Sequence[float]]) -> dict[Voice, float]:
    """What agreement is worth over all connections, by voice: where it is a habit, what the loudest one says."""
    agreeing = {voice: sum(nats for nats in each if nats > 0) for voice, each in said.items()}
    worth = {voice: min(IP_ID_NATS, nats) for voice, nats in agreeing.items() if voice.field == _COUNTED}
    habits = {voice: max(said[voice]) for voice, nats in agreeing.items() if voice.field != _COUNTED and nats > 0}
    if habits:
        loudest = max(habits, key=lambda voice: habits[voice])
        worth[loudest] = min(FITTED_NATS, habits[loudest])
    return worth


def _for_other(field: str, said: Sequence[float]) -> float:
    """What disagreement in a field is worth over all connections, before what boxes explain is bounded."""
    differing = [nats for nats in said if nats < 0]
    if field in _INDEPENDENT or field in _BOXES:
        return sum(differing)
    return min(differing, default=0.0)


def _are_divided(connections: Sequence[Voices]) -> bool:
    """Whether some of the connections together would decide for end to end and the others for a split."""
    camps = ([nats for nats in connections if (sum(nats.values()) > 0) is wanted] for wanted in (True, False))
    for_same, for_other = (sum(_pool(camp).values()) for camp in camps)
    return for_same >= DECISIVE_NATS and for_other <= -DECISIVE_NATS


def _loudest(pooled: Voices, total: float) -> str:
    """The fields that say most for the conclusion, in words."""
    sums: dict[str, float] = {}
    for voice, nats in pooled.items():
        sums[voice.field] = sums.get(voice.field, 0.0) + nats
    ranked = sorted((name for name, nats in sums.items() if nats * total > 0), key=lambda name: -abs(sums[name]))
    words = [name.replace("-", " ") for name in ranked[:3]]
    return " and ".join(([", ".join(words[:-1])] if words[:-1] else []) + words[-1:])
