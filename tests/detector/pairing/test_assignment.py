"""The best pairing over a sparse graph, held against trying everything out."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from detector.pairing import assignment
from detector.pairing.assignment import Edge, assign

#: Weights that tie often, and weights that never do.
_WEIGHTS = st.one_of(st.sampled_from((1.0, 2.0, 5.0)), st.floats(0.01, 20.0))


@st.composite
def graphs(draw: st.DrawFn) -> list[Edge]:
    pairs = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9, unique=True))
    return [Edge(first, second, draw(_WEIGHTS)) for first, second in pairs]


def best_sum(edges: list[Edge]) -> float:
    """The greatest sum of weights, by trying every pairing."""
    if not edges:
        return 0.0
    head, rest = edges[0], edges[1:]
    free = [edge for edge in rest if edge.first != head.first and edge.second != head.second]
    return max(best_sum(rest), head.weight + best_sum(free))


def free_of(edges: list[Edge], taken: Edge) -> list[Edge]:
    return [edge for edge in edges if edge.first != taken.first and edge.second != taken.second]


@given(graphs())
def test_no_pairing_is_better_and_margins_are_what_doing_without_costs(edges: list[Edge]) -> None:
    chosen = assign(edges)
    taken = [edges[choice.edge] for choice in chosen]
    assert len({edge.first for edge in taken}) == len({edge.second for edge in taken}) == len(taken)
    best = best_sum(edges)
    assert sum(edge.weight for edge in taken) == pytest.approx(best)
    for choice in chosen:
        without = edges[: choice.edge] + edges[choice.edge + 1 :]
        assert choice.margin == pytest.approx(best - best_sum(without), abs=1e-9)
        for place, loss in choice.rivals:
            rival = edges[place]
            assert loss == pytest.approx(best - rival.weight - best_sum(free_of(edges, rival)), abs=1e-9)


@given(graphs(), st.randoms(use_true_random=False))
def test_neither_the_order_of_edges_nor_of_sides_matters(edges: list[Edge], chance: random.Random) -> None:
    shuffled = list(edges)
    chance.shuffle(shuffled)
    transposed = [Edge(edge.second, edge.first, edge.weight) for edge in edges]
    sums = [sum(graph[choice.edge].weight for choice in assign(graph)) for graph in (edges, shuffled, transposed)]
    assert sums[0] == pytest.approx(sums[1])
    assert sums[0] == pytest.approx(sums[2])
    decided = {(edges[c.edge].first, edges[c.edge].second) for c in assign(edges) if c.margin > 1e-6}
    for graph, again in ((shuffled, False), (transposed, True)):
        found = {(graph[c.edge].first, graph[c.edge].second) for c in assign(graph)}
        assert decided <= ({(b, a) for a, b in found} if again else found)


@given(graphs())
def test_large_components_are_solved_as_well_and_their_margins_are_upper_bounds(edges: list[Edge]) -> None:
    exact = assign(edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assignment, "EXACT_MEMBERS", 0)
        sparse = assign(edges)
    assert sum(edges[c.edge].weight for c in sparse) == pytest.approx(sum(edges[c.edge].weight for c in exact))
    margins = {choice.edge: choice.margin for choice in exact}
    for choice in sparse:
        assert choice.margin >= margins.get(choice.edge, 0.0) - 1e-9


def test_components_too_large_to_try_out_are_solved_as_scipy_solves_them() -> None:
    chance = np.random.default_rng(5)
    for height, width in ((400, 300), (150, 700)):
        table = np.where(
            chance.random((height, width)) < 0.02, chance.choice(np.linspace(1, 9, 33), (height, width)), 0
        )
        edges = [Edge(int(one), int(two), float(table[one, two])) for one, two in np.argwhere(table)]
        assert len(edges) > 1000
        taken = scipy.optimize.linear_sum_assignment(table, maximize=True)
        assert sum(edges[choice.edge].weight for choice in assign(edges)) == pytest.approx(table[taken].sum())


def test_ten_thousand_that_all_look_alike_pair_in_order() -> None:
    count = 10_000
    edges = [
        Edge(one, two, 20.0 - (one - two) ** 2)
        for one in range(count)
        for two in range(max(0, one - 4), min(count, one + 5))
    ]
    chosen = assign(edges)
    assert all(edges[choice.edge].first == edges[choice.edge].second for choice in chosen)
    assert len(chosen) == count
    assert {choice.margin for choice in chosen} == {2.0}
