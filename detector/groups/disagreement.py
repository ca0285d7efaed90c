"""Connections of one group with contradicting verdicts: which ones they are, and how split and regular ones differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from pepscope.results.verdicts import Mechanism, Verdict

#: Findings that a middlebox makes acknowledgements, early or not.
_MADE_BY_A_BOX = frozenset({"acks-ahead-of-receiver", "acks-nobody-sent", "acks-not-from-receiver"})

#: Connections of the smaller side, and traits of the split ones, that are named one by one.
_NAMED = 3

Judged = TypeVar("Judged")


class _Finding(Protocol):
    @property
    def finding(self) -> str:
        """The key of what was found."""


class Result(Protocol):
    """What a `PairResult` has, and a member of a group."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""

    @property
    def mechanism(self) -> Mechanism | None:
        """How the connection is split."""

    @property
    def evidence(self) -> Sequence[_Finding]:
        """What methods found."""


class JudgedConnection(Struct, frozen=True):
    """A split or a regular connection of a group, and the properties in which it may differ from others.

    `traits` are properties that several connections may share (an experiment, a host), each with the preposition that
    leads to it; those at one place in the tuple are of one sort. `reason` is stated of the first one of its side.
    """

    name: str
    reason: str
    payload_bytes: int
    started_ns: int
    traits: tuple[str, ...] = ()


def split_and_regular(
    judged: Sequence[Judged], result_of: Callable[[Judged], Result]
) -> tuple[list[Judged], list[Judged]]:
    """The split connections, and the end-to-end connections that contradict them.

    A connection whose data segments arrive as they left, but whose acknowledgements a middlebox makes, does not
    contradict local acknowledgement: in a transfer without a queue early acknowledgements cannot show.
    """
    split = [item for item in judged if result_of(item).verdict.is_split]
    regular = [item for item in judged if result_of(item).verdict is Verdict.REGULAR]
    if all(result_of(item).mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT for item in split):
        regular = [item for item in regular if _MADE_BY_A_BOX.isdisjoint(e.finding for e in result_of(item).evidence)]
    return split, regular


def disagreement(split: Sequence[JudgedConnection], regular: Sequence[JudgedConnection]) -> str:
    """How many connections are split and regular, how these differ, which the fewer ones are, and a reason of each."""
    return (
        f"The connections disagree: {_counted(regular, split)} end to end and {_counted(split, regular)} split"
        f"{distinction(split, regular)}. Split, {split[0].name}: {split[0].reason} End to end, {regular[0].name}: "
        f"{regular[0].reason}"
    )


def distinction(split: Sequence[JudgedConnection], regular: Sequence[JudgedConnection]) -> str:
    """The trait, size or time in which all split connections differ from all regular ones: the end of a sentence."""
    for sort in range(len(split[0].traits)):
        traits = {item.traits[sort] for item in split}
        if len(traits) <= _NAMED and traits.isdisjoint(item.traits[sort] for item in regular):
            return f", the split ones all {' or '.join(sorted(traits))}"
    sizes, times = (
        [sorted(getattr(item, name) for item in side) for side in (split, regular)]
        for name in ("payload_bytes", "started_ns")
    )
    for (ones, others), above, below in ((sizes, "larger", "smaller"), (times, "later", "earlier")):
        if ones[0] > others[-1]:
            return f", all split ones {above} than the others"
        if ones[-1] < others[0]:
            return f", all split ones {below} than the others"
    return ""


def _counted(side: Sequence[JudgedConnection], other: Sequence[JudgedConnection]) -> str:
    """The number of connections, with names if `side` is the smaller one; the first is named with its reason anyway."""
    count = "one" if len(side) == 1 else str(len(side))
    if len(side) >= len(other) or len(side) == 1:
        return count
    names = ", ".join(item.name for item in side[:_NAMED])
    return f"{count} ({names}{', ...' if len(side) > _NAMED else ''})"
