"""The verdict on a group: one rule of the network governs its connections, so their evidence is weighed together.

Of each family of findings only the strongest finding on each side counts, however many connections have it: what misled
a method once (a clock, a path) misleads it again. Only packet identity adds up over connections, as far as they are
independent observations (`detector.groups.pooling`). The mechanism is taken from the largest transfers, because a
transfer that fits into a relay's buffers looks stored. Connections with a doubtful pairing are counted, not weighed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from detector.groups.disagreement import JudgedConnection, disagreement, split_and_regular
from detector.groups.membership import GroupKey, Member, grouped, least_s
from detector.groups.pooling import pooled_identity
from detector.options import DECISION_PROBABILITY
from detector.verdict.weighing import Judgement, judge
from pepscope.results.finding import is_missing
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import SPLIT_VERDICTS, Evidence, GroupResult, Outcome, PairResult, SplitPlace, Verdict

#: The largest transfers are those of at least this share of the largest one's payload: sizes that differ in kind do so
#: by more, while headers, compression and lost captures change a size by less.
LARGEST_SHARE = 0.5


def judge_groups(
    members: Sequence[Member], *, two_captures: bool, least_probability: float = DECISION_PROBABILITY
) -> tuple[GroupResult, ...]:
    """One result a group, in the order of their first connections; `pairs` are places in `members`.

    Below `least_probability` of its class a group is inconclusive.
    """
    return tuple(
        _judge_group(key, places, [members[place] for place in places], two_captures, least_probability)
        for key, places in grouped(members).items()
    )


def with_group_verdicts(results: Sequence[PairResult], groups: Sequence[GroupResult]) -> PairTable:
    """The results, with the group's verdict added to the reason of undecided connections. No verdict is changed."""
    completed = PairTable.of(results)
    for group in groups:
        if group.verdict is Verdict.INCONCLUSIVE or len(group.pairs) < 2:
            continue
        what = f"Its group (port {group.port}, clients in {group.network}) is {group.verdict.value}."
        for place in group.pairs:
            if completed.verdict(place) is Verdict.INCONCLUSIVE:
                completed.add_remark(place, what)
    return completed


def _judge_group(
    key: GroupKey, places: Sequence[int], members: Sequence[Member], two_captures: bool, least_probability: float
) -> GroupResult:
    judgement, evidence = _weigh(members, least_probability)
    is_split = judgement.verdict.is_split
    return GroupResult(
        side=key.side,
        network=key.network,
        port=key.port,
        hosts=tuple(sorted({member.host for member in members})),
        pairs=tuple(places),
        exchanges=_exchanges(members),
        verdict=judgement.verdict,
        probability=judgement.probability,
        mechanism=judgement.mechanism,
        where=SplitPlace.NETWORK if is_split and two_captures and not _at_one_place(members) else None,
        near_round_trip_s=least_s(member.near_round_trip_ns for member in members),
        hidden_round_trip_s=least_s(member.hidden_round_trip_ns for member in members) if is_split else None,
        hidden_round_trip_interval_s=None,
        reason=judgement.reason,
        evidence=evidence,
    )


def _at_one_place(members: Sequence[Member]) -> bool:
    """Whether some connection has no path between its captures, so that the split point may be beyond them."""
    return any(member.pairs.at_one_place(member.place) for member in members)


def _weigh(members: Sequence[Member], least_probability: float) -> tuple[Judgement, tuple[Evidence, ...]]:
    """The judgement on all members together and its evidence; the member's own if there is only one."""
    if len(members) == 1:
        alone = members[0].result
        return Judgement(alone.verdict, alone.probability, alone.reason, alone.mechanism), alone.evidence
    counting = [member for member in members if not member.doubtful]
    pooled = pooled_identity(counting)
    together = [] if pooled is None else [pooled]
    found = _firmest(counting)
    judgement = judge(
        [*together, *(item for item, _ in found)],
        of_kind=[*together, *(item for item, _ in _firmest(_largest(counting)))],
        least_probability=least_probability,
    )
    evidence = (*together, *_reported(found, len(counting)))
    both = split_and_regular(members, lambda member: member)
    if all(both):
        split, regular = ([_judged_connection(member) for member in side] for side in both)
        judgement = Judgement(Verdict.INCONCLUSIVE, _of_any(members), disagreement(split, regular))
    elif judgement.verdict is Verdict.INCONCLUSIVE:
        judgement = replace(judgement, reason=_undecided_reason(judgement, members, counting))
    else:
        judgement = replace(judgement, reason=f"{_extent(judgement.verdict, members)} {judgement.reason}")
    return judgement, evidence


def _largest(members: Sequence[Member]) -> list[Member]:
    most = max((member.payload_bytes for member in members), default=0)
    return [member for member in members if member.payload_bytes >= LARGEST_SHARE * most]


def _judged_connection(member: Member) -> JudgedConnection:
    result, shown = member.result, member.result.vantages[0]
    client = shown.client.rpartition(":")[0].strip("[]")
    return JudgedConnection(
        shown.client, result.reason, member.payload_bytes, member.started_ns,
        (f"to {member.host}", f"from {client}"),
    )  # fmt: skip


def _of_any(members: Sequence[Member]) -> dict[Verdict, float]:
    """The probabilities of a connection of these drawn at random."""
    kinds = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    shares = [member.pairs.probability(member.place) for member in members]
    return {kind: sum(each.get(kind, 0.0) for each in shares) / len(members) for kind in kinds}


def _firmest(members: Sequence[Member]) -> list[tuple[Evidence, int]]:
    """Each finding of a method once, as the connection has it that shows it most firmly, and how many show it.

    Weighing these is weighing all: of a family the worst charge counts once.
    """
    firmest: dict[tuple[str, str], tuple[float, Member, int]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for member in members:
        for number, (item, strength) in enumerate(zip(member.evidence, member.strengths, strict=True)):
            key = (item.method, item.finding)
            counts[key] += 1
            if key not in firmest or strength > firmest[key][0]:
                firmest[key] = strength, member, number
    return [(member.in_full(number), counts[key]) for key, (_, member, number) in firmest.items()]


def _reported(found: Sequence[tuple[Evidence, int]], total: int) -> list[Evidence]:
    """The decided findings and those that name what is missing, the findings of most connections first."""
    reported = [(item, n) for item, n in found if item.outcome is not Outcome.INAPPLICABLE or is_missing(item)]
    ordered = sorted(reported, key=lambda each: (each[0].outcome is Outcome.INAPPLICABLE, -each[1]))
    return [_counted(item, count, total) for item, count in ordered]


def _counted(item: Evidence, count: int, total: int) -> Evidence:
    where = "In all connections" if count == total else f"In {count} of {total} connections"
    which = "" if count == 1 else ", in the firmest form" if item.outcome is not Outcome.INAPPLICABLE else ", as in one"
    return replace(item, summary=f"{where}{which}: {item.summary}", numbers={"connections": count, **item.numbers})


def _extent(verdict: Verdict, members: Sequence[Member]) -> str:
    """How many connections have the same verdict by themselves."""
    kinds = SPLIT_VERDICTS if verdict.is_split else (verdict,)
    agreeing, total = sum(member.verdict in kinds for member in members), len(members)
    word = "split" if verdict.is_split else "end to end"
    if agreeing == total:
        return f"{'Both' if total == 2 else f'All {total}'} connections are {word}."
    if agreeing == 0:
        return f"None of the {total} connections can be judged alone; together they are {word}."
    rest = total - agreeing
    verb = "is" if agreeing == 1 else "are"
    return f"Of {total} connections {agreeing} {verb} {word}, and {rest} cannot be judged alone."


def _undecided_reason(judgement: Judgement, members: Sequence[Member], counting: Sequence[Member]) -> str:
    """Why nothing is decided: what most connections lack, where the evidence as a whole does not disagree."""
    if not counting:
        return members[0].reason
    if any(item.outcome is not Outcome.INAPPLICABLE for member in counting for item in member.evidence):
        return judgement.reason
    reasons = Counter(member.reason for member in members)
    reason, count = reasons.most_common(1)[0]
    if count == len(members):
        return reason
    if count > 1:
        return f"In {count} of {len(members)} connections: {reason}"
    return f"For example {members[0].result.vantages[0].client}: {members[0].reason}"


def _exchanges(members: Sequence[Member]) -> int | None:
    """Questions with answers in the connections that one capture holds, where they were counted."""
    counted = [
        member.in_full(number).numbers["exchanges"]
        for member in members
        for number, item in enumerate(member.evidence)
        if "exchanges" in item.names
    ]
    known = [count for count in counted if isinstance(count, int)]
    return sum(known) if known and len(known) == len(members) else None
