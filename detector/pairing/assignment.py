"""The best pairing of two sets over a sparse graph of candidates, and how much worse the best other one is.

Weights are log-likelihood ratios (nats): of all pairings that use every member at most once, the one with the greatest
sum explains best what was seen. The graph falls into connected components, which are solved one by one by the sparse
algorithm of Jonker and Volgenant (1987), in the package `lap`, which is imported where there is something to choose.

The margin of a chosen pair is what the sum loses if that pair is forbidden. Forbidding a pair moves its members to
others, whose partners move on, until the chain closes or ends at a free place: the margin is the shortest cycle through
the pair in the graph of such moves (no cycle is negative, or the pairing were not the best). In components with more
than `EXACT_MEMBERS` only moves of two pairs are looked at, so that margins there are upper bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Float64Array = npt.NDArray[np.float64]

#: Members of a component up to which every chain of moves is followed: its cube is the work.
EXACT_MEMBERS = 192


class Edge(Struct, frozen=True):
    """`first` and `second` may be one; `weight` (nats, positive) is how much better that explains what was seen."""

    first: int
    second: int
    weight: float


class Chosen(Struct, frozen=True):
    """An edge (by its place) of the best pairing, what the sum loses without it, and the other edges of its members
    with what the sum loses if they are used instead, the least first."""

    edge: int
    margin: float
    rivals: tuple[tuple[int, float], ...]


def assign(edges: Sequence[Edge]) -> list[Chosen]:
    """The pairing with the greatest sum of weights. Of two members at most one edge."""
    chosen: list[Chosen] = []
    for places in _components(edges):
        chosen += _solve([edges[place] for place in places], places)
    return chosen


def _components(edges: Sequence[Edge]) -> list[list[int]]:
    """Places of the edges, by connected component."""
    if all(len({getattr(edge, side) for edge in edges}) == len(edges) for side in ("first", "second")):
        return [[place] for place in range(len(edges))]
    parents: dict[tuple[str, int], tuple[str, int]] = {}

    def root(member: tuple[str, int]) -> tuple[str, int]:
        parent = parents.setdefault(member, member)
        while parent != member:
            # Every other member of the way points on to its grandparent (path halving), so that ways stay short.
            parents[member] = member = parents[parent]
            parent = parents[member]
        return member

    for edge in edges:
        parents[root(("second", edge.second))] = root(("first", edge.first))
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, edge in enumerate(edges):
        groups[root(("first", edge.first))].append(place)
    return list(groups.values())


def _solve(edges: list[Edge], places: list[int]) -> list[Chosen]:
    if len(edges) == 1:
        return [Chosen(places[0], edges[0].weight, ())]
    firsts, rows = np.unique([edge.first for edge in edges], return_inverse=True)
    seconds, columns = np.unique([edge.second for edge in edges], return_inverse=True)
    weights = np.array([edge.weight for edge in edges])
    partner = _best(rows, columns, weights, len(firsts), len(seconds))
    if max(len(firsts), len(seconds)) <= EXACT_MEMBERS:
        losses = _losses(rows, columns, weights, partner, len(seconds))
    else:
        losses = _losses_by_exchange(rows, columns, weights, partner, len(seconds))
    by_first: dict[int, list[int]] = defaultdict(list)
    by_second: dict[int, list[int]] = defaultdict(list)
    for place in range(len(edges)):
        by_first[int(rows[place])].append(place)
        by_second[int(columns[place])].append(place)
    chosen = []
    for place in np.flatnonzero(partner[rows] == columns).tolist():
        others = [*by_first[int(rows[place])], *by_second[int(columns[place])]]
        rivals = sorted((float(losses[other]), places[other]) for other in others if other != place)
        margin = min([edges[place].weight, *(loss for loss, _ in rivals)])
        chosen.append(Chosen(places[place], margin, tuple((other, loss) for loss, other in rivals)))
    return chosen


def _best(
    rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], weights: Float64Array, height: int, width: int
) -> npt.NDArray[np.int64]:
    """For each row its column in the best pairing, or -1.

    The algorithm wants a square table of costs that are not negative, and takes one entry of each row and column. So
    each row has a column of its own and each column a row of its own, of weight 0, for members that stay alone; where a
    row takes a column, their own ones take each other.
    """
    from lap import lapmod

    size = height + width
    lines, alone = np.arange(height), np.arange(width)
    down = np.concatenate([rows, lines, height + columns, height + alone])
    across = np.concatenate([columns, width + lines, width + rows, alone])
    gains = np.concatenate([weights, np.zeros(height + len(weights) + width)])
    order = np.lexsort((across, down))
    starts = np.searchsorted(down[order], np.arange(size + 1))
    _, taken, _ = lapmod(size, gains.max() - gains[order], starts.astype(np.int32), across[order].astype(np.int32))
    taken = taken[:height].astype(np.int64)
    return np.where(taken < width, taken, -1)


def _losses(
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    weights: Float64Array,
    partner: npt.NDArray[np.int64],
    width: int,
) -> Float64Array:
    """For each edge what the sum loses if it is used: 0 for the chosen ones (Floyd and Warshall over all moves).

    Node r is row r with its column; one more node stands for all free places. A move from r to s gives row r the column
    of row s, and costs what that lowers the weight.
    """
    height = len(partner)
    owner = np.full(width, height, np.int64)
    owner[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    own = np.zeros(height)
    held = partner[rows] == columns
    own[rows[held]] = weights[held]
    cost = np.full((height + 1, height + 1), np.inf)
    cost[:height, height] = own  # to stay alone
    cost[height, :height] = 0.0  # and leave the column free
    moves = own[rows] - weights
    np.minimum.at(cost, (rows[~held], owner[columns[~held]]), moves[~held])
    for through in range(height + 1):
        np.minimum(cost, cost[:, through, None] + cost[None, through], out=cost)
    losses = np.where(held, 0.0, moves + cost[owner[columns], rows])
    return np.maximum(losses, 0.0)


def _losses_by_exchange(
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    weights: Float64Array,
    partner: npt.NDArray[np.int64],
    width: int,
) -> Float64Array:
    """As `_losses`, but the displaced members take each other, or a free place, or stay alone: an upper bound."""
    table = {(r, c): w for r, c, w in zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True)}
    owner = np.full(width, -1, np.int64)
    owner[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    losses = np.zeros(len(rows))
    for place, ((row, column), weight) in enumerate(table.items()):
        held, displaced = int(partner[row]), int(owner[column])
        if held == column:
            continue
        lost = table.get((row, held), 0.0) - weight
        if displaced >= 0:
            lost += table[displaced, column] - (table.get((displaced, held), 0.0) if held >= 0 else 0.0)
        losses[place] = max(lost, 0.0)
    return losses
