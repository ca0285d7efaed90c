"""Connections that one rule governs and that disagree beyond doubt: who they are, and what sets them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pepscope.results import Kind, Mechanism, PairResult

SPLIT = (Kind.SPLIT_TCP, Kind.TCP_PROXY)

#: Findings that say that a box makes acknowledgements, early or not.
_MADE_BY_A_BOX = frozenset({"acks-nobody-sent", "acks-not-from-receiver"})

#: Connections of the smaller camp, and traits of the split ones, that are named one by one.
_NAMED = 3

Judged = TypeVar("Judged")


@dataclass(frozen=True, slots=True)
class Stand:
    """One connection of a camp, and by what it may differ from others.

    `traits` are properties that several connections may share (an experiment, a host), each with the preposition that
    leads to it; those at one place in the tuple are of one sort.
    """

    name: str
    reason: str
    payload_bytes: int
    started_ns: int
    traits: tuple[str, ...] = ()


def camps(judged: Sequence[Judged], result_of: Callable[[Judged], PairResult]) -> tuple[list[Judged], list[Judged]]:
    """Those that are split, and those that are end to end and so contradict them.

    A connection whose data arrive as they left, but whose acknowledgements a box makes, does not contradict local
    acknowledgement: that none came early was not seen, or could not be in a transfer without a queue.
    """
    split = [item for item in judged if result_of(item).verdict in SPLIT]
    regular = [item for item in judged if result_of(item).verdict is Kind.REGULAR]
    if all(result_of(item).mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT for item in split):
        regular = [item for item in regular if _MADE_BY_A_BOX.isdisjoint(e.finding for e in result_of(item).evidence)]
    return split, regular


def disagreement(split: Sequence[Stand], regular: Sequence[Stand]) -> str:
    """How many are of either camp, what sets the camps apart, who the fewer ones are, and both camps' reasons."""
    return (
        f"The connections disagree: {_counted(regular, split)} end to end and {_counted(split, regular)} split"
        f"{apart(split, regular)}. Split, {split[0].name}: {split[0].reason} End to end, {regular[0].name}: "
        f"{regular[0].reason}"
    )


def apart(split: Sequence[Stand], regular: Sequence[Stand]) -> str:
    """Whether a trait, the size or the time sets the two camps apart, as the end of a sentence that counts them."""
    for sort in range(len(split[0].traits)):
        traits = {stand.traits[sort] for stand in split}
        if len(traits) <= _NAMED and traits.isdisjoint(stand.traits[sort] for stand in regular):
            return f", the split ones all {' or '.join(sorted(traits))}"
    sizes, times = (
        [sorted(getattr(stand, name) for stand in camp) for camp in (split, regular)]
        for name in ("payload_bytes", "started_ns")
    )
    for (ones, others), above, below in ((sizes, "larger", "smaller"), (times, "later", "earlier")):
        if ones[0] > others[-1]:
            return f", all split ones {above} than the others"
        if ones[-1] < others[0]:
            return f", all split ones {below} than the others"
    return ""


def _counted(camp: Sequence[Stand], other: Sequence[Stand]) -> str:
    """The size of a camp, with names where it is the smaller one; the first one is named with its reason anyway."""
    count = "one" if len(camp) == 1 else str(len(camp))
    if len(camp) >= len(other) or len(camp) == 1:
        return count
    names = ", ".join(stand.name for stand in camp[:_NAMED])
    return f"{count} ({names}{', ...' if len(camp) > _NAMED else ''})"
