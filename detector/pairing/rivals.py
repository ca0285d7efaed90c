"""What a verdict is worth where another pairing of the connections explains the captures nearly as well.

Transfers of the same content at about the same time may be paired crosswise, and two halves of two transfers look
split to every method that compares. So a verdict must hold under the rivals, too: each connection of the pair is judged
with the others that it might belong to, and the verdict stands if all agree whether something splits. Where packets
are proven to be the same, so is the pairing, and no rival is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from msgspec import structs

from detector.pair import Pair
from detector.pairing.match import Match
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Outcome, PairResult, Verdict

#: Method and finding that prove a pairing.
_PROOF = ("identity", "same-packets")


class Pairs(Protocol):
    """Loads the pairs of matches."""

    def pairs(self, matches: Sequence[Match]) -> Sequence[Pair]:
        """The pairs of these matches, in doubt where a match has rivals."""


class RivalJudge:
    """Judges matches that have rivals; caches the results, since rivals are rivals of each other.

    `judge` judges pairs, all that are given at once, and `verdicts` gives the verdicts alone.
    """

    def __init__(
        self,
        pairs: Pairs,
        judge: Callable[[Sequence[Pair]], Sequence[PairResult]],
        verdicts: Callable[[Sequence[Pair]], Sequence[Verdict]],
    ) -> None:
        self._pairs = pairs
        self._judge = judge
        self._verdicts = verdicts
        self._splits: dict[tuple[int | None, int | None], bool | None] = {}

    def judge(self, matches: Sequence[Match]) -> list[PairResult]:
        """The verdict on each match if its rivals give the same class, else what is left of it under doubt."""
        results = list(self._judge(self._certain(matches)))
        self._keep(matches, [result.verdict for result in results])
        proven = [
            any((item.method, item.finding) == _PROOF and item.outcome is Outcome.INTACT for item in result.evidence)
            for result in results
        ]
        self._look_at(
            rival
            for match, result, is_proven in zip(matches, results, proven, strict=True)
            if not is_proven and _splits(result.verdict) is not None
            for rival in match.rivals
        )
        doubted = []
        for number, (match, is_proven) in enumerate(zip(matches, proven, strict=True)):
            result = results[number]
            splits = _splits(result.verdict)
            if splits is None or not (is_proven or all(self._splits[_key(rival)] is splits for rival in match.rivals)):
                doubted.append(number)
                continue
            sure = result.pairing_confidence if is_proven else result.pairing_confidence * logistic(match.margin)
            results[number] = replace(result, pairing_confidence=sure)
        left = self._judge(self._pairs.pairs([matches[number] for number in doubted]))
        for number, result in zip(doubted, left, strict=True):
            results[number] = result
        return results

    def _look_at(self, rivals: Iterable[Match]) -> None:
        """Judge rivals of which the class is not known."""
        unknown = list({_key(rival): rival for rival in rivals if _key(rival) not in self._splits}.values())
        self._keep(unknown, self._verdicts(self._certain(unknown)))

    def _certain(self, matches: Sequence[Match]) -> Sequence[Pair]:
        """Pairs of matches as if their rivals were not the truth."""
        return self._pairs.pairs([structs.replace(match, rivals=()) for match in matches])

    def _keep(self, matches: Sequence[Match], verdicts: Sequence[Verdict]) -> None:
        self._splits |= {_key(match): _splits(verdict) for match, verdict in zip(matches, verdicts, strict=True)}


def _key(match: Match) -> tuple[int | None, int | None]:
    return match.first, match.second


def _splits(verdict: Verdict) -> bool | None:
    """Whether something splits the connection; None where that is undecided."""
    return None if verdict is Verdict.INCONCLUSIVE else verdict is not Verdict.REGULAR
