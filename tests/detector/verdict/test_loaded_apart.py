"""Connections that are loaded together: most as columns, and apart from these what has to be judged as objects."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import LoadedObservations
from detector.options import DetectOptions
from detector.pairing.captures import PairedCaptures, pair_captures
from detector.pairing.match import Ground, Match
from detector.pairing.rivals import RivalJudge
from detector.vantage.one_place import OnePlace
from detector.verdict import together as module
from detector.verdict.judging import judge_pair, judge_pairs, verdicts_on
from detector.verdict.together import Loader, judge_together
from pepscope.captures.capture import open_capture
from pepscope.results.verdicts import PairResult
from tests.detector.corpus import CORPUS

ENDS = [str(CORPUS / f"reg_dl_par20.{end}.pcap.gz") for end in ("srv", "mob")]
EVERY = range(20)


def paired(*, rivalled: int | None = None, swapped: int | None = None, alone: int | None = None) -> PairedCaptures:
    """Twenty connections, of which these are no plain pairs."""
    first, second = map(open_capture, ENDS)
    matches = list(pair_captures(first, second).matches)
    if rivalled is not None:
        rival = Match(matches[rivalled].first, matches[rivalled - 1].second, Ground.PAYLOAD)
        matches[rivalled] = replace(matches[rivalled], rivals=(rival,))
    if swapped is not None:
        matches[swapped] = replace(matches[swapped], sides_swapped=True)
    if alone is not None:
        matches[alone] = Match(matches[alone].first, None, Ground.ALONE)
    return PairedCaptures(first, second, matches, DetectOptions())


def judged(captures: PairedCaptures) -> tuple[dict[int, PairResult], list[int]]:
    """What is judged of each connection, and the numbers of those that were judged as objects."""
    loader, rivals = Loader(ENDS[0], captures), RivalJudge(captures, judge_pairs, verdicts_on)
    results, as_objects = dict[int, PairResult](), list[int]()
    for together in chain.from_iterable(map(loader.load, loader.batches(EVERY, 1 << 30))):
        if not isinstance(together.observations, LoadedObservations):
            as_objects += together.numbers
        table, rows, _ = judge_together(together, rivals)
        assert results.keys().isdisjoint(together.numbers)
        results |= {number: table[row] for number, row in zip(together.numbers, rows.tolist(), strict=True)}
    return results, sorted(as_objects)


@pytest.mark.parametrize("odd", [{}, {"alone": 3}, {"swapped": 0}, {"rivalled": 5, "alone": 19}])
def test_each_is_judged_once_as_if_it_were_alone(odd: dict[str, int]) -> None:
    captures = paired(**odd)
    results, as_objects = judged(captures)
    assert sorted(results) == [*EVERY]
    assert as_objects == sorted(odd.values())
    for number, result in results.items():
        match = captures.matches[number]
        if not match.rivals:
            assert result == judge_pair(captures.pair(match))


@pytest.mark.parametrize("at_one_place", [{0, 7, 8}, {*EVERY}])
def test_what_was_captured_at_one_place_is_judged_apart(
    at_one_place: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    captures = paired()
    starts = {captures.pair(captures.matches[number]).client_side.connection.first_time_ns for number in at_one_place}
    place = OnePlace(40, 250.0, 1_000)

    def seen_at(pair):
        return place if pair.client_side.connection.first_time_ns in starts else None

    monkeypatch.setattr(module, "one_place", seen_at)
    monkeypatch.setattr(module, "may_be_one_place", lambda sides: np.ones(len(sides), np.bool_))
    results, as_objects = judged(captures)
    assert sorted(results) == [*EVERY]
    assert as_objects == sorted(at_one_place)
    for number, result in results.items():
        assert any(item.method == "one_place" for item in result.evidence) is (number in at_one_place)
        if number not in at_one_place:
            assert result == judge_pair(captures.pair(captures.matches[number]))
