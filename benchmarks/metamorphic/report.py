"""Metamorphic results as Markdown: what was wrong, and how often each change leaves a verdict undecided."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.metamorphic.changes import CHANGES
from benchmarks.metamorphic.run import Scored
from benchmarks.metamorphic.score import KIND_OF_TRUTH, Judgement
from detector.corpora.validation.intervals import wilson

SECTION = "metamorphic"


@dataclass(frozen=True, slots=True)
class _CaseJudgement:
    """A judgement with its case, and whether the pair as recorded was judged right."""

    scored: Scored
    judgement: Judgement
    was_right: bool


def section(scored: Sequence[Scored]) -> str:
    """The section of docs/validation/changes.md."""
    judged = _case_judgements(scored)
    parts = [_goals(judged), _by_change(judged), _worst(judged)]
    return "\n\n".join(parts)


def failures(scored: Sequence[Scored]) -> str:
    """Every judgement that a change does not allow, by kind of failure and class of change, with case numbers."""
    judged = _case_judgements(scored)
    parts = []
    for title, is_wrong in _WRONG.items():
        wrong = [one for one in judged if is_wrong(one.judgement)]
        parts.append(f"### {title}: {len(wrong)}\n")
        groups: dict[tuple[tuple[str, str], ...], list[_CaseJudgement]] = defaultdict(list)
        for one in wrong:
            groups[one.scored.changes].append(one)
        for changes, ones in sorted(groups.items(), key=lambda item: (len(item[0]), -len(item[1]))):
            named = ", ".join(f"{name} ({place})" for name, place in changes) or "as recorded"
            parts.append(f"- **{named}**: {len(ones)}")
            parts += [f"  - {_line(one)}" for one in ones[:4]]
    return "\n".join(parts)


def _other_kind(one: Judgement) -> bool:
    return one.verdict != KIND_OF_TRUTH[one.truth]


_WRONG: dict[str, Callable[[Judgement], bool]] = {
    "regular called split": lambda j: j.false_alarm,
    "split called regular": lambda j: j.called_regular,
    "crashes": lambda j: j.crashed,
    "undecidable kind claimed above 90 %": lambda j: j.undecidable_kind_claimed,
    "... for a relay, rightly": lambda j: j.undecidable_kind_claimed and j.truth == "split" and not _other_kind(j),
    "... for a store, rightly": lambda j: j.undecidable_kind_claimed and j.truth == "proxy" and not _other_kind(j),
    "... and it was the other kind": lambda j: j.undecidable_kind_claimed and _other_kind(j),
    "excluded kind claimed above 90 %": lambda j: j.wrong_kind and j.sure_of_kind,
    "excluded kind, claimed with less": lambda j: j.wrong_kind and not j.sure_of_kind,
}


def _line(one: _CaseJudgement) -> str:
    j = one.judgement
    chance = "" if j.probability is None else f" ({', '.join(f'{p:.2f}' for p in j.probability)})"
    return f"case {one.scored.number}, {one.scored.source}, {j.flow} {j.truth}: {j.verdict}{chance}: {j.reason}"


def _case_judgements(scored: Sequence[Scored]) -> list[_CaseJudgement]:
    recorded = {(one.source, j.flow): j.right for one in scored if one.number < 0 for j in one.judgements}
    return [_CaseJudgement(one, j, recorded.get((one.source, j.flow), False)) for one in scored for j in one.judgements]


def share(count: int, of: int) -> str:
    """A count among others, with its interval of 95 % (Wilson)."""
    low, high = wilson(count, of)
    return f"{count} / {of} ({round(100 * low, 4):.3g} to {100 * high:.3g} %)"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, of numbers but for its first column."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def _goals(judged: Sequence[_CaseJudgement]) -> str:
    changed = [one.judgement for one in judged if one.scored.number >= 0]
    regular = [j for j in changed if j.truth == "regular"]
    split = [j for j in changed if j.truth != "regular"]
    undecidable = [j for j in split if {"split", "proxy"} <= j.acceptable]
    of = dict.fromkeys(_WRONG, split) | {
        "regular called split": regular, "crashes": changed,
        "undecidable kind claimed above 90 %": undecidable, "... and it was the other kind": undecidable,
        "... for a relay, rightly": [j for j in undecidable if j.truth == "split"],
        "... for a store, rightly": [j for j in undecidable if j.truth == "proxy"],
    }  # fmt: skip
    rows = [(title, share(sum(map(is_wrong, of[title])), len(of[title]))) for title, is_wrong in _WRONG.items()]
    cases = len({one.scored.number for one in judged if one.scored.number >= 0})
    sources = len({one.scored.source for one in judged})
    head = f"{len(changed)} judgements of {cases} changed pairs made from {sources} recorded ones."
    kinds = (
        "A kind is called undecidable where the set-up does not make sure that captures show it, though some do: "
        "a buffer that fills and empties in turn, a CONNECT head, much of a transfer taken in before any is forwarded."
    )
    return f"{head}\n\n{table(('what no change allows', 'seen (95 % interval)'), rows)}\n\n{kinds}"


def _places(judged: Sequence[_CaseJudgement]) -> dict[tuple[str, str], list[_CaseJudgement]]:
    """By change and place, what that change alone was done to."""
    found: dict[tuple[str, str], list[_CaseJudgement]] = defaultdict(list)
    for one in judged:
        if len(one.scored.changes) == 1 and one.was_right:
            found[one.scored.changes[0]].append(one)
    return found


def _undecided(ones: Sequence[_CaseJudgement]) -> int:
    judgements = [one.judgement for one in ones]
    return sum(not (j.right or j.false_alarm or j.called_regular) for j in judgements)


def _by_change(judged: Sequence[_CaseJudgement]) -> str:
    alone = _places(judged)
    anyhow: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for one in judged:
        for name, _ in one.scored.changes:
            anyhow[name] += 1
            wrong[name] += one.judgement.false_alarm or one.judgement.called_regular or one.judgement.crashed
    rows = []
    for change in CHANGES:
        cells = []
        for place in (("server", "mobile"), ("both", "pair")):
            ones = [one for key in place for one in alone.get((change.name, key), [])]
            cells.append(share(_undecided(ones), len(ones)) if ones else "")
        rows.append((change.name, *cells, f"{wrong[change.name]} / {anyhow[change.name]}"))
    head = ("change", "alone, one side: undecided", "alone, both sides: undecided", "wrong with any others")
    keeps = "\n".join(f"- **{change.name}**: {change.keeps}" for change in CHANGES)
    text = "Undecided: of the flows whose verdict was right as recorded, those that this change alone left undecided."
    return f"{text}\n\n{table(head, rows)}\n\nWhat each change is:\n\n{keeps}"


def _worst(judged: Sequence[_CaseJudgement]) -> str:
    shares = sorted(
        ((_undecided(ones) / len(ones), name, place, len(ones)) for (name, place), ones in _places(judged).items()),
        reverse=True,
    )
    named = [f"{name} ({place}) {100 * undecided:.0f} % of {count}" for undecided, name, place, count in shares[:3]]
    return f"Most often undecided: {'; '.join(named)}."
