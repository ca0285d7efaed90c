"""Closes: which are timed, and what they say of a hidden leg."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from detector.one_capture.columns import VantageColumns
from detector.one_capture.likelihoods.closes import Closes, closes
from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.networks import NetworkTable, places
from pepscope.captures.exchanges import ExchangeKind
from tests.detector.one_capture.made_vantages import Talk, judged, vantage

LATE = tuple((ExchangeKind.COMMAND, 30.0 + place / 2) for place in range(8))


def timed(made: VantageColumns) -> Closes:
    where = places(made.columns, at_client=False, table=NetworkTable())
    timing = exchange_timing(made.exchanges, where, np.ones(len(made.capture), np.bool_), at_client=False)
    return closes(made.columns, where, timing)


def test_a_close_takes_what_is_beyond_the_round_trip_of_its_connection() -> None:
    talks = [Talk(excess_ms=LATE, close_ms=12.0), Talk(excess_ms=LATE), Talk(excess_ms=LATE, close_ms=40.0, port=81)]
    found = timed(vantage(talks, at_client=False))
    assert sorted(found.connection.tolist()) == [0, 2]
    by_connection = dict(zip(found.connection.tolist(), found.excess_s.tolist(), strict=True))
    assert by_connection == {0: pytest.approx(0.012), 2: pytest.approx(0.040)}


def test_time_runs_from_the_servers_fin_where_that_came_first() -> None:
    made = vantage([Talk(excess_ms=LATE, close_ms=25.0)], at_client=False)
    fin_ns = made.columns["down_last_data_time_ns"] + 20_000_000
    later = structs.replace(made, columns={**made.columns, "down_fin_time_ns": fin_ns})
    assert timed(later).excess_s.tolist() == pytest.approx([0.005])
    answered = structs.replace(made, columns={**made.columns, "down_fin_time_ns": made.columns["up_fin_time_ns"] + 1})
    assert timed(answered).excess_s.tolist() == pytest.approx([0.025])


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


def test_servers_are_not_judged_by_when_they_close() -> None:
    talks = [Talk(excess_ms=LATE) for _ in range(4)]
    made, closing = (
        judged([replace(talk, close_ms=close_ms) for talk in talks], at_client=True).groups.split
        for close_ms in (None, 0.5)
    )
    np.testing.assert_array_equal(made, closing)
