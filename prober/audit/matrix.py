"""A cell of the matrix: the verdict from all connections and all active findings of one application and direction.

**Split or not.** One rule of the network governs all connections of a cell, so their evidence is weighed together with
the active findings by the detector's table (`detector.verdict.weighing`): of each family only the strongest finding on
each side counts, however many connections have it. Nothing is multiplied by the number of repeats, because what misled
a method once (a clock, a path) misleads it again.

**The kind.** A split point has buffers, and an object that fits into them is taken whole before the mobile has its
first byte: it looks stored although it was relayed. Only transfers that exceed the buffers decide, so the kind is
derived from the largest transfers and off the active findings. A proxy that stores does so with objects of every size.
Where even the largest transfer may have fitted into a relay's buffers, the reason states it.

**Contradictions.** Connections that are end to end and connections that are split, each beyond doubt, cannot be
governed by one rule. Then the cell is inconclusive, whatever the sum says, and the reason says which ones disagree and
whether an experiment, a size or the time sets them apart. One rule can be behind it: a middlebox that begins only after
so many bytes. Where at least two short transfers are end to end and at least two long ones are split, the cell is split
from that size on. Another is a middlebox that takes some connections: where at least two that are split and two that
are end to end are alike in size and take turns, the cell is split, and the reason gives the share
(`prober.audit.disagreement`).

**Only as far as judged.** Short transfers that are end to end say nothing of longer ones, since a middlebox may begin
late. So a cell is regular only if one of its largest transfers is, or if the receiver's held acknowledgements were the
only ones of a large one; else it is inconclusive beyond the largest size that is end to end.

**Inconclusive** cells give the strongest evidence for either side, and where it was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from detector.methods.progress.leads import RELAY_BUFFER_BYTES
from detector.verdict.weighing import Judgement, judge, weight_of
from pepscope.captures.direction import Direction
from pepscope.results.audits import AuditCell, AuditConnection
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import SPLIT_VERDICTS, Evidence, Outcome, PairResult, Verdict
from prober.audit.disagreement import (
    LateStart,
    TakenShare,
    begins_within,
    both_sides,
    contradiction,
    late_start,
    payload_bytes,
    regular_reach,
    size_text,
    split_and_regular,
    taken_share,
)

#: The largest transfers are those of at least this share of the largest one's payload: the sizes of a plan are steps of
#: more than two, while headers, compression and lost captures change a size by less.
LARGEST_SHARE = 0.5

#: Share of the split's probability from which a kind is sure: beyond what the prior of the detector's table gives.
SURE_SHARE = 0.8

#: What shows where the sender gets rid of its data long before the receiver has them: behind a proxy that stores, and
#: behind a relay whose buffers were set to hold as much.
_OF_LARGE_BUFFERS = frozenset({"sender-far-ahead", "sender-beyond-buffers", "window-open-receiver-behind"})


@dataclass(frozen=True, slots=True)
class CellInput:
    """All that is known of one application and direction."""

    application: str
    direction: Direction
    connections: tuple[AuditConnection, ...] = ()
    #: What active experiments found.
    active: tuple[Evidence, ...] = ()
    tasks_done: int = 0
    tasks: int = 0
    #: Why tasks were not measured, or not captured: sentences, most frequent first.
    lacking: tuple[str, ...] = ()


def judge_cell(material: CellInput) -> AuditCell:
    """The verdict on one cell."""
    counting = [item for item in material.connections if not item.set_aside]
    late = late_start(counting, material.direction)
    share = taken_share(counting, material.direction) if late is None else None
    # Of a middlebox that takes some connections only, the others say nothing.
    taken = [item for item in counting if item.pair.verdict.is_split] if share else counting
    largest = largest_transfers(taken, material.direction)
    evidence = _weighed(material, taken, late, share)
    of_kind = [*(item for connection in largest for item in connection.pair.evidence), *material.active]
    judgement = judge(evidence, of_kind=of_kind)
    if not evidence:
        judgement = replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=_nothing_known(material))
    elif late is None and share is None and all(split_and_regular(counting)):
        judgement = _inconclusive(judgement, contradiction(counting))
    elif (reach := regular_reach(counting, material.direction)) and _is_open_beyond(judgement, material, largest):
        undecided = f"{reach.sentence()} In {largest[0].task}: {largest[0].pair.reason}"
        judgement = _inconclusive(judgement, f"{undecided} {both_sides(counting, material.active, '')}".strip())
    else:
        judgement = _with_reason(judgement, material, taken, largest, late)
        if share is not None and judgement.verdict.is_split:
            judgement = replace(judgement, reason=f"{share.sentence()} {judgement.reason}")
    return AuditCell(
        application=material.application,
        direction=material.direction,
        verdict=judgement.verdict,
        probability=judgement.probability,
        reason=judgement.reason,
        evidence=material.active,
        connections=material.connections,
        tasks_done=material.tasks_done,
        tasks=material.tasks,
        mechanism=judgement.mechanism if judgement.verdict.is_split else None,
        from_bytes=_from_bytes(late, evidence) if judgement.verdict.is_split else None,
    )


def _is_open_beyond(judgement: Judgement, material: CellInput, largest: Sequence[AuditConnection]) -> bool:
    """Whether a cell would be called regular although no large transfer is."""
    held = any(item.finding == TransferFinding.ACKS_ONLY_FROM_RECEIVER for item in material.active)
    are_judged = any(item.pair.verdict is Verdict.REGULAR for item in largest)
    return judgement.verdict is Verdict.REGULAR and not held and not are_judged


def largest_transfers(connections: Sequence[AuditConnection], direction: Direction) -> list[AuditConnection]:
    """The connections that carried most in `direction`, within `LARGEST_SHARE` of the largest."""
    most = max((payload_bytes(item.pair, direction) for item in connections), default=0)
    return [item for item in connections if payload_bytes(item.pair, direction) >= LARGEST_SHARE * most]


def _weighed(
    material: CellInput, counting: Sequence[AuditConnection], late: LateStart | None, share: TakenShare | None
) -> list[Evidence]:
    """The evidence to weigh: all; if a middlebox begins late, not that of short transfers and probes for end to end.

    Nor do probes that passed by a middlebox that takes some connections only say anything of those that it takes.
    """
    if share is not None:
        own = [item for connection in counting for item in connection.pair.evidence]
        return [*own, *(item for item in material.active if item.outcome is not Outcome.INTACT)]
    if late is None:
        return [*(item for connection in counting for item in connection.pair.evidence), *material.active]
    long_ones = [
        item
        for connection in counting
        for item in connection.pair.evidence
        if payload_bytes(connection.pair, material.direction) >= late.split_bytes or item.outcome is Outcome.SPLIT
    ]
    return [*long_ones, *(item for item in material.active if item.outcome is not Outcome.INTACT)]


def _from_bytes(late: LateStart | None, evidence: Sequence[Evidence]) -> int | None:
    """How much of a connection is end to end before it is split, as far as known."""
    return begins_within(evidence) if late is None else late.regular_bytes


def _inconclusive(judgement: Judgement, reason: str) -> Judgement:
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=reason)


def _with_reason(
    judgement: Judgement,
    material: CellInput,
    counting: Sequence[AuditConnection],
    largest: Sequence[AuditConnection],
    late: LateStart | None,
) -> Judgement:
    """The judgement with a reason that counts the connections and adds what else a reader must know."""
    verdict = judgement.verdict
    parts = [_extent(verdict, counting), judgement.reason]
    if verdict is Verdict.INCONCLUSIVE:
        parts = [both_sides(counting, material.active, judgement.reason)]
    seen_at_both_ends = any(len(item.pair.vantages) > 1 for item in counting)
    if verdict is Verdict.INCONCLUSIVE and material.lacking and not seen_at_both_ends:
        # What the methods say of it, connection by connection, is that the other capture is missing.
        nothing = "The other measurements do not decide."
        parts = [_sentence(material.lacking[0]), both_sides((), material.active, nothing)]
    if verdict.is_split:
        parts.insert(0, _beginning(late, [*material.active, *(e for item in counting for e in item.pair.evidence)]))
        parts.append(_kinds(verdict, material.active, counting, largest))
    parts.append(_control(verdict, material.connections))
    return replace(judgement, reason=" ".join(part for part in parts if part))


def _beginning(late: LateStart | None, evidence: Sequence[Evidence]) -> str:
    """A sentence where connections begin end to end."""
    if late is not None:
        return late.sentence()
    begins = begins_within(evidence)
    return "" if begins is None else f"Connections are split from {size_text(begins)} on."


def _extent(verdict: Verdict, counting: Sequence[AuditConnection]) -> str:
    agreeing = sum(
        item.pair.verdict is verdict or (verdict.is_split and item.pair.verdict.is_split) for item in counting
    )
    if verdict is Verdict.INCONCLUSIVE or len(counting) < 2 or agreeing == 0:
        return ""
    word = "end to end" if verdict is Verdict.REGULAR else "split"
    if agreeing == len(counting):
        return f"{'Both' if agreeing == 2 else f'All {agreeing}'} connections are {word}."
    rest = len(counting) - agreeing
    return f"Of {len(counting)} connections {agreeing} {_is(agreeing)} {word}, and {rest} cannot be judged alone."


def _kinds(
    verdict: Verdict,
    active: Sequence[Evidence],
    counting: Sequence[AuditConnection],
    largest: Sequence[AuditConnection],
) -> str:
    """A sentence where the connections are of different kinds, and where a relay may look like a proxy."""
    chosen = {id(item) for item in largest}
    relayed, kept = (sum(_is_surely(item.pair, kind) for item in largest) for kind in SPLIT_VERDICTS)
    if relayed and kept:
        return f"Of the largest transfers {relayed} look relayed and {kept} stored, so the kind is uncertain."
    if verdict is Verdict.TCP_PROXY:
        return _of_large_buffers(active, largest)
    stored = sum(id(item) not in chosen and item.pair.verdict is Verdict.TCP_PROXY for item in counting)
    if stored == 1:
        return "A smaller one looks stored: the split's buffers swallowed it whole."
    return f"{stored} smaller ones look stored: the split's buffers swallowed them whole." if stored else ""


def _of_large_buffers(active: Sequence[Evidence], largest: Sequence[AuditConnection]) -> str:
    """A sentence for transfers that look stored if a large buffer alone explains it; else empty."""
    known = [*active, *(item for connection in largest for item in connection.pair.evidence)]
    telling = [item for item in known if item.outcome is Outcome.SPLIT and weight_of(item).proxy > 0]
    most = max((max(item.pair.payload_bytes_up, item.pair.payload_bytes_down) for item in largest), default=0)
    if not telling or most >= RELAY_BUFFER_BYTES or {item.finding for item in telling} - _OF_LARGE_BUFFERS:
        return ""
    return "A relay whose buffers hold as much looks the same; only larger objects distinguish them."


def _is_surely(pair: PairResult, kind: Verdict) -> bool:
    """Whether a split connection is of this kind by evidence, not because one kind is the more frequent one."""
    split = sum(pair.probability.get(either, 0.0) for either in SPLIT_VERDICTS)
    return pair.verdict.is_split and pair.probability.get(kind, 0.0) >= SURE_SHARE * split


def _control(verdict: Verdict, connections: Sequence[AuditConnection]) -> str:
    """A sentence where control connections are treated differently from the data."""
    control = [item.pair.verdict for item in connections if item.role == "control"]
    if verdict is Verdict.REGULAR and any(kind.is_split for kind in control):
        return "The control connection is split, though."
    if verdict.is_split and Verdict.REGULAR in control:
        return "The control connection is end to end."
    return ""


def _nothing_known(material: CellInput) -> str:
    if material.lacking:
        return _sentence(material.lacking[0])
    if material.tasks == 0:
        return "The plan measures nothing here."
    return "No measurement here distinguishes a split from an end-to-end connection."


def _sentence(text: str) -> str:
    text = text.strip().removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}."


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
