"""Clocks of hosts by their TCP timestamps: what is one clock, and what only resembles one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.senders.clocks import COUNTER, MemberClocks, chance, member_clocks, shared_clocks
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders
from tests.detector.one_capture.senders.made_senders import senders

TURN = 1 << 32


def ticking(zero_s: list[float], start_s: list[float], spent_s: list[float], rate_hz: float = 1000.0) -> Senders:
    """Servers whose counters were zero then; the first and last packet of each connection."""
    zero, first = np.asarray(zero_s), np.asarray(start_s)
    last = first + np.asarray(spent_s)
    return senders(
        len(zero), 1,
        ticked_packets=2,
        first_tick_ns=np.round(first * 1e9), last_tick_ns=np.round(last * 1e9),
        first_tsval=np.floor((first - zero) * rate_hz) % TURN, last_tsval=np.floor((last - zero) * rate_hz) % TURN,
    )  # fmt: skip


def test_connections_of_one_clock_agree_across_the_turn_of_its_counter() -> None:
    wraps_s = TURN / 1000
    made = ticking([5.0] * 4, [10.0, wraps_s - 1.0, wraps_s + 100.0, 3 * wraps_s], [1.0, 20.0, 0.2, 5.0])
    clocks = member_clocks(made, Direction.DOWN, np.zeros(4, np.int64), 1)
    assert clocks.rate_hz.tolist() == [1000.0]
    assert clocks.blur_s[0] < 0.005
    assert clocks.connections.tolist() == [4]


def test_hosts_of_one_clock_are_counted_by_group() -> None:
    made = ticking([5.0, 5.02, 900.0, 5.01, 5.0], [10.0] * 5, [1.0] * 5)
    member = np.arange(5)
    clocks = member_clocks(made, Direction.DOWN, member, 5)
    found = shared_clocks(clocks, np.asarray([0, 0, 0, 1, 1]), 3, 0.05)
    assert (found.known.tolist(), found.sharing.tolist()) == ([3, 2, 0], [2, 2, 0])
    alone = shared_clocks(clocks, np.asarray([0, 0, 0, 1, 1]), 3, 0.005)
    assert alone.sharing.tolist() == [1, 1, 0]


def test_a_counter_for_each_connection_is_no_clock() -> None:
    made = ticking([5.0, 70_000.0, 900.0], [100_000.0] * 3, [1.0] * 3)
    clocks = member_clocks(made, Direction.DOWN, np.zeros(3, np.int64), 1)
    assert clocks.blur_s[0] > 100
    assert shared_clocks(clocks, np.zeros(1, np.int64), 1, 0.1).known.tolist() == [0]


def test_rates_that_no_stack_has_and_short_connections_tell_nothing() -> None:
    odd = member_clocks(ticking([0.0], [10.0], [1.0], 620.0), Direction.DOWN, np.zeros(1, np.int64), 1)
    short = member_clocks(ticking([0.0], [10.0], [0.001]), Direction.DOWN, np.zeros(1, np.int64), 1)
    for clocks in (odd, short):
        assert np.isnan(clocks.rate_hz[0])
        assert np.isnan(clocks.zero_s[0])


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from((100.0, 1000.0)), st.integers(0, 60)), max_size=20))
def test_sharing_is_the_largest_set_within_the_tolerance(rows: list[tuple[int, float, int]]) -> None:
    group = np.asarray([row[0] for row in rows], np.int64)
    zero_s = np.asarray([row[2] + 10 for row in rows], np.float64)  # no zero is near the epoch
    clocks = MemberClocks(np.asarray([row[1] for row in rows]), zero_s, np.zeros(len(rows)), np.ones(len(rows), int))
    found = shared_clocks(clocks, group, 3, 5.0)
    for place in range(3):
        windows = [
            sum(1 for other in rows if other[:2] == row[:2] and 0 <= other[2] - row[2] <= 5)
            for row in rows
            if row[0] == place
        ]
        assert found.sharing[place] == max(windows, default=0)
        sharing = zero_s[found.shares & (group == place)]
        assert len(sharing) == (found.sharing[place] if found.sharing[place] > 1 else 0)
        assert np.ptp(sharing) <= 5 if len(sharing) else True


def test_counters_that_run_from_the_epoch_are_no_clock_of_one_host() -> None:
    turns_s = TURN / 1000
    for zero_s, known in ((3 * turns_s + 0.3, 0), (-0.4, 0), (3 * turns_s + 30.0, 2)):
        made = ticking([zero_s, zero_s + 0.02], [10 * turns_s] * 2, [1.0] * 2)
        clocks = member_clocks(made, Direction.DOWN, np.arange(2), 2)
        found = shared_clocks(clocks, np.zeros(2, np.int64), 1, 0.1)
        assert (found.known.tolist(), found.sharing.tolist()) == ([known], [known])


def test_chance_is_that_of_counters_drawn_at_random() -> None:
    """With a circle of few ticks, so that coincidences are seen."""
    random = np.random.default_rng(1)
    hosts, within = 12, 0.004
    zeros = np.sort(random.random((20_000, hosts)), axis=1)
    for sharing in (2, 3):
        wrapped = np.concatenate([zeros, zeros[:, : sharing - 1] + 1], axis=1)
        sets = (wrapped[:, sharing - 1 :] - wrapped[:, : -(sharing - 1)] <= within).any(axis=1).mean()
        bound = chance(hosts, sharing, within * COUNTER, 1.0)
        assert 0.5 * bound < sets <= 1.15 * bound
    assert chance(2, 2, 1000.0, 0.1) == pytest.approx(4.66e-8, rel=0.01)
    assert chance(5000, 400, 1000.0, 0.1) < 1e-100
    assert chance(5000, 2, 1e6, 0.1) == 1.0
