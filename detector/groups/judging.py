"""The verdict on a group: one rule of the network governs its connections, so their evidence is weighed together.

Of each family of the detector's table only the strongest voice on each side counts, however many connections say it:
what misled a method once (a clock, a path) misleads it again. Packet identity alone adds up over connections, as far as
they are independent witnesses (`detector.groups.pooling`). The kind is read off the largest transfers, because what
fits into a relay's buffers looks stored. Connections whose pairing is doubtful are counted and not weighed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from detector.groups.disagreement import SPLIT, Stand, camps, disagreement
from detector.groups.membership import GroupKey, Member, grouped, least_s
from detector.groups.pooling import pooled_identity
from detector.verdict import DECISION_PROBABILITY, TELLING, Judgement, judge
from pepscope.results import Evidence, GroupResult, Kind, Outcome, PairResult, SplitPlace

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


def with_group_verdicts(results: Sequence[PairResult], groups: Sequence[GroupResult]) -> list[PairResult]:
    """The results, where the reason of an undecided one says what its group is. No verdict is changed."""
    told = list(results)
    for group in groups:
        if group.verdict is Kind.INCONCLUSIVE or len(group.pairs) < 2:
            continue
        what = f"Its group (port {group.port}, clients in {group.network}) is {group.verdict.value}."
        for place in group.pairs:
            if told[place].verdict is Kind.INCONCLUSIVE:
                told[place] = replace(told[place], reason=f"{told[place].reason} {what}")
    return told


def _judge_group(
    key: GroupKey, places: Sequence[int], members: Sequence[Member], two_captures: bool, least_probability: float
) -> GroupResult:
    judgement, evidence = _weigh(members, least_probability)
    is_split = judgement.verdict in SPLIT
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
    """Whether nothing lies between the captures of some connection, so that what splits may lie beyond them."""
    return any(stretch.one_place for member in members if (stretch := member.result.stretch) is not None)


def _weigh(members: Sequence[Member], least_probability: float) -> tuple[Judgement, tuple[Evidence, ...]]:
    """What the members say together, and what it rests on; one alone says what it says."""
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
    evidence = (*together, *_told(found, len(counting)))
    split, regular = ([_stand(member) for member in camp] for camp in camps(members, lambda member: member.result))
    if split and regular:
        judgement = Judgement(Kind.INCONCLUSIVE, _of_any(members), disagreement(split, regular))
    elif judgement.verdict is Kind.INCONCLUSIVE:
        judgement = replace(judgement, reason=_undecided_reason(judgement, members, counting))
    else:
        judgement = replace(judgement, reason=f"{_extent(judgement.verdict, members)} {judgement.reason}")
    return judgement, evidence


def _evidence(members: Sequence[Member]) -> list[Evidence]:
    return [item for member in members for item in member.result.evidence]


def _largest(members: Sequence[Member]) -> list[Member]:
    most = max((member.payload_bytes for member in members), default=0)
    return [member for member in members if member.payload_bytes >= LARGEST_SHARE * most]


def _stand(member: Member) -> Stand:
    result, shown = member.result, member.result.vantages[0]
    client = shown.client.rpartition(":")[0].strip("[]")
    return Stand(
        shown.client, result.reason, member.payload_bytes, member.started_ns,
        (f"to {member.host}", f"from {client}"),
    )  # fmt: skip


def _of_any(members: Sequence[Member]) -> dict[Kind, float]:
    """The probabilities of a connection of these drawn at random."""
    kinds = (Kind.REGULAR, Kind.SPLIT_TCP, Kind.TCP_PROXY)
    return {kind: sum(member.result.probability.get(kind, 0.0) for member in members) / len(members) for kind in kinds}


def _firmest(members: Sequence[Member]) -> list[tuple[Evidence, int]]:
    """Each finding of a method once, as the connection has it that shows it most firmly, and how many show it.

    Weighing these is weighing all: of a family the worst charge counts once.
    """
    firmest: dict[tuple[str, str], Evidence] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for item in _evidence(members):
        key = (item.method, item.finding)
        counts[key] += 1
        if key not in firmest or item.strength > firmest[key].strength:
            firmest[key] = item
    return [(item, counts[key]) for key, item in firmest.items()]


def _told(found: Sequence[tuple[Evidence, int]], total: int) -> list[Evidence]:
    """The findings that speak, or say what is missing, those of most connections first."""
    told = [(item, n) for item, n in found if item.outcome is not Outcome.INAPPLICABLE or item.finding in TELLING]
    ordered = sorted(told, key=lambda each: (each[0].outcome is Outcome.INAPPLICABLE, -each[1]))
    return [_counted(item, count, total) for item, count in ordered]


def _counted(item: Evidence, count: int, total: int) -> Evidence:
    where = "In all connections" if count == total else f"In {count} of {total} connections"
    which = "" if count == 1 else ", in the firmest form" if item.outcome is not Outcome.INAPPLICABLE else ", as in one"
    return replace(item, summary=f"{where}{which}: {item.summary}", numbers={"connections": count, **item.numbers})


def _extent(verdict: Kind, members: Sequence[Member]) -> str:
    """How many connections say the same by themselves."""
    kinds = SPLIT if verdict in SPLIT else (verdict,)
    agreeing, total = sum(member.result.verdict in kinds for member in members), len(members)
    word = "split" if verdict in SPLIT else "end to end"
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
        return members[0].result.reason
    if any(item.outcome is not Outcome.INAPPLICABLE for item in _evidence(counting)):
        return judgement.reason
    reasons = Counter(member.result.reason for member in members)
    reason, count = reasons.most_common(1)[0]
    if count == len(members):
        return reason
    if count > 1:
        return f"In {count} of {len(members)} connections: {reason}"
    return f"For example {members[0].result.vantages[0].client}: {members[0].result.reason}"


def _exchanges(members: Sequence[Member]) -> int | None:
    """Questions with answers in the connections that one capture holds, where they were counted."""
    counted = [item.numbers["exchanges"] for item in _evidence(members) if "exchanges" in item.numbers]
    known = [count for count in counted if isinstance(count, int)]
    return sum(known) if known and len(known) == len(members) else None
