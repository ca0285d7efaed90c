"""The rule of the slow reader: bytes are kept, by the receiver or by somebody else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.verdict import judge
from pepscope.packets import Direction
from pepscope.results import Evidence, Kind
from prober.errors import ArchiveError
from prober.experiment import Application
from prober.experiments.slow_reader import JOINED_SEGMENT_BYTES, SlowReader
from prober.plan import Plan
from tests.prober.experiments.observed import seen

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
    assert judge(evidence).verdict is Kind.SPLIT_TCP


@pytest.mark.parametrize("beyond", [-1, 0, 1, ROOM])
def test_what_may_still_have_come_is_no_split(beyond: int) -> None:
    assert findings(acked_bytes=42_000 + beyond) == ["no-more-taken-than-receiver-holds"]


@given(st.integers(ROOM + 1, 10**12))
def test_the_more_the_surer(excess: int) -> None:
    (found,) = examined(stopped(acked_bytes=42_000 + excess, offered_bytes=10**12))
    (surer,) = examined(stopped(acked_bytes=42_000 + 2 * excess, offered_bytes=10**12))
    assert 0.5 <= found.strength < surer.strength <= 1.0


def test_a_receiver_that_was_not_seen_to_stop_says_nothing() -> None:
    assert findings(stalled=False) == []
    assert findings(acked_bytes=None) == []
    assert findings(receiver_bytes=None) == []


def test_an_object_that_the_receiver_holds_whole_says_nothing() -> None:
    assert findings(offered_bytes=40_000, acked_bytes=40_000, receiver_bytes=40_000) == []


def test_one_split_stop_among_many_is_told() -> None:
    evidence = examined(stopped(), stopped(acked_bytes=900_000), stopped(acked_bytes=1_900_000))
    assert [item.numbers["acked_bytes"] for item in evidence] == [1_900_000]


@pytest.mark.parametrize("damage", [{"acked_bytes": "all"}, {"room_bytes": None}, {"stalled": 1}])
def test_measurements_that_are_none_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        examined(stopped(**damage))


def test_a_room_below_nothing_is_none() -> None:
    assert findings(room_bytes=-10, acked_bytes=42_000) == ["no-more-taken-than-receiver-holds"]


def test_uploads_are_paused_where_the_server_can_be_asked_to() -> None:
    tasks = list(SlowReader().tasks(Plan(experiments={"slow-reader": SlowReader.defaults})))
    assert {task.application for task in tasks if task.direction is Direction.DOWN} == set(Application)
    assert {task.application for task in tasks if task.direction is Direction.UP} == set(Application) - {
        Application.FTP
    }
