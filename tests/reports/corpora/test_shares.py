"""Shares with their intervals, beside published values and beside what draws show."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.corpora.changes import changes
from reports.corpora.questions import Cell
from reports.corpora.shares import Share, difference, interval_text, is_beyond_chance


def test_intervals_are_those_of_newcombes_papers() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 857-872: table I, method 3 (Wilson).
    assert Share(81, 263).interval() == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert Share(15, 148).interval() == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert Share(0, 20).interval() == pytest.approx((0.0, 0.1611), abs=5e-5)
    # The same, 873-890: table II, method 10.
    assert difference(Share(56, 70), Share(48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference(Share(9, 10), Share(3, 10)) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    assert difference(Share(10, 10), Share(0, 20)) == pytest.approx((0.6791, 1.0), abs=5e-5)


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_holds_its_share_and_mirrors(split: int, more: int) -> None:
    share, mirrored = Share(split, split + more), Share(more, split + more)
    low, high = share.interval()
    assert 0 <= low <= share.value <= high <= 1
    assert mirrored.interval() == pytest.approx((1 - high, 1 - low))
    assert not is_beyond_chance(share, share)
    least, most = difference(share, mirrored)
    assert least <= share.value - mirrored.value <= most
    assert difference(mirrored, share) == pytest.approx((-most, -least))


def test_few_connections_show_no_change_and_many_comparisons_ask_for_more() -> None:
    assert not is_beyond_chance(Share(1, 1), Share(0, 3))
    assert not is_beyond_chance(Share(3, 4), Share(0, 0))
    assert is_beyond_chance(Share(9, 20), Share(2, 20))
    assert not is_beyond_chance(Share(9, 20), Share(2, 20), comparisons=100)


def test_words_of_intervals_hold_them() -> None:
    assert interval_text(Share(0, 20)) == "0–17 %"
    assert interval_text(Share(20, 20)) == "83–100 %"


def test_weeks_without_a_change_show_none_but_rarely() -> None:
    draw = random.Random(1)
    false = 0
    for _ in range(60):
        cells = [
            Cell(f"net{network}", 443, week, 60, Share(sum(draw.random() < 0.3 for _ in range(60)), 60))
            for network in range(20)
            for week in ("2026-01-05", "2026-01-12")
        ]
        false += bool(changes(cells).changed)
    assert false <= 8  # of 60, at 5 %; 9 and more are beyond 99.5 %


def test_what_changed_is_the_last_week_beside_the_last_decided_one() -> None:
    def cell(network: str, week: int, split: int, decided: int) -> Cell:
        return Cell(network, 443, f"2026-01-{5 + 7 * week:02}", decided, Share(split, decided))

    found = changes(
        [
            cell("turned", 0, 0, 50), cell("turned", 2, 45, 50),
            cell("stays", 0, 10, 50), cell("stays", 1, 12, 50), cell("stays", 2, 11, 50),
            cell("new", 2, 3, 3), cell("gone", 1, 5, 5), cell("falls", 1, 50, 50), cell("falls", 2, 1, 50),
            cell("open", 1, 0, 0), cell("open", 2, 0, 4),
        ]
    )  # fmt: skip
    assert (found.week, found.has_before, found.compared) == ("2026-01-19", True, 3)
    assert [(each.network, each.before_week) for each in found.new_splits] == [
        ("turned", "2026-01-05"), ("new", None),
    ]  # fmt: skip
    assert {each.network for each in found.changed} == {"turned", "falls"}
    signs = {each.network: each.differs[0] > 0 for each in found.changed if each.differs is not None}
    assert signs == {"turned": True, "falls": False}
    assert not changes([]).has_before
