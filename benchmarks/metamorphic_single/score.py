"""Verdicts on groups and single connections against what changes allow: the truth or nothing, never the opposite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.metamorphic_single.captures import ConnectionTruth, LabelledCapture
from pepscope.results.verdicts import DetectionResult, SplitPlace, Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A group or (`is_group` false) a connection.

    `truth`: regular; split, where all of it is and captures show it; mixed of what else is split, at least in part.

    `in_network` says whether what splits any of it stands in the network. `members` are its connections' numbers.
    """

    is_group: bool
    side: str
    truth: str
    in_network: bool
    members: tuple[int, ...]
    verdict: str
    where: str | None
    split_probability: float
    exchanges: int
    reason: str

    @property
    def says_split(self) -> bool:
        """The verdict is a split of whichever kind."""
        return self.verdict in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)

    @property
    def false_alarm(self) -> bool:
        """A split is reported where none is, or the network is accused of what stands at the server's site."""
        if self.truth == "regular":
            return self.says_split
        return self.says_split and self.where == SplitPlace.NETWORK and not self.in_network

    @property
    def called_regular(self) -> bool:
        """Called regular though all of it is split, by a leg that shows."""
        return self.truth == "split" and self.verdict == Verdict.REGULAR

    @property
    def crashed(self) -> bool:
        """The detector failed in another way than by refusing the capture."""
        return self.verdict == "crash"

    @property
    def right(self) -> bool:
        """What all of it is."""
        return self.says_split if self.truth == "split" else self.truth == self.verdict

    def row(self) -> list[Any]:
        """For a file; the reason only where it will be read."""
        wrong = self.false_alarm or self.called_regular or self.crashed
        return [
            self.is_group, self.side, self.truth, self.in_network, self.members, self.verdict, self.where,
            round(self.split_probability, 4), self.exchanges, self.reason if wrong else "",
        ]  # fmt: skip

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Judgement:
        """The judgement that `row` wrote."""
        is_group, side, truth, in_network, members, *rest = row
        return cls(is_group, side, truth, in_network, tuple(members), *rest)


def judged(capture: LabelledCapture, result: DetectionResult | None, failure: str) -> list[Judgement]:
    """One judgement a group of which all connections have a truth, and one for each of its connections.

    A refusal gives none, a crash one.
    """
    if result is None:
        crash = Judgement(True, capture.place, "mixed", False, (), "crash", None, 0.0, 0, failure)
        return [crash] if failure.startswith("crash") else []
    numbers = {frozenset(ends): number for records in capture.files for number, ends in records.ends().items()}
    names = [pair.vantages[0] for pair in result.pairs]
    members = [numbers.get(frozenset((name.client, name.server)), -1) for name in names]
    return [*_judged_groups(capture, result, members), *_judged_connections(capture, result, members)]


def _judged_groups(capture: LabelledCapture, result: DetectionResult, members: Sequence[int]) -> Iterator[Judgement]:
    """Of each group of which all connections have a truth; `members` are the labels' numbers of the connections."""
    for group in result.groups:
        side, own = group.side.value, tuple(members[place] for place in group.pairs)
        known = _all_known(capture.truths.get((side, member)) for member in own)
        if known:
            where = None if group.where is None else group.where.value
            said = (group.verdict.value, where, _split(group.probability), group.exchanges or 0, group.reason)
            yield Judgement(True, side, _truth(known), _in_network(known), own, *said)


def _judged_connections(
    capture: LabelledCapture, result: DetectionResult, members: Sequence[int]
) -> Iterator[Judgement]:
    """Of each connection of a group whose truth is known on each side of the capture."""
    sides: dict[int, list[str]] = {}
    for group in result.groups:
        for place in group.pairs:
            sides.setdefault(place, []).append(group.side.value)
    for place, its_sides in sides.items():
        known = _all_known(capture.truths.get((side, members[place])) for side in its_sides)
        if known:
            pair = result.pairs[place]
            # A connection is split where one of its stretches is.
            truth = _truth([each for each in known if each.is_split] or known)
            said = (pair.verdict.value, None, _split(pair.probability), 0, pair.reason)
            side = its_sides[0] if len(its_sides) == 1 else "both"
            yield Judgement(False, side, truth, _in_network(known), (members[place],), *said)


def _all_known(truths: Iterable[ConnectionTruth | None]) -> list[ConnectionTruth]:
    """The truths, or none where one is not known."""
    found = list(truths)
    known = [truth for truth in found if truth is not None]
    return known if len(known) == len(found) else []


def _split(probability: Mapping[Verdict, float]) -> float:
    return sum(share for verdict, share in probability.items() if verdict.is_split)


def _in_network(truths: Sequence[ConnectionTruth]) -> bool:
    return any(truth.is_split_in_network for truth in truths)


def _truth(truths: Sequence[ConnectionTruth]) -> str:
    if not any(truth.is_split for truth in truths):
        return "regular"
    return "split" if all(truth.is_split and truth.shows for truth in truths) else "mixed"
