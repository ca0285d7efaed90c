"""What a verdict is worth beside the truth, and the rates at which a detector fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from detector.corpora.validation.intervals import Share
from detector.corpora.validation.labels import Case
from pepscope.results.verdicts import SplitPlace, Verdict

#: What stands for a verdict where a label's connection or group was not spoken of, and where the detector failed.
NOT_JUDGED, FAILED = "not-judged", "failed"
#: Everything that can be said of a case, in the order of tables.
SAYINGS = (*(verdict.value for verdict in Verdict), NOT_JUDGED, FAILED)


class Score(StrEnum):
    """What a verdict is worth. Only the last two are errors."""

    RIGHT = "right"
    OTHER_KIND = "other-kind"  # a split found, of a kind that is not accepted
    NOT_FOUND = "not-found"  # inconclusive, not judged, or the detector failed
    FALSE_ALARM = "false-alarm"  # a split reported where none is, or in the network where it is the server's own
    REVERSED = "reversed"  # a split called regular

    @property
    def is_error(self) -> bool:
        """Whether the opposite of the truth was said."""
        return self in (Score.FALSE_ALARM, Score.REVERSED)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one detector says of one case: a verdict, `not-judged` or `failed`."""

    said: str
    score: Score
    split_probability: float | None = None
    where: SplitPlace | None = None
    reason: str = ""


def score_of(case: Case, said: str, where: SplitPlace | None = None) -> Score:
    """Compare a verdict with the truth. `inconclusive` is no error, and nothing found."""
    if said in (NOT_JUDGED, FAILED, Verdict.INCONCLUSIVE):
        return Score.NOT_FOUND
    verdict = Verdict(said)
    if not verdict.is_split:
        return Score.REVERSED if case.truth.is_split else Score.RIGHT
    accuses_network = where is SplitPlace.NETWORK and _elsewhere(case)
    if not case.truth.is_split or accuses_network:
        return Score.FALSE_ALARM
    return Score.RIGHT if verdict in case.accepted else Score.OTHER_KIND


@dataclass(frozen=True, slots=True)
class Rate:
    """A way to fail: of which cases, by which scores. More is always worse."""

    name: str
    #: What is counted, for readers.
    meaning: str
    is_of: Callable[[Case], bool]
    failures: frozenset[Score]

    def fails(self, score: Score) -> bool:
        """Whether a case of that score counts as a failure."""
        return score in self.failures


def _regular(case: Case) -> bool:
    return not case.truth.is_split


def _split(case: Case) -> bool:
    return case.truth.is_split


def _elsewhere(case: Case) -> bool:
    return case.where in (SplitPlace.SERVER, SplitPlace.PROXY)


_UNFOUND = frozenset((Score.NOT_FOUND, Score.REVERSED))
_ALARM = frozenset((Score.FALSE_ALARM,))
RATES = (
    Rate("false-alarm", "regular, called split", _regular, _ALARM),
    Rate("unconfirmed", "regular, not called regular", _regular, _ALARM | {Score.NOT_FOUND}),
    Rate("missed", "split, not called split", _split, _UNFOUND),
    Rate("reversed", "split, called regular", _split, frozenset((Score.REVERSED,))),
    Rate("kind-missed", "split, its kind not found", _split, _UNFOUND | {Score.OTHER_KIND}),
    Rate("network-blamed", "split of a server's own or a declared proxy, network blamed", _elsewhere, _ALARM),
)


def rates(cases: Sequence[Case], judgements: Sequence[Judgement]) -> dict[str, Share]:
    """Every rate by its name."""
    return {
        rate.name: Share.that(
            rate.fails(judged.score) for case, judged in zip(cases, judgements, strict=True) if rate.is_of(case)
        )
        for rate in RATES
    }


def confusion(cases: Iterable[Case], judgements: Iterable[Judgement]) -> Mapping[str, Mapping[str, int]]:
    """How often what was said of what is true: by truth, then by what was said."""
    counts = {truth.value: dict.fromkeys(SAYINGS, 0) for truth in Verdict if truth is not Verdict.INCONCLUSIVE}
    for case, judged in zip(cases, judgements, strict=True):
        counts[case.truth.value][judged.said] += 1
    return counts
