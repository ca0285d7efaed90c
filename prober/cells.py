"""A cell of the matrix: what all connections and all active findings of one application and direction say together.

**Split or not.** One rule of the network governs all connections of a cell, so their evidence is weighed together with
the active findings by the detector's table (`detector.verdict`): of each family only the strongest voice on each side
counts, however many connections say it. Nothing is multiplied by the number of repeats, because what misled a method
once (a clock, a path) misleads it again.

**The kind.** A split point has buffers, and an object that fits into them is taken whole before the mobile has its
first byte: it looks stored although it was relayed. Only what does not fit tells, so the kind is read off the largest
transfers and off the active findings. A proxy that stores does so with objects of every size. Where even the largest
transfer may have fitted into a relay's buffers, the reason says so.

**Contradictions.** Connections that are end to end and connections that are split, each beyond doubt, cannot be
governed by one rule. Then the cell is inconclusive, whatever the sum says, and the reason says which ones disagree and
whether an experiment, a size or the time sets them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detector.methods.progress import RELAY_BUFFER_BYTES
from detector.verdict import Judgement, judge, weight_of
from pepscope.audit_results import AuditCell, AuditConnection
from pepscope.packets import Direction
from pepscope.results import Evidence, Kind, Outcome, PairResult

#: The largest transfers are those of at least this share of the largest one's payload: the sizes of a plan are steps of
#: more than two, while headers, compression and lost captures change a size by less.
LARGEST_SHARE = 0.5

#: Share of the split's probability from which a kind is sure: beyond what the prior of the detector's table gives.
SURE_SHARE = 0.8

#: What shows where the sender gets rid of its data long before the receiver has them: behind a proxy that stores, and
#: behind a relay whose buffers were set to hold as much.
_OF_LARGE_BUFFERS = frozenset({"sender-far-ahead", "sender-beyond-buffers", "window-open-receiver-behind"})

_SPLIT = (Kind.SPLIT_TCP, Kind.TCP_PROXY)


@dataclass(frozen=True, slots=True)
class CellMaterial:
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


def judge_cell(material: CellMaterial) -> AuditCell:
    """The verdict on one cell."""
    counting = [item for item in material.connections if not item.set_aside]
    largest = largest_transfers(counting, material.direction)
    evidence = [item for connection in counting for item in connection.pair.evidence]
    of_kind = [item for connection in largest for item in connection.pair.evidence]
    judgement = judge([*evidence, *material.active], of_kind=[*of_kind, *material.active])
    if not evidence and not material.active:
        judgement = Judgement(Kind.INCONCLUSIVE, judgement.probability, _nothing_known(material))
    elif _contradict(counting):
        judgement = Judgement(Kind.INCONCLUSIVE, judgement.probability, _contradiction(counting))
    else:
        judgement = _told(judgement, material, counting, largest)
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
    )


def largest_transfers(connections: Sequence[AuditConnection], direction: Direction) -> list[AuditConnection]:
    """The connections that carried most in `direction`, within `LARGEST_SHARE` of the largest."""
    most = max((payload_bytes(item.pair, direction) for item in connections), default=0)
    return [item for item in connections if payload_bytes(item.pair, direction) >= LARGEST_SHARE * most]


def payload_bytes(pair: PairResult, direction: Direction) -> int:
    """What a connection carried in one direction."""
    return pair.payload_bytes_up if direction is Direction.UP else pair.payload_bytes_down


def _contradict(counting: Sequence[AuditConnection]) -> bool:
    verdicts = {item.pair.verdict for item in counting}
    return Kind.REGULAR in verdicts and not verdicts.isdisjoint(_SPLIT)


def _contradiction(counting: Sequence[AuditConnection]) -> str:
    """Which connections disagree, and what the two camps say for themselves."""
    split = [item for item in counting if item.pair.verdict in _SPLIT]
    regular = [item for item in counting if item.pair.verdict is Kind.REGULAR]
    apart = _apart(split, regular)
    return (
        f"The connections disagree: {_counted(len(regular))} end to end and {_counted(len(split))} split{apart}. "
        f"Split, in {split[0].task}: {split[0].pair.reason} End to end, in {regular[0].task}: {regular[0].pair.reason}"
    )


def _apart(split: Sequence[AuditConnection], regular: Sequence[AuditConnection]) -> str:
    """Whether an experiment, a size or the time sets the two camps apart."""
    if {item.experiment for item in split}.isdisjoint(item.experiment for item in regular):
        names = ", ".join(sorted({item.experiment for item in split}))
        return f", the split ones all in {names}"
    totals = [
        sorted(item.pair.payload_bytes_up + item.pair.payload_bytes_down for item in camp) for camp in (split, regular)
    ]
    if totals[0][0] > totals[1][-1]:
        return ", all split ones larger than the others"
    if totals[0][-1] < totals[1][0]:
        return ", all split ones smaller than the others"
    times = [sorted(item.started_unix_ns for item in camp) for camp in (split, regular)]
    if times[0][0] > times[1][-1]:
        return ", all split ones later than the others"
    if times[0][-1] < times[1][0]:
        return ", all split ones earlier than the others"
    return ""


def _told(
    judgement: Judgement,
    material: CellMaterial,
    counting: Sequence[AuditConnection],
    largest: Sequence[AuditConnection],
) -> Judgement:
    """The judgement with a reason that says how many connections it is about, and what else must be known."""
    verdict = judgement.verdict
    parts = [_extent(verdict, counting), judgement.reason]
    seen_at_both_ends = any(len(item.pair.vantages) > 1 for item in counting)
    if verdict is Kind.INCONCLUSIVE and material.lacking and not seen_at_both_ends:
        # What the methods say of it, connection by connection, is that the other capture is missing.
        parts = [_sentence(material.lacking[0]), *_hint(material.active)]
    if verdict in _SPLIT:
        parts.append(_kinds(verdict, material.active, counting, largest))
    parts.append(_control(verdict, material.connections))
    return Judgement(judgement.verdict, judgement.probability, " ".join(part for part in parts if part))


def _hint(active: Sequence[Evidence]) -> list[str]:
    """What the experiments say that could run."""
    if any(item.outcome is not Outcome.INAPPLICABLE for item in active):
        return [judge(active).reason]
    return ["What could be measured without that does not tell."]


def _extent(verdict: Kind, counting: Sequence[AuditConnection]) -> str:
    agreeing = sum(
        item.pair.verdict is verdict or (verdict in _SPLIT and item.pair.verdict in _SPLIT) for item in counting
    )
    if verdict is Kind.INCONCLUSIVE or len(counting) < 2 or agreeing == 0:
        return ""
    word = "end to end" if verdict is Kind.REGULAR else "split"
    if agreeing == len(counting):
        return f"{'Both' if agreeing == 2 else f'All {agreeing}'} connections are {word}."
    rest = len(counting) - agreeing
    return f"Of {len(counting)} connections {agreeing} {_is(agreeing)} {word}, and {rest} cannot be judged alone."


def _kinds(
    verdict: Kind,
    active: Sequence[Evidence],
    counting: Sequence[AuditConnection],
    largest: Sequence[AuditConnection],
) -> str:
    """Says so where the connections are not all of one kind, and what could have made a relay look like a proxy."""
    chosen = {id(item) for item in largest}
    relayed, kept = (sum(_is_surely(item.pair, kind) for item in largest) for kind in _SPLIT)
    if relayed and kept:
        return f"Of the largest transfers {relayed} look relayed and {kept} stored, so the kind is uncertain."
    if verdict is Kind.TCP_PROXY:
        return _of_large_buffers(active, largest)
    stored = sum(id(item) not in chosen and item.pair.verdict is Kind.TCP_PROXY for item in counting)
    if stored == 1:
        return "A smaller one looks stored: the split's buffers swallowed it whole."
    return f"{stored} smaller ones look stored: the split's buffers swallowed them whole." if stored else ""


def _of_large_buffers(active: Sequence[Evidence], largest: Sequence[AuditConnection]) -> str:
    """Says so where nothing but a large buffer is needed to explain why transfers look stored."""
    known = [*active, *(item for connection in largest for item in connection.pair.evidence)]
    telling = [item for item in known if item.outcome is Outcome.SPLIT and weight_of(item).proxy > 0]
    most = max((max(item.pair.payload_bytes_up, item.pair.payload_bytes_down) for item in largest), default=0)
    if not telling or most >= RELAY_BUFFER_BYTES or {item.finding for item in telling} - _OF_LARGE_BUFFERS:
        return ""
    return "A relay whose buffers hold as much looks the same; only larger objects tell them apart."


def _is_surely(pair: PairResult, kind: Kind) -> bool:
    """Whether a split connection is of this kind by evidence, not because one kind is the more frequent one."""
    split = sum(pair.probability.get(either, 0.0) for either in _SPLIT)
    return pair.verdict in _SPLIT and pair.probability.get(kind, 0.0) >= SURE_SHARE * split


def _control(verdict: Kind, connections: Sequence[AuditConnection]) -> str:
    """Says so where control connections fare otherwise than the data."""
    control = [item.pair.verdict for item in connections if item.role == "control"]
    if verdict is Kind.REGULAR and any(kind in _SPLIT for kind in control):
        return "The control connection is split, though."
    if verdict in _SPLIT and Kind.REGULAR in control:
        return "The control connection is end to end."
    return ""


def _nothing_known(material: CellMaterial) -> str:
    if material.lacking:
        return _sentence(material.lacking[0])
    if material.tasks == 0:
        return "The plan measures nothing here."
    return "Nothing that was measured here tells a split from an end-to-end connection."


def _sentence(text: str) -> str:
    text = text.strip().removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}."


def _counted(count: int) -> str:
    return "one" if count == 1 else str(count)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
