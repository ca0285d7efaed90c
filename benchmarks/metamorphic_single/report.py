"""Results as Markdown: what was wrong, and how often each change leaves a verdict undecided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.metamorphic.report import share, table
from benchmarks.metamorphic_single.changes import CHANGES
from benchmarks.metamorphic_single.run import Scored
from benchmarks.metamorphic_single.score import Judgement

SECTION = "metamorphic-single"


@dataclass(frozen=True, slots=True)
class CaseJudgement:
    """A judgement with its case, and what was said of its connections in the capture as recorded.

    `was_right`: the same, all of it, was right. `was_wrong`: a group with one of its connections, or the connection
    itself, was falsely split, or (of a split) called regular, before anything was changed.
    """

    scored: Scored
    judgement: Judgement
    was_right: bool
    was_wrong: bool

    @property
    def new_false_alarm(self) -> bool:
        """A false alarm that the capture as recorded does not have."""
        return self.judgement.false_alarm and not self.was_wrong

    @property
    def newly_regular(self) -> bool:
        """A split called regular that the capture as recorded does not have so."""
        return self.judgement.called_regular and not self.was_wrong


def with_recorded(scored: Sequence[Scored]) -> list[CaseJudgement]:
    """Every judgement of a changed capture beside those of its capture as recorded."""
    before = {one.source: one.judgements for one in scored if one.number < 0}
    made = []
    for one in scored:
        if one.number >= 0:
            kin = before.get(one.source, ())
            made += [_beside(one, judgement, kin) for judgement in one.judgements]
    return made


def _beside(scored: Scored, judgement: Judgement, recorded: Iterable[Judgement]) -> CaseJudgement:
    members = set(judgement.members)
    kin = [
        one
        for one in recorded
        if (one.is_group, one.side) == (judgement.is_group, judgement.side) and members & set(one.members)
    ]
    was_right = bool(kin) and all(one.right for one in kin)
    return CaseJudgement(scored, judgement, was_right, any(one.false_alarm or one.called_regular for one in kin))


def section(scored: Sequence[Scored]) -> str:
    """Tables of what is wrong and of what each change leaves undecided."""
    judged = with_recorded(scored)
    cases = len({one.scored.number for one in judged})
    captures = len({one.source for one in scored})
    head = f"{len(judged)} judgements of {cases} changed captures made from {captures} recorded ones."
    return "\n\n".join([head, _goals(judged), _by_change(judged)])


def failures(scored: Sequence[Scored]) -> str:
    """Every judgement that no change allows, with its case."""
    lines = []
    for one in with_recorded(scored):
        judgement = one.judgement
        wrong = "false alarm" * judgement.false_alarm or "regular" * judgement.called_regular or judgement.verdict
        if judgement.false_alarm or judgement.called_regular or judgement.crashed:
            kind = "group" if judgement.is_group else "connection"
            before = " (as recorded, too)" if one.was_wrong else ""
            lines.append(
                f"- case {one.scored.number}, {one.scored.source}, {', '.join(one.scored.changes)}: {wrong}{before}: "
                f"{judgement.side} {kind} of {len(judgement.members)}, {judgement.exchanges} exchanges, "
                f"{judgement.split_probability:.3f} {judgement.where or ''}: {judgement.reason}"
            )
    return "\n".join(lines)


def _rows(judged: Sequence[CaseJudgement]) -> Iterator[tuple[str, list[CaseJudgement]]]:
    for side in ("server", "client"):
        yield f"groups, {side} side", [e for e in judged if e.judgement.is_group and e.judgement.side == side]
    yield "single connections", [each for each in judged if not each.judgement.is_group]


def _goals(judged: Sequence[CaseJudgement]) -> str:
    rows = []
    for name, inside in _rows(judged):
        blameless = [each for each in inside if each.judgement.truth == "regular" or not each.judgement.in_network]
        split = [each for each in inside if each.judgement.truth == "split"]
        rows += [
            (f"{name}: falsely split", _share(blameless, lambda each: each.judgement.false_alarm)),
            (f"{name}: ... and not as recorded", _share(blameless, lambda each: each.new_false_alarm)),
            (
                f"{name}: split (15 ms and more) called regular",
                _share(split, lambda each: each.judgement.called_regular),
            ),
            (f"{name}: ... and not as recorded", _share(split, lambda each: each.newly_regular)),
        ]
    rows.append(("crashes", _share(judged, lambda each: each.judgement.crashed)))
    return table(("what no change allows", "seen (95 % interval)"), rows)


def _by_change(judged: Sequence[CaseJudgement]) -> str:
    rows = []
    for change in CHANGES:
        anyhow = [each for each in judged if change.name in each.scored.changes]
        alone = [each for each in anyhow if len(each.scored.changes) == 1 and each.was_right]
        groups = [each for each in alone if each.judgement.is_group]
        single = [each for each in alone if not each.judgement.is_group]
        false_alarms = sum(each.new_false_alarm for each in anyhow)
        regular = sum(each.newly_regular for each in anyhow)
        undecided = [_share(some, lambda each: each.judgement.verdict == "inconclusive") for some in (groups, single)]
        rows.append((change.name, *undecided, f"{false_alarms} / {len(anyhow)}", f"{regular} / {len(anyhow)}"))
    head = (
        "change", "alone: groups undecided", "alone: connections undecided", "with any others: newly split",
        "with any others: newly regular",
    )  # fmt: skip
    return table(head, rows)


def _share(inside: Sequence[CaseJudgement], test: Callable[[CaseJudgement], bool]) -> str:
    return share(sum(map(test, inside)), len(inside)) if inside else "-"
