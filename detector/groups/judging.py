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

import numpy as np
from msgspec import Struct, structs

from detector.groups.disagreement import JudgedConnection, disagreement, split_and_regular
from detector.groups.membership import Group, GroupKey, Members, grouped
from detector.groups.pooling import pooled_identity
from detector.options import DECISION_PROBABILITY
from detector.verdict.weighing import Judgement, judge
from pepscope.captures.connections import address_of
from pepscope.results.evidence.columns import Form
from pepscope.results.finding import is_missing
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import (
    SPLIT_VERDICTS,
    Evidence,
    GroupResult,
    Mechanism,
    Outcome,
    PairResult,
    SplitPlace,
    Verdict,
)

#: The largest transfers are those of at least this share of the largest one's payload: sizes that differ in kind do so
#: by more, while headers, compression and lost captures change a size by less.
LARGEST_SHARE = 0.5


def judge_groups(
    results: PairTable,
    members: Members,
    *,
    two_captures: bool,
    least_probability: float = DECISION_PROBABILITY,
) -> tuple[GroupResult, ...]:
    """One result a group, in the order of their first connections; `pairs` are places in `results` and `members`.

    Below `least_probability` of its class a group is inconclusive.
    """
    return tuple(
        _judge_group(key, Group(results, members, places), two_captures, least_probability)
        for key, places in grouped(members).items()
    )


def with_group_verdicts(results: Sequence[PairResult], groups: Sequence[GroupResult]) -> PairTable:
    """The results, with the group's verdict added to the reason of undecided connections. No verdict is changed."""
    completed = PairTable.of(results)
    for group in groups:
        if group.verdict is Verdict.INCONCLUSIVE or len(group.pairs) < 2:
            continue
        what = f"Its group (port {group.port}, clients in {group.network}) is {group.verdict.value}."
        places = np.array(group.pairs, np.int64)
        completed.add_remarks(places[completed.are(Verdict.INCONCLUSIVE, places)], what)
    return completed


def _judge_group(key: GroupKey, group: Group, two_captures: bool, least_probability: float) -> GroupResult:
    judgement, evidence = _weigh(group, least_probability)
    is_split, members = judgement.verdict.is_split, group.members
    return GroupResult(
        side=key.side,
        network=key.network,
        port=key.port,
        hosts=group.hosts,
        pairs=tuple(group.places.tolist()),
        exchanges=_exchanges(group),
        verdict=judgement.verdict,
        probability=judgement.probability,
        mechanism=judgement.mechanism,
        where=SplitPlace.NETWORK if is_split and two_captures and not _at_one_place(group) else None,
        near_round_trip_s=group.least_s(members.near_round_trip_ns),
        hidden_round_trip_s=group.least_s(members.hidden_round_trip_ns) if is_split else None,
        hidden_round_trip_interval_s=None,
        reason=judgement.reason,
        evidence=evidence,
    )


def _at_one_place(group: Group) -> bool:
    """Whether some connection has no path between its captures, so that the split point may be beyond them."""
    return any(map(group.results.at_one_place, group.places.tolist()))


def _weigh(group: Group, least_probability: float) -> tuple[Judgement, tuple[Evidence, ...]]:
    """The judgement on all connections together and its evidence; a connection's own if there is only one."""
    if len(group) == 1:
        alone = group.results[int(group.places[0])]
        return Judgement(alone.verdict, alone.probability, alone.reason, alone.mechanism), alone.evidence
    counting = group.of(~group.members.are_doubtful[group.places])
    pooled = pooled_identity(counting)
    together = [] if pooled is None else [pooled]
    found = _firmest(counting)
    judgement = judge(
        [*together, *(item for item, _ in found)],
        of_kind=[*together, *(item for item, _ in _firmest(_largest(counting)))],
        least_probability=least_probability,
    )
    evidence = (*together, *_reported(found, len(counting)))
    both = _split_and_regular(group)
    if all(both):
        split, regular = (_judged_connections(group, side) for side in both)
        judgement = Judgement(Verdict.INCONCLUSIVE, _of_any(group), disagreement(split, regular))
    elif judgement.verdict is Verdict.INCONCLUSIVE:
        judgement = structs.replace(judgement, reason=_undecided_reason(judgement, group, counting))
    else:
        extent = _extent(judgement.verdict, group.verdicts)
        judgement = structs.replace(judgement, reason=f"{extent} {judgement.reason}")
    return judgement, evidence


def _largest(group: Group) -> Group:
    sizes = group.sizes_bytes
    return group.of(sizes >= LARGEST_SHARE * sizes.max(initial=0))


class _Seen(Struct, frozen=True):
    """A connection as `split_and_regular` looks at it."""

    group: Group
    place: int

    @property
    def verdict(self) -> Verdict:
        return self.group.results.verdict(self.place)

    @property
    def mechanism(self) -> Mechanism | None:
        return self.group.results.mechanism(self.place)

    @property
    def evidence(self) -> Sequence[Form]:
        return self.group.results.forms(self.place)


def _split_and_regular(group: Group) -> tuple[list[int], list[int]]:
    """Places of the split connections, and of the end-to-end connections that contradict them; none of one kind."""
    verdicts = set(group.verdicts)
    if Verdict.REGULAR not in verdicts or verdicts.isdisjoint(SPLIT_VERDICTS):
        return [], []
    return split_and_regular(group.places.tolist(), lambda place: _Seen(group, place))


def _judged_connections(group: Group, places: Sequence[int]) -> list[JudgedConnection]:
    """Connections of one side of a disagreement, which states the reason of the first one only."""
    results, members = group.results, group.members
    clients = [results.vantages(place)[0].client for place in places]
    reasons = [results.reason(places[0]), *[""] * (len(places) - 1)]
    return [
        JudgedConnection(
            client, reason, results.payload_bytes(place), int(members.started_ns[place]),
            (f"to {members.hosts[place]}", f"from {address_of(client)}"),
        )
        for place, client, reason in zip(places, clients, reasons, strict=True)
    ]  # fmt: skip


def _of_any(group: Group) -> dict[Verdict, float]:
    """The probabilities of a connection of these drawn at random."""
    kinds = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    shares = [group.results.probability(place) for place in group.places.tolist()]
    return {kind: sum(each.get(kind, 0.0) for each in shares) / len(group) for kind in kinds}


def _firmest(group: Group) -> list[tuple[Evidence, int]]:
    """Each finding of a method once, as the connection has it that shows it most firmly, and how many show it.

    Weighing these is weighing all: of a family the worst charge counts once.
    """
    pieces = group.pieces
    numbers: dict[tuple[str, str], int] = {}
    finding_of = [numbers.setdefault((form.method, form.finding), len(numbers)) for form in pieces.forms]
    finding = np.array(finding_of, np.int64)[pieces.form]
    found = [np.flatnonzero(finding == number) for number in range(len(numbers))]
    found.sort(key=lambda at: int(at[0]))
    return [(group.piece(int(at[np.argmax(pieces.strength[at])])), len(at)) for at in found]


def _reported(found: Sequence[tuple[Evidence, int]], total: int) -> list[Evidence]:
    """The decided findings and those that name what is missing, the findings of most connections first."""
    reported = [(item, n) for item, n in found if item.outcome is not Outcome.INAPPLICABLE or is_missing(item)]
    ordered = sorted(reported, key=lambda each: (each[0].outcome is Outcome.INAPPLICABLE, -each[1]))
    return [_counted(item, count, total) for item, count in ordered]


def _counted(item: Evidence, count: int, total: int) -> Evidence:
    where = "In all connections" if count == total else f"In {count:,} of {total:,} connections"
    which = "" if count == 1 else ", in the firmest form" if item.outcome is not Outcome.INAPPLICABLE else ", as in one"
    return replace(item, summary=f"{where}{which}: {item.summary}", numbers={"connections": count, **item.numbers})


def _extent(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """How many connections have the same verdict by themselves."""
    kinds = SPLIT_VERDICTS if verdict.is_split else (verdict,)
    agreeing, total = sum(each in kinds for each in verdicts), len(verdicts)
    word = "split" if verdict.is_split else "end to end"
    if agreeing == total:
        return f"{'Both' if total == 2 else f'All {total:,}'} connections are {word}."
    if agreeing == 0:
        return f"None of the {total:,} connections can be judged alone; together they are {word}."
    rest = total - agreeing
    verb = "is" if agreeing == 1 else "are"
    return f"Of {total:,} connections {agreeing:,} {verb} {word}, and {rest:,} cannot be judged alone."


def _undecided_reason(judgement: Judgement, group: Group, counting: Group) -> str:
    """Why nothing is decided: what most connections lack, where the evidence as a whole does not disagree."""
    every = group.reasons()
    if not len(counting):
        return every[0]
    if any(form.outcome is not Outcome.INAPPLICABLE for form in counting.pieces.forms):
        return judgement.reason
    reason, count = Counter(every).most_common(1)[0]
    if count == len(group):
        return reason
    if count > 1:
        return f"In {count:,} of {len(group):,} connections: {reason}"
    return f"For example {group.results[int(group.places[0])].vantages[0].client}: {every[0]}"


def _exchanges(group: Group) -> int | None:
    """Questions with answers in the connections that one capture holds, where they were counted."""
    are_counted = group.pieces.are(lambda form: "exchanges" in form.names)
    counted = [group.piece(at).numbers["exchanges"] for at in np.flatnonzero(are_counted).tolist()]
    known = [count for count in counted if isinstance(count, int)]
    return sum(known) if known and len(known) == len(group) else None
