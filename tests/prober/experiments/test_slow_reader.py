"""The rule of the slow reader: bytes are held by the receiver or by a middlebox."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.verdict.weighing import judge
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Verdict
from prober.errors import ArchiveError
from prober.experiments.slow_reader import JOINED_SEGMENT_BYTES, SlowReader
from prober.protocol.application import Application
from tests.prober.experiments.observed import plan_of, seen, tasks_of

ROOM = 65_536 + JOINED_SEGMENT_BYTES


def stopped(**changes: Any) -> dict[str, Any]:
    return {
        "acked_bytes": 42_000,
        "receiver_bytes": 42_000,
        "room_bytes": ROOM,
        "offered_bytes": 2_000_000,
        "stalled": True,
        **changes,
    }


def examined(*stops: dict[str, Any]) -> tuple[Evidence, ...]:
    return SlowReader().examine([seen("slow-reader", values) for values in stops])


def findings(**changes: Any) -> list[str]:
    return [item.finding for item in examined(stopped(**changes))]


def test_more_acknowledged_than_the_receiver_took_in_sits_in_between() -> None:
    evidence = examined(stopped(acked_bytes=1_600_000))
    assert [item.finding for item in evidence] == ["more-taken-than-receiver-holds"]
    assert judge(evidence).verdict is Verdict.SPLIT_TCP


@pytest.mark.parametrize("beyond", [-1, 0, 1, ROOM])
def test_what_may_still_have_come_is_no_split(beyond: int) -> None:
    assert findings(acked_bytes=42_000 + beyond) == ["no-more-taken-than-receiver-holds"]


@given(st.integers(ROOM + 1, 10**12))
def test_the_more_the_surer(excess: int) -> None:
    (found,) = examined(stopped(acked_bytes=42_000 + excess, offered_bytes=10**12))
    (surer,) = examined(stopped(acked_bytes=42_000 + 2 * excess, offered_bytes=10**12))
    assert 0.5 <= found.strength < surer.strength <= 1.0


def test_a_receiver_that_did_not_stop_is_no_finding() -> None:
    assert findings(stalled=False) == []
    assert findings(acked_bytes=None) == []
    assert findings(receiver_bytes=None) == []


def test_an_object_that_fits_into_the_receivers_buffer_is_no_finding() -> None:
    assert findings(offered_bytes=40_000, acked_bytes=40_000, receiver_bytes=40_000) == []


def test_one_split_stop_among_many_is_reported() -> None:
    evidence = examined(stopped(), stopped(acked_bytes=900_000), stopped(acked_bytes=1_900_000))
    assert [item.numbers["acked_bytes"] for item in evidence] == [1_900_000]


@pytest.mark.parametrize("damage", [{"acked_bytes": "all"}, {"room_bytes": None}, {"stalled": 1}])
def test_measurements_that_are_none_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        examined(stopped(**damage))


def test_a_room_below_nothing_is_refused() -> None:
    with pytest.raises(ArchiveError, match=r"measurement\.room_bytes must be a whole number of at least 0"):
        findings(room_bytes=-10, acked_bytes=42_000)


def test_uploads_are_paused_where_the_server_can_be_asked_to() -> None:
    tasks = list(tasks_of(SlowReader(), plan_of(SlowReader())))
    assert {task.application for task in tasks if task.direction is Direction.DOWN} == set(Application)
    assert {task.application for task in tasks if task.direction is Direction.UP} == set(Application) - {
        Application.FTP
    }
