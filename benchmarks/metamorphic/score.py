"""Verdicts against what the changes allow: the truth or inconclusive, never the other class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pepscope.results.verdicts import SPLIT_VERDICTS, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.metamorphic.pairs import LabelledPair
    from pepscope.results.verdicts import PairResult

KIND_OF_TRUTH = {"regular": Verdict.REGULAR, "split": Verdict.SPLIT_TCP, "proxy": Verdict.TCP_PROXY}

#: No kind that the captures cannot show may be claimed with more than this.
SURE_OF_KIND = 0.9


@dataclass(frozen=True, slots=True)
class Answer:
    """The detector's result for a pair; `sides` maps capture paths to sides."""

    pairs: tuple[PairResult, ...]
    sides: Mapping[str, str]
    refusal: str | None = None
    crash: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one true flow, or of a pair that does not exist. `probability`: regular, split-tcp, proxy."""

    flow: str
    truth: str
    acceptable: frozenset[str]
    verdict: str
    probability: tuple[float, float, float] | None
    reason: str
    paired: bool

    @property
    def is_split(self) -> bool:
        """The verdict is a split of whichever kind."""
        return self.verdict in SPLIT_VERDICTS

    @property
    def false_alarm(self) -> bool:
        """A regular connection called split."""
        return self.truth == "regular" and self.is_split

    @property
    def called_regular(self) -> bool:
        """A split connection called regular."""
        return self.truth != "regular" and self.verdict == Verdict.REGULAR

    @property
    def crashed(self) -> bool:
        """The detector failed in another way than by refusing the captures."""
        return self.verdict == "crash"

    @property
    def sure_of_kind(self) -> bool:
        """One kind of split is claimed as good as sure."""
        return self.is_split and self.probability is not None and max(self.probability[1:]) > SURE_OF_KIND

    @property
    def undecidable_kind_claimed(self) -> bool:
        """A kind is claimed with high probability where captures may not show it by the truth."""
        return {"split", "proxy"} <= self.acceptable and self.sure_of_kind

    @property
    def wrong_kind(self) -> bool:
        """A split of the other kind than the truth allows."""
        allowed = {KIND_OF_TRUTH[name] for name in self.acceptable & KIND_OF_TRUTH.keys()}
        return self.truth != "regular" and self.is_split and self.verdict not in allowed

    @property
    def right(self) -> bool:
        """The class is right; which kind of split is another question."""
        return self.verdict == Verdict.REGULAR if self.truth == "regular" else self.is_split

    def row(self) -> list[Any]:
        """For a file; the reason only where it will be read."""
        wrong_class = self.false_alarm or self.called_regular or self.crashed
        wrong = wrong_class or self.wrong_kind or self.undecidable_kind_claimed
        shown = self.probability and [round(value, 4) for value in self.probability]
        acceptable = sorted(self.acceptable)
        return [self.flow, self.truth, acceptable, self.verdict, shown, self.reason if wrong else "", self.paired]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Judgement:
        """The judgement that `row` wrote."""
        flow, truth, acceptable, verdict, probability, reason, paired = row
        return cls(flow, truth, frozenset(acceptable), verdict, probability and tuple(probability), reason, paired)


def judged(pair: LabelledPair, answer: Answer) -> list[Judgement]:
    """One judgement a true flow, and one for each split verdict on what exists in no truth but in regular captures.

    A flow of which the captures show too little to have a truth is not judged.
    """
    silent = "crash" if answer.crash else "refused" if answer.refusal else Verdict.INCONCLUSIVE
    numbers = {
        side: {frozenset(ends): number for number, ends in records.ends().items()}
        for side, records in pair.records.items()
    }
    touched = [_connections(result, answer, numbers) for result in answer.pairs]
    judgements = []
    for flow in filter(None, (flow.as_kept(pair.records) for flow in pair.flows)):
        near = [
            (result, where)
            for result, where in zip(answer.pairs, touched, strict=True)
            if any(flow.connection.get(side) == number for side, number in where.items())
        ]
        about = (flow.name, flow.truth, flow.acceptable)
        made = [_judgement(about, result, answer, where == flow.connection) for result, where in near]
        nothing = Judgement(*about, silent, None, answer.crash or answer.refusal or "no packet of it is left", False)
        judgements.append(max(made, key=_gravity, default=nothing))
    known = {(side, number) for flow in pair.flows for side, number in flow.connection.items()}
    stray = ("a pair that does not exist", "regular", frozenset({"regular"}))
    for result, where in zip(answer.pairs, touched, strict=True):
        if pair.all_regular and not known & set(where.items()) and result.verdict.is_split:
            judgements.append(_judgement(stray, result, answer, False))
    return judgements


def _connections(
    result: PairResult, answer: Answer, numbers: Mapping[str, Mapping[frozenset[str], int]]
) -> dict[str, int]:
    """The connection at each side that a result is about."""
    found = {}
    for vantage in result.vantages:
        side = answer.sides[vantage.capture]
        number = numbers[side].get(frozenset((vantage.client, vantage.server)))
        if number is not None:
            found[side] = number
    return found


def _judgement(about: tuple[str, str, frozenset[str]], result: PairResult, answer: Answer, paired: bool) -> Judgement:
    """A result as judgement; its sentence names captures by side, as their directories differ from run to run."""
    regular, split, proxy = (
        float(result.probability[k]) for k in (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    )
    reason = result.reason
    for path, side in answer.sides.items():
        reason = reason.replace(path, f"the {side}'s capture")
    return Judgement(*about, str(result.verdict), (regular, split, proxy), reason, paired)


def _gravity(one: Judgement) -> tuple[bool, bool, bool, bool]:
    """What is wrong counts before what is right, and a true pair before a single capture."""
    return (one.false_alarm or one.called_regular, one.paired, one.right, one.wrong_kind)
