"""Closes: which are timed, and what they say of a hidden leg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from detector.one_capture.columns import VantageColumns
from detector.one_capture.likelihoods.closes import Closes, closes, last_round_trips_s
from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.likelihoods.timing_tables import CLIENT_CLOSE, CLOSE
from detector.one_capture.networks import NetworkTable, places
from pepscope.captures.exchanges import ExchangeKind
from tests.detector.one_capture.made_vantages import Talk, judged, vantage

LATE = tuple((ExchangeKind.COMMAND, 30.0 + place / 2) for place in range(8))


def timed(made: VantageColumns) -> Closes:
    where = places(made.columns, at_client=False, table=NetworkTable())
    timing = exchange_timing(made.exchanges, where, at_client=False)
    return closes(made.columns, where, timing)


def test_a_close_takes_what_is_beyond_the_round_trip_of_its_connection() -> None:
    talks = [Talk(excess_ms=LATE, close_ms=12.0), Talk(excess_ms=LATE), Talk(excess_ms=LATE, close_ms=40.0, port=81)]
    found = timed(vantage(talks, at_client=False))
    assert sorted(found.connection.tolist()) == [0, 2]
    by_connection = dict(zip(found.connection.tolist(), found.excess_s.tolist(), strict=True))
    assert by_connection == {0: pytest.approx(0.012), 2: pytest.approx(0.040)}


def test_a_close_that_answers_the_servers_fin_says_nothing() -> None:
    made = vantage([Talk(excess_ms=LATE, close_ms=25.0)], at_client=False)
    fin_ns = made.columns["up_fin_time_ns"]
    for server_fin_ns, count in ((fin_ns - 20_000_000, 0), (fin_ns - 1, 0), (fin_ns + 1, 1)):
        closed = structs.replace(made, columns={**made.columns, "down_fin_time_ns": server_fin_ns})
        assert timed(closed).excess_s.tolist() == pytest.approx([0.025] * count)


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ([ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA], CLIENT_CLOSE),
        ([ExchangeKind.TURN], CLIENT_CLOSE),
        ([ExchangeKind.HTTP_NEXT_REQUEST], CLOSE),
        ([ExchangeKind.COMMAND], CLOSE),
        ([ExchangeKind.TURN, ExchangeKind.HTTP_NEXT_REQUEST], CLOSE),  # WebSocket
        ([], CLOSE),
    ],
)
def test_only_what_a_box_can_read_tells_it_that_nothing_follows(kinds: list[ExchangeKind], kind: int) -> None:
    talks = [
        Talk(excess_ms=[(each, 30.0) for each in kinds], close_ms=5.0),
        Talk(excess_ms=LATE, port=81, close_ms=5.0),
    ]
    found = timed(vantage(talks, at_client=False))
    assert found.kind.tolist() == [kind, CLOSE]


@pytest.mark.parametrize(
    "changed",
    [
        {"down_retransmitted_packets": np.ones(1, np.int64)},
        {"up_last_data_time_ns": np.full(1, 61_000_000_000)},
        {"up_fin_time_ns": np.full(1, 60_010_000_000)},
        {"down_last_data_time_ns": np.full(1, -1)},
    ],
    ids=["sent again", "client spoke later", "sooner than a round trip", "server said nothing"],
)
def test_closes_that_time_nothing_are_left_out(changed: dict[str, np.ndarray]) -> None:
    made = vantage([Talk(excess_ms=LATE, close_ms=5.0)], at_client=False)
    assert len(timed(made).excess_s) == 1
    assert len(timed(structs.replace(made, columns={**made.columns, **changed})).excess_s) == 0


def test_closes_at_once_speak_against_a_leg_and_late_ones_for_it() -> None:
    def split(close_ms: float | None) -> float:
        talks = [Talk(excess_ms=LATE, close_ms=close_ms) for _ in range(4)]
        return float(judged(talks, at_client=False).groups.split[0])

    assert split(0.5) < split(None) < split(31.0)


UNREAD = tuple((ExchangeKind.TURN, 30.0 + place / 2) for place in range(8))


def log_odds(excess_ms: Sequence[tuple[ExchangeKind, float]], closes_ms: Sequence[float | None]) -> float:
    """Of a split, where the connections of one client close so late."""
    talks = [Talk(excess_ms=excess_ms, close_ms=close_ms) for close_ms in closes_ms]
    split = float(judged(talks, at_client=False).groups.split[0])
    return math.log(split / (1 - split))


def test_what_cannot_read_a_conversation_does_not_end_it() -> None:
    read, unread = (log_odds(excess_ms, [0.5] * 4) - log_odds(excess_ms, [None] * 4) for excess_ms in (LATE, UNREAD))
    assert unread < read - 0.5


@given(st.lists(st.floats(0.1, 2.0), min_size=1, max_size=6))
def test_closes_at_once_speak_against_a_split_however_many_and_by_a_bounded_factor(closes_ms: list[float]) -> None:
    beyond = log_odds(UNREAD, closes_ms) - log_odds(UNREAD, [None] * len(closes_ms))
    assert math.log(0.02) - 0.5 < beyond < -0.5


def test_servers_are_not_judged_by_when_they_close() -> None:
    talks = [Talk(excess_ms=LATE) for _ in range(4)]
    made, closing = (
        judged([replace(talk, close_ms=close_ms) for talk in talks], at_client=True).groups.split
        for close_ms in (None, 0.5)
    )
    np.testing.assert_array_equal(made, closing)


def test_the_end_of_a_connection_times_the_near_leg_where_the_client_closed_before() -> None:
    """A delayed acknowledgement makes no difference to it; nothing is known where the server closed first, its FIN was
    the last packet, anything was sent again, or a reset of the server is the last packet."""
    columns = {
        "up_fin_time_ns": np.array([10, 30, 10, 10, -1, 10]) * 1_000_000,
        "down_fin_time_ns": np.array([20] * 6) * 1_000_000,
        "last_time_ns": np.array([45, 45, 20, 45, 45, 21]) * 1_000_000,
        "down_retransmitted_packets": np.array([0, 0, 0, 1, 0, 0]),
        "down_reset_time_ns": np.array([-1, -1, -1, -1, -1, 21]) * 1_000_000,
    }
    np.testing.assert_array_equal(last_round_trips_s(columns), [0.025, *[np.nan] * 5])
