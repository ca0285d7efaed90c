"""A verdict stands only if the next best pairing of the connections gives the same class."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from detector.pair import Pair
from detector.pairing.match import Ground, Match
from detector.pairing.rivals import RivalJudge
from detector.verdict.judging import judge_pair, judge_pairs, verdicts_on
from pepscope.results.verdicts import Verdict
from tests.detector.corpus import pairs
from tests.detector.rewriting import changed, in_sequence, without_ip_id, without_timestamps

SPLIT, REGULAR = "spl_ha_dl_small_umts", "reg_dl_cubic_lte"


class Told:
    """Pairs of the corpus by the number of the match's second connection; in doubt where the match has rivals."""

    def __init__(self, *run_ids: str) -> None:
        self._pairs = [pairs(run_id)[0] for run_id in run_ids]
        self.loaded: list[int] = []

    def pairs(self, matches: Sequence[Match]) -> list[Pair]:
        return [self.pair(match) for match in matches]

    def pair(self, match: Match) -> Pair:
        assert match.second is not None
        self.loaded.append(match.second)
        pair = self._pairs[match.second]
        return replace(pair, pairing_confidence=0.45) if match.rivals else pair


def match(second: int, *rivals: Match) -> Match:
    return Match(0, second, Ground.PAYLOAD_AND_TIME, margin=1.0, rivals=rivals)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ((SPLIT, "spl_ha_dl_fastcell", "act_ha_dl_T4"), Verdict.SPLIT_TCP),
        ((SPLIT, "spl_ha_dl_fastcell", REGULAR), Verdict.INCONCLUSIVE),
        # The same packets prove the pairing, whatever the others are.
        ((REGULAR, SPLIT, SPLIT), Verdict.REGULAR),
    ],
)
def test_the_rivals_must_agree(runs: tuple[str, ...], verdict: Verdict) -> None:
    judge = RivalJudge(Told(*runs), judge_pairs, verdicts_on)
    (result,) = judge.judge([match(0, match(1), match(2))])
    assert result.verdict is verdict
    if verdict is Verdict.SPLIT_TCP:
        assert 0.7 < result.pairing_confidence < 0.74  # what a margin of one nat leaves
    if verdict is Verdict.INCONCLUSIVE:
        assert "two different transfers" in result.reason


def test_a_rival_that_cannot_be_judged_leaves_nothing_certain() -> None:
    reported = Told(SPLIT, "reg_dl_short10k")
    plain = in_sequence(without_timestamps, without_ip_id)
    reported._pairs[1] = changed(reported._pairs[1], plain, plain)
    assert judge_pair(reported._pairs[1]).verdict is Verdict.INCONCLUSIVE
    (result,) = RivalJudge(reported, judge_pairs, verdicts_on).judge([match(0, match(1))])
    assert result.verdict is Verdict.INCONCLUSIVE


def test_no_rival_is_judged_twice() -> None:
    reported = Told(SPLIT, "spl_ha_dl_fastcell")
    judge = RivalJudge(reported, judge_pairs, verdicts_on)
    judge.judge([match(0, match(1))])
    judge.judge([match(1, match(0))])
    assert reported.loaded == [0, 1, 1]


def test_verdicts_are_the_same_one_by_one_and_together() -> None:
    runs = (SPLIT, "spl_ha_dl_fastcell", REGULAR, "act_ha_dl_T4")
    matches = [match(0, match(1)), match(1, match(2)), match(2, match(3)), match(3, match(0), match(1))]
    together = RivalJudge(Told(*runs), judge_pairs, verdicts_on).judge(matches)
    alone = RivalJudge(Told(*runs), judge_pairs, verdicts_on)
    assert together == [result for each in matches for result in alone.judge([each])]
    assert {result.verdict for result in together} >= {Verdict.INCONCLUSIVE, Verdict.REGULAR}
