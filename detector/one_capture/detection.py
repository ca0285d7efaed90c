"""One capture, or several of one vantage point, to results: groups first, then connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from detector.one_capture import pools
from detector.one_capture.classes import Explanation
from detector.one_capture.columns import VantageColumns, vantage_columns
from detector.one_capture.group_series import with_series
from detector.one_capture.judging import (
    JudgedPools,
    group_results,
    judged_connections,
    judged_groups,
    probability_of,
    verdict_of,
)
from detector.one_capture.networks import NetworkTable
from detector.one_capture.reasons.evidence import exchange_evidence
from detector.one_capture.reasons.sentences import at_odds, group_verdict_remark, leg_too_short, reason
from detector.one_capture.side_judgement import SideJudgement, judge_side
from detector.one_capture.sides import judged_sides
from detector.verdict.weighing import Judgement, judge
from pepscope.captures.capture import Capture
from pepscope.captures.connections import endpoint
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import (
    Evidence,
    GroupResult,
    GroupSide,
    Mechanism,
    Outcome,
    PairResult,
    VantageName,
    Verdict,
)

#: Probability of a split before any evidence.
_UNKNOWN = 0.5


@dataclass(frozen=True, slots=True)
class _Side:
    """One judged side with its pools."""

    judgement: SideJudgement
    members: pools.Pools
    groups: JudgedPools
    connections: JudgedPools


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
    table = NetworkTable() if networks is None else networks
    sides = [
        _judged(judge_side(vantage, side, table), least_probability)
        for side in judged_sides(vantage.columns, taken_at)
    ]  # fmt: skip
    pairs = _pair_table(vantage, sides, further_evidence, least_probability)
    groups = [result for side in sides for result in _group_results(side)]
    if series:
        groups = with_series(groups, vantage, [side.judgement for side in sides])
    for group in groups:
        if group.verdict is Verdict.INCONCLUSIVE or len(group.pairs) < 2:
            continue
        remark = group_verdict_remark(group.port, group.network, group.verdict.value)
        for place in group.pairs:
            if pairs.verdict(place) is Verdict.INCONCLUSIVE and " its group " not in pairs.reason(place):
                pairs.add_remark(place, remark)
    return pairs, tuple(groups)


def _judged(judgement: SideJudgement, least_probability: float) -> _Side:
    members = pools.of_members(judgement)
    return _Side(
        judgement,
        members,
        judged_groups(judgement, members, least_probability),
        judged_connections(judgement, members, least_probability),
    )


def _group_results(side: _Side) -> list[GroupResult]:
    places = side.judgement.places
    group = places.member_group[places.member]
    order = np.argsort(group, kind="stable")
    numbers = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return group_results(side.judgement, side.members, side.groups, [part.tolist() for part in numbers])


def _pair_table(
    vantage: VantageColumns,
    sides: Sequence[_Side],
    further_evidence: Callable[[int], Sequence[Evidence]] | None,
    least_probability: float,
) -> PairTable:
    """The verdicts on all connections."""
    columns, table = vantage.columns, PairTable()
    rows = zip(
        vantage.capture.tolist(), vantage.clients, columns["client_port"].tolist(), vantage.servers,
        columns["server_port"].tolist(), columns["packets"].tolist(), columns["up_stream_bytes"].tolist(),
        columns["down_stream_bytes"].tolist(), (columns["last_time_ns"] - columns["first_time_ns"]).tolist(),
        strict=True,
    )  # fmt: skip
    paths = [capture.path for capture in vantage.captures]
    for number, (capture, client, client_port, server, server_port, packets, up, down, took_ns) in enumerate(rows):
        verdict, probability, why, evidence = _of_connection(sides, number)
        judgement = Judgement(verdict, probability, why, Mechanism.UNDECIDED if verdict.is_split else None)
        if further_evidence is not None:
            further = further_evidence(number)
            evidence = (*evidence, *further)
            if any(item.outcome is not Outcome.INAPPLICABLE for item in further):
                judgement = judge(evidence, least_probability=least_probability)
        table.append(
            PairResult(
                vantages=(VantageName(paths[capture], endpoint(client, client_port), endpoint(server, server_port)),),
                verdict=judgement.verdict,
                probability=judgement.probability,
                reason=judgement.reason,
                evidence=evidence,
                packets=packets,
                payload_bytes_up=up,
                payload_bytes_down=down,
                duration_s=took_ns / 1e9,
                mechanism=judgement.mechanism,
            )
        )
    return table


def _of_connection(
    sides: Sequence[_Side], number: int
) -> tuple[Verdict, Mapping[Verdict, float], str, tuple[Evidence, ...]]:
    """Verdict, class probabilities, reason and evidence; where both stretches are judged the worse one decides."""
    found = [_on_side(side, number) for side in sides]
    if not found:
        return (
            Verdict.INCONCLUSIVE,
            probability_of(_UNKNOWN, dialogues=False),
            "No packet shows which way this connection goes.",
            (),
        )
    split = [each for each in found if each.verdict.is_split]
    undecided = [each for each in found if each.verdict is Verdict.INCONCLUSIVE]
    shown = (split or undecided or found)[0]
    is_placed = len(found) > 1 and shown.verdict.is_split
    why = f"Between this capture and the {shown.side.value}s: {shown.why}" if is_placed else shown.why
    split_anywhere = 1.0 - math.prod(1.0 - each.split for each in found)
    probability = probability_of(split_anywhere, dialogues=shown.dialogues)
    return shown.verdict, probability, why, tuple(each.evidence for each in found)


@dataclass(frozen=True, slots=True)
class _OnSide:
    """A connection as one side shows it."""

    side: GroupSide
    verdict: Verdict
    split: float
    dialogues: bool
    why: str
    evidence: Evidence


def _on_side(side: _Side, number: int) -> _OnSide:
    """What one side shows of a connection, which its group may know better."""
    explanation = side.connections.explanation(number)
    figures = side.connections.figures(number, 1)
    verdict, why = verdict_of(explanation), reason(figures, explanation)
    places = side.judgement.places
    of_group = verdict_of(side.groups.explanation(int(places.member_group[places.member[number]])))
    if verdict is Verdict.REGULAR and of_group.is_split:
        verdict, why = Verdict.INCONCLUSIVE, leg_too_short(figures)
    elif verdict.is_split and of_group is Verdict.REGULAR and explanation is not Explanation.SITE:
        verdict, why = Verdict.INCONCLUSIVE, at_odds(figures)
    return _OnSide(
        side.judgement.side, verdict, figures.split, figures.dialogues > 0, why, exchange_evidence(figures, explanation)
    )
