"""Answers of one moment that are late by the same: ranks of pairs, and what they say of a queue in a leg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.hypotheses.moments import AnswerPairs, answer_pairs, moment_nats
from detector.one_capture.members import Ints
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, judged, vantage

CLIENT = "192.0.2.1"
ROUND_TRIP_MS = 20.0

#: When questions of one moment are asked (ms), and how late their answers are: by a queue, or each by itself.
MOMENTS_MS = (1_000.0, 3_000.0, 5_000.0, 7_000.0, 9_000.0, 11_000.0, 13_000.0, 15_000.0)
QUEUED_MS = [(105.0, 106.0), (240.0, 243.0), (130.0, 129.0), (380.0, 378.0), (160.0, 162.0), (112.0, 111.0),
             (300.0, 304.0), (195.0, 193.0)]  # fmt: skip
ALONE_MS = [(105.0, 240.0), (130.0, 378.0), (243.0, 112.0), (380.0, 160.0), (106.0, 300.0), (162.0, 129.0),
            (193.0, 111.0), (195.0, 304.0)]  # fmt: skip

Moments = Sequence[tuple[float, float]]


def _talks(late_ms: Moments, *, moments_ms: Sequence[float] = MOMENTS_MS, host: str = CLIENT) -> list[Talk]:
    """Two connections at each moment, whose questions are 3 ms apart."""
    return [
        Talk(
            host,
            more=[
                Asked(
                    0, ROUND_TRIP_MS + late, ROUND_TRIP_MS, ExchangeKind.TLS_FINISHED, Direction.DOWN,
                    moment_ms + 3.0 * number,
                )
            ],
        )
        for moment_ms, both_ms in zip(moments_ms, late_ms, strict=True)
        for number, late in enumerate(both_ms)
    ]  # fmt: skip


def _judged(talks: Sequence[Talk]) -> SidePosteriors:
    return judged(talks, at_client=False)


def _pairs(talks: Sequence[Talk]) -> tuple[AnswerPairs, SidePosteriors]:
    found = _judged(talks)
    asked_ns = vantage(talks, at_client=False).exchanges.question_ns[found.timing.row]
    return answer_pairs(found.timing, asked_ns), found


def _nats(talks: Sequence[Talk]) -> float:
    """What all pairs say, as one unit."""
    pairs, found = _pairs(talks)
    return float(moment_nats(pairs, np.zeros(len(found.timing.row), np.int64), 1).queue[0])


def test_answers_of_one_moment_are_compared_and_no_others() -> None:
    pairs, found = _pairs(_talks(QUEUED_MS))
    assert sorted(found.timing.connection[pairs.later].tolist()) == [1, 3, 5, 7, 9, 11, 13, 15]
    apart = _talks(QUEUED_MS)
    apart = [Talk(CLIENT, more=[talk.more[0]]) for talk in apart[::2]]
    assert len(_pairs(apart)[0].rank) == 0


def test_questions_of_one_time_say_nothing() -> None:
    at_once = [replace(talk, more=[replace(talk.more[0], question_ms=1_000.0)]) for talk in _talks(QUEUED_MS)]
    assert len(_pairs(at_once)[0].rank) == 0
    assert len(_pairs([*_talks(QUEUED_MS), *at_once])[0].rank) == len(QUEUED_MS) - 1


def test_what_is_late_together_ranks_low_and_what_is_not_does_not() -> None:
    together, alone = (_pairs(_talks(late_ms))[0].rank for late_ms in (QUEUED_MS, ALONE_MS))
    assert together.max() < 0.25
    assert np.median(alone) > 0.4


def test_answers_of_one_connection_and_answers_that_hardly_vary_say_nothing() -> None:
    one = [
        Talk(CLIENT, more=[talk.more[0] for talk in both])
        for both in zip(*[iter(_talks(QUEUED_MS))] * 2, strict=True)
    ]  # fmt: skip
    steady = [(100.0 + 0.3 * number, 100.2 + 0.3 * number) for number in range(len(MOMENTS_MS))]
    for talks in (one, _talks(steady)):
        assert len(_pairs(talks)[0].rank) == 0
        assert _nats(talks) == pytest.approx(0.0)


def test_a_leg_that_queues_is_told_from_a_client_that_takes_its_time() -> None:
    together, alone = (float(_judged(_talks(late_ms)).groups.split[0]) for late_ms in (QUEUED_MS, ALONE_MS))
    assert together / (1 - together) > 10 * alone / (1 - alone)


def test_what_moments_say_is_bounded_however_many_there_are() -> None:
    ranks = np.full(10_000, 0.01)
    unit: Ints = np.zeros(len(ranks), np.int64)
    assert 0 < moment_nats(AnswerPairs(np.arange(len(ranks)), ranks), unit, 1).queue[0] <= np.log(8.0) + 1e-9
    assert moment_nats(AnswerPairs(np.arange(len(ranks)), 1 - ranks), unit, 1).queue[0] >= np.log(0.2 / 0.9) - 1e-9
    assert moment_nats(AnswerPairs(unit[:0], ranks[:0]), unit[:0], 2).queue == pytest.approx([0.0, 0.0])


@given(st.lists(st.floats(0.0, 1.0), max_size=40))
def test_moments_speak_for_devices_as_for_queues_but_less(ranks: list[float]) -> None:
    pairs = AnswerPairs(np.arange(len(ranks)), np.asarray(ranks))
    found = moment_nats(pairs, np.zeros(len(ranks), np.int64), 1)
    assert min(found.queue[0], 0.0) - 1e-9 <= found.device[0] <= max(found.queue[0], 0.0) + 1e-9


LATE_MS = st.lists(
    st.tuples(st.floats(20.0, 900.0), st.floats(20.0, 900.0)), min_size=len(MOMENTS_MS), max_size=len(MOMENTS_MS)
)


@given(LATE_MS, st.randoms(use_true_random=False), st.floats(0.0, 1e7))
def test_order_addresses_and_clocks_change_nothing(late_ms: Moments, random: object, shift_ms: float) -> None:
    before = _nats(_talks(late_ms))
    shuffled = _talks(late_ms)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    renamed = _talks(late_ms, host="198.51.100.77")
    shifted = _talks(late_ms, moments_ms=[moment_ms + round(shift_ms) for moment_ms in MOMENTS_MS])
    for talks in (shuffled, renamed, shifted):
        assert _nats(talks) == pytest.approx(before, abs=1e-9)
