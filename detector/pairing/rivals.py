"""What a verdict is worth where another pairing of the connections explains the captures nearly as well.

Transfers of the same content at about the same time may be paired crosswise, and two halves of two transfers look
split to every method that compares. So a verdict must hold under the rivals, too: each connection of the pair is judged
with the others that it might belong to, and the verdict stands if all agree whether something splits. Where packets
are proven to be the same, so is the pairing, and no rival is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from detector.pair import Pair
from detector.pairing.match import Match
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Outcome, PairResult, Verdict

#: Method and finding that prove a pairing.
_PROOF = ("identity", "same-packets")


class Pairs(Protocol):
    """Loads the pair of a match; `certain` of two that its rivals are not the truth."""

    def pair(self, match: Match, *, certain: bool = False) -> Pair:
        """The pair of a match."""


class RivalJudge:
    """Judges matches that have rivals; caches the results, since rivals are rivals of each other."""

    def __init__(self, pairs: Pairs, judge: Callable[[Pair], PairResult]) -> None:
        self._pairs = pairs
        self._judge = judge
        self._splits: dict[tuple[int | None, int | None], bool | None] = {}

    def judge(self, match: Match) -> PairResult:
        """The verdict on the match if its rivals give the same class, else what is left of it under doubt."""
        result = self._judge(self._pairs.pair(match, certain=True))
        self._splits[match.first, match.second] = splits = _splits(result)
        proven = any(
            (item.method, item.finding) == _PROOF and item.outcome is Outcome.INTACT for item in result.evidence
        )
        if splits is not None and (proven or all(self._class_of(rival) is splits for rival in match.rivals)):
            sure = result.pairing_confidence if proven else result.pairing_confidence * logistic(match.margin)
            return replace(result, pairing_confidence=sure)
        return self._judge(self._pairs.pair(match))

    def _class_of(self, match: Match) -> bool | None:
        key = (match.first, match.second)
        if key not in self._splits:
            self._splits[key] = _splits(self._judge(self._pairs.pair(match, certain=True)))
        return self._splits[key]


def _splits(result: PairResult) -> bool | None:
    """Whether something splits the connection; None where that is undecided."""
    return None if result.verdict is Verdict.INCONCLUSIVE else result.verdict is not Verdict.REGULAR
