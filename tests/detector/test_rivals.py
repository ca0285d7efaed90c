"""A verdict stands only if the next best pairing of the connections gives the same class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from detector.detection import judge_pair
from detector.match import Ground, Match
from detector.pair import Pair
from detector.rivals import RivalJudge
from pepscope.results import Kind
from tests.detector.corpus import pairs
from tests.detector.rewriting import changed, in_turn, without_ip_id, without_timestamps

SPLIT, REGULAR = "spl_ha_dl_small_umts", "reg_dl_cubic_lte"


class Told:
    """Pairs of the corpus by the number of the match's second connection; in doubt where not certain."""

    def __init__(self, *run_ids: str) -> None:
        self._pairs = [pairs(run_id)[0] for run_id in run_ids]
        self.loaded: list[int] = []

    def pair(self, match: Match, *, certain: bool = False) -> Pair:
        assert match.second is not None
        self.loaded.append(match.second)
        pair = self._pairs[match.second]
        return pair if certain else replace(pair, pairing_confidence=0.45)


def match(second: int, *rivals: Match) -> Match:
    return Match(0, second, Ground.PAYLOAD_AND_TIME, margin=1.0, rivals=rivals)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ((SPLIT, "spl_ha_dl_fastcell", "act_ha_dl_T4"), Kind.SPLIT_TCP),
        ((SPLIT, "spl_ha_dl_fastcell", REGULAR), Kind.INCONCLUSIVE),
        # The same packets prove the pairing, whatever the others are.
        ((REGULAR, SPLIT, SPLIT), Kind.REGULAR),
    ],
)
def test_the_rivals_must_agree(runs: tuple[str, ...], verdict: Kind) -> None:
    judge = RivalJudge(Told(*runs), judge_pair)
    result = judge.judge(match(0, match(1), match(2)))
    assert result.verdict is verdict
    if verdict is Kind.SPLIT_TCP:
        assert 0.7 < result.pairing_confidence < 0.74  # what a margin of one nat leaves
    if verdict is Kind.INCONCLUSIVE:
        assert "not certain" in result.reason


def test_a_rival_that_cannot_be_judged_leaves_nothing_certain() -> None:
    told = Told(SPLIT, "reg_dl_short10k")
    plain = in_turn(without_timestamps, without_ip_id)
    told._pairs[1] = changed(told._pairs[1], plain, plain)
    assert judge_pair(told._pairs[1]).verdict is Kind.INCONCLUSIVE
    assert RivalJudge(told, judge_pair).judge(match(0, match(1))).verdict is Kind.INCONCLUSIVE


def test_no_rival_is_judged_twice() -> None:
    told = Told(SPLIT, "spl_ha_dl_fastcell")
    judge = RivalJudge(told, judge_pair)
    judge.judge(match(0, match(1)))
    judge.judge(match(1, match(0)))
    assert told.loaded == [0, 1, 1]
