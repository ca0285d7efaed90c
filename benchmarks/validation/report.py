"""The score of two captures as text: by variant, kind, mechanism and method, and what was wrong."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.validation.askings import AS_RECORDED
from benchmarks.validation.score import ALONE, KIND_OF_CLASS, VERDICTS, Score
from pepscope.results.verdicts import SPLIT_VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def report(scores: list[Score]) -> str:
    """The sections of docs/validation/corpus.md."""
    parts = [_by_variant(scores), _confusion(scores), _methods(scores), _alone(scores)]
    if any(score.true_mechanism is not None for score in scores):
        parts.insert(2, _mechanisms(scores))
    parts.append(_listed("False alarms (regular called split)", [s for s in scores if s.false_alarm]))
    parts.append(_listed("Splits called regular", [s for s in scores if s.called_regular]))
    parts.append(
        _listed("Not found", [s for s in scores if not s.found and not s.false_alarm and not s.called_regular])
    )
    parts.append(_listed("Found, but of the other kind", [s for s in scores if s.found and not s.kind_right]))
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def _by_variant(scores: list[Score]) -> str:
    rows = []
    for variant in dict.fromkeys(score.variant for score in scores):
        here = [score for score in scores if score.variant == variant]
        regular = [score for score in here if score.truth == "regular"]
        split = [score for score in here if score.truth != "regular"]
        rows.append(
            (
                variant,
                f"{sum(s.found for s in regular)} / {len(regular)}",
                sum(s.false_alarm for s in regular),
                f"{sum(s.found for s in split)} / {len(split)}",
                sum(s.called_regular for s in split),
                f"{sum(s.kind_right for s in split if s.found)} / {sum(s.found for s in split)}",
            )
        )
    head = ("captures", "regular confirmed", "false alarms", "splits found", "called regular", "kind right")
    return "## Flows\n\n" + _table(head, rows)


def _confusion(scores: list[Score]) -> str:
    counts = Counter((score.truth, score.verdict) for score in scores if score.variant == AS_RECORDED)
    rows = [(truth, *(counts[truth, verdict] for verdict in VERDICTS)) for truth in KIND_OF_CLASS]
    return "## Truth against verdict, as recorded\n\n" + _table(("truth", *VERDICTS), rows)


def _mechanisms(scores: list[Score]) -> str:
    """Reported mechanisms of splits; only of corpora whose truth names them."""
    known = [score for score in scores if score.true_mechanism is not None]
    rows = []
    for mechanism in sorted({str(score.true_mechanism) for score in known}):
        here = [score for score in known if score.true_mechanism == mechanism]
        claimed = [score for score in here if score.mechanism_claimed]
        right = sum(score.mechanism_right for score in claimed)
        wrong = Counter(str(score.mechanism) for score in claimed if not score.mechanism_right)
        said = ", ".join(f"{name} {count}" for name, count in wrong.most_common()) or "-"
        rows.append((mechanism, right, len(claimed) - right, len(here) - len(claimed), said))
    head = ("true mechanism", "right", "wrong", "not named", "named instead")
    return "## Mechanism, all captures\n\n" + _table(head, rows)


def _methods(scores: list[Score]) -> str:
    methods = sorted({method for score in scores for method in score.outcomes})
    rows = []
    for method in methods:
        row: list[object] = [method]
        for regular in (True, False):
            here = [s.outcomes.get(method) for s in scores if (s.truth == "regular") == regular and s.outcomes]
            row += [here.count("intact"), here.count("split"), here.count("inapplicable")]
        rows.append(row)
    head = ("method", "regular: intact", "split", "-", "split or proxy: intact", "split", "-")
    return "## What each method said, all captures\n\n" + _table(head, rows)


def _alone(scores: list[Score]) -> str:
    rows = []
    for method in ALONE:
        for variant in dict.fromkeys(score.variant for score in scores):
            here = [s for s in scores if s.variant == variant and s.alone]
            regular = Counter(s.alone[method] for s in here if s.truth == "regular")
            split = Counter(s.alone[method] for s in here if s.truth != "regular")
            rows.append(
                (
                    method, variant,
                    regular["regular"], sum(regular[v] for v in SPLIT_VERDICTS), regular["inconclusive"],
                    sum(split[v] for v in SPLIT_VERDICTS), split["regular"], split["inconclusive"],
                )
            )  # fmt: skip
    head = (
        "evidence of", "captures", "regular: right", "false alarm", "inconclusive", "split: found", "called regular",
        "inconclusive",
    )  # fmt: skip
    return "## One method alone\n\n" + _table(head, rows)


def _listed(title: str, scores: list[Score]) -> str:
    """Flows by run and verdict; those whose reasons differ in numbers alone are one row."""
    if not scores:
        return f"## {title}\n\nNone."
    alike: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        wording = re.sub(r"\d+", "0", score.reason)
        alike.setdefault((score.case, score.variant, score.truth, score.verdict, wording), []).append(score)
    rows = [(*key[:4], len(several), several[0].reason.replace("|", "/")) for key, several in alike.items()]
    return f"## {title}\n\n" + _table(("run", "captures", "truth", "verdict", "flows", "reason of the first"), rows)
