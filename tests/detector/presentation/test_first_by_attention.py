"""Which connections may be among those whose packets are named, by what several processes have found so far."""

from __future__ import annotations

import multiprocessing
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.presentation.first_by_attention import FirstByAttention
from pepscope.results.attention import ATTENTION

_LAST = max(ATTENTION.values())


@st.composite
def _ranks_by_parts(draw: st.DrawFn) -> tuple[int, np.ndarray, list[np.ndarray]]:
    """How many are asked for, the ranks of all connections, and their places by parts in any order."""
    ranks = np.array(draw(st.lists(st.integers(0, _LAST), min_size=1, max_size=60)))
    cuts = sorted(draw(st.sets(st.integers(0, len(ranks)), max_size=6)) | {0, len(ranks)})
    parts = [np.arange(*ends) for ends in pairwise(cuts)]
    return draw(st.integers(0, 70)), ranks, draw(st.permutations(parts))


@given(_ranks_by_parts())
def test_what_is_asked_for_is_always_among_the_first(drawn: tuple[int, np.ndarray, list[np.ndarray]]) -> None:
    asked, ranks, parts = drawn
    first, chosen = FirstByAttention(asked, len(ranks)), set[int]()
    for places in parts:
        chosen |= set(places[first.among(places, ranks[places])].tolist())
    wanted = np.argsort(ranks, kind="stable")[:asked]
    assert chosen >= {place for place in wanted.tolist() if ranks[place] < _LAST}
    assert len(chosen) <= asked or len(parts) > 1


@given(st.integers(1, 60), st.integers(0, _LAST - 1), st.integers(0, 70), st.integers(1, 20))
def test_in_order_none_but_the_first_of_equal_attention_are_chosen(
    count: int, rank: int, asked: int, size: int
) -> None:
    ranks = np.full(count, rank)
    first, chosen = FirstByAttention(asked, count), list[int]()
    for begin in range(0, count, size):
        places = np.arange(begin, min(begin + size, count))
        chosen += places[first.among(places, ranks[places])].tolist()
    assert chosen == [*range(min(asked, count))]


def test_of_what_deserves_least_attention_as_many_come_first_as_will_be_left_over() -> None:
    ranks = np.tile([0, _LAST, _LAST, _LAST], 100)
    first = FirstByAttention(160, len(ranks))
    chosen = np.concatenate([first.among(places, ranks[places]) for places in np.split(np.arange(400), 4)])
    assert chosen[ranks == 0].all()
    assert np.flatnonzero(chosen & (ranks == _LAST)).tolist() == np.flatnonzero(ranks == _LAST)[:60].tolist()


def test_a_process_knows_what_another_one_found() -> None:
    first, places = FirstByAttention(10, 30), np.arange(30)
    process = multiprocessing.get_context("fork").Process(target=first.among, args=(places[:10], np.zeros(10, int)))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert not first.among(places[10:20], np.zeros(10, int)).any()
    assert not first.among(places[20:], np.full(10, _LAST)).any()


def test_no_connections_are_asked_for_or_there_are_none() -> None:
    assert not FirstByAttention(0, 5).among(np.arange(5), np.zeros(5, int)).any()
    assert FirstByAttention(5, 0).among(np.arange(0), np.zeros(0, int)).tolist() == []
