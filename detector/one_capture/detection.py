"""One capture, or several of one vantage point, to results: groups first, then connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from detector.one_capture import pools
from detector.one_capture.columns import VantageColumns, selected, vantage_columns
from detector.one_capture.connections import pair_table
from detector.one_capture.judging import JudgedSide, group_results, judged_connections, judged_groups
from detector.one_capture.members import Ints
from detector.one_capture.networks import NetworkTable
from detector.one_capture.reasons.sentences import group_verdict_remark
from detector.one_capture.reasons.shown_signs import with_shown_signs
from detector.one_capture.side_posteriors import SidePosteriors, weigh_side
from detector.one_capture.sides import Stretch, judged_stretches
from pepscope.captures.capture import Capture
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import (
    Evidence,
    GroupResult,
    GroupSide,
    Verdict,
)


def judge_vantage(
    captures: Sequence[Capture],
    *,
    taken_at: GroupSide | None = None,
    networks: NetworkTable | None = None,
    least_probability: float,
    further_evidence: Callable[[int], Sequence[Evidence]] | None = None,
    series: bool = False,
) -> tuple[PairTable, tuple[GroupResult, ...]]:
    """Judge the connections that one vantage point shows, by network and port and one by one.

    `taken_at` says which side the captures were taken at (None: found out), `networks` which addresses belong together.
    `further_evidence` gives what other methods found of a connection. With `series` the groups that deserve attention
    carry what a page draws of them.
    """
    vantage = vantage_columns(captures)
    judged = _judged_sides(vantage, taken_at, networks, least_probability)
    pairs, told_places = pair_table(vantage, [side for _, side in judged], further_evidence, least_probability)
    told = np.asarray(sorted(told_places), np.int64)
    number = np.arange(len(vantage.capture)) - np.searchsorted(vantage.capture, vantage.capture)
    groups = [
        result
        for seen, side in judged
        for result in with_shown_signs(
            _group_results(side), seen, side.posteriors, side.groups.explanations,
            number if side.rows is None else number[side.rows],
        )
    ]  # fmt: skip
    if series:
        from detector.one_capture.group_series import with_series

        groups = with_series(groups, [(seen, side.posteriors) for seen, side in judged])
    for group in groups:
        if group.verdict is Verdict.INCONCLUSIVE or len(group.pairs) < 2:
            continue
        remark = group_verdict_remark(group.port, group.network, group.verdict.value)
        places = np.asarray(group.pairs, np.int64)
        pairs.add_remarks(places[pairs.are(Verdict.INCONCLUSIVE, places) & ~np.isin(places, told)], remark)
    return pairs, tuple(groups)


def vantage_groups(
    vantage: VantageColumns,
    *,
    taken_at: GroupSide | None = None,
    networks: NetworkTable | None = None,
    least_probability: float,
) -> tuple[GroupResult, ...]:
    """The groups alone that `judge_vantage` gives, without the signs that are only shown: packets may be gone."""
    judged = _judged_sides(vantage, taken_at, networks, least_probability)
    return tuple(result for _, side in judged for result in _group_results(side))


def _on(vantage: VantageColumns, stretch: Stretch) -> VantageColumns:
    """What is seen of the connections that are judged on a stretch."""
    if stretch.rows is None:
        return vantage
    return selected(vantage, stretch.rows, np.ones(len(vantage.references), np.bool_))


def _judged_sides(
    vantage: VantageColumns, taken_at: GroupSide | None, networks: NetworkTable | None, least_probability: float
) -> list[tuple[VantageColumns, JudgedSide]]:
    """The stretches judged, each with what is seen of its connections."""
    table = NetworkTable() if networks is None else networks
    judged = []
    for stretch in judged_stretches(vantage.columns, taken_at, vantage.declared.asks, vantage.references):
        seen = _on(vantage, stretch)
        judged.append((seen, _judged(weigh_side(seen, stretch.side, table), least_probability, stretch.rows)))
    return judged


def _judged(posteriors: SidePosteriors, least_probability: float, rows: Ints | None) -> JudgedSide:
    members = pools.of_members(posteriors)
    groups = judged_groups(posteriors, members, least_probability)
    connections = judged_connections(posteriors, members, least_probability, groups)
    return JudgedSide(posteriors, members, groups, *connections, rows)


def _group_results(side: JudgedSide) -> list[GroupResult]:
    places = side.posteriors.places
    group = places.member_group[places.member]
    order = np.argsort(group, kind="stable")
    numbers = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    results = group_results(side.posteriors, side.members, side.groups, [part.tolist() for part in numbers])
    if (rows := side.rows) is None:
        return results
    return [replace(each, pairs=tuple(rows[np.asarray(each.pairs, np.int64)].tolist())) for each in results]
