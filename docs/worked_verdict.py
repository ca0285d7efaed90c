"""Writes rows of the table of weights, and a verdict step by step, into docs/methods/verdict.md."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from detector.detection import detect
from detector.methods import findings as method_findings
from detector.verdict.weighing import FAULT, charges, judge, weight_of
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.verdicts import Evidence, Outcome, Verdict

PAGE = Path(__file__).parent / "methods" / "verdict.md"
CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
#: A store that forwards over a slow link: several families speak, and one of them twice.
EXAMPLE = "prx_ngx_2M_umts"
SHOWN = (
    "same-packets",
    "same-data",
    "other-packets",
    "acks-before-data",
    "sender-ahead",
    "sender-far-ahead",
    "sender-beyond-buffers",
    "held-before-forwarded",
    "window-alternates",
    "handshake-made-anew",
)
WIDTH = 120
#: Findings that look contradictory, or leave something open.
TOGETHER = (("same-data", "acks-before-data"), ("same-packets", "acks-before-data"), ("same-data",))
_HEAD = "end to end | relay | store | local ack. |"


def page() -> str:
    """The page with its written sections."""
    text = PAGE.read_text(encoding="utf-8")
    for name, made in (("rows", _rows()), ("example", _example()), ("together", _together())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}{made}\n{end}{rest.split(end)[1]}"
    return text


def _rows() -> str:
    lines = [f"| finding | family | {_HEAD}", "|---|---|---|---|---|---|"]
    for name in SHOWN:
        row = method_findings()[name].weight
        lines.append(f"| `{name}` | {row.family} | {_cells(f'{row.of(each):g}' for each in Hypothesis)}")
    return "\n".join(lines)


def _example() -> str:
    """The charges of the example's findings, by family, and what becomes of them."""
    captures = [str(next(CORPUS.glob(f"{EXAMPLE}.{end}.*"))) for end in ("srv", "mob")]
    result = detect(*captures).pairs[0]
    spoken = [item for item in result.evidence if item.outcome is not Outcome.INAPPLICABLE]
    paid = charges(spoken)
    lines = [f"| finding | strength | {_HEAD}", "|---|---|---|---|---|---|"]
    for item in spoken:
        row = weight_of(item)
        cells = [_charge(row.of(each), _worst(spoken, row.family, each)) for each in Hypothesis]
        lines.append(f"| {row.family}: `{item.finding}` | {item.strength:.3f} | {_cells(cells)}")
    lines.append(f"| **charge** | | {_cells(f'**{paid[each]:.2f}**' for each in Hypothesis)}")
    weighed = {each: PRIOR[each] * math.exp(paid[each]) for each in Hypothesis}
    splits = sum(share for each, share in weighed.items() if each is not Hypothesis.END)
    store = weighed[Hypothesis.STORE]
    said = (
        "Of one family a hypothesis pays its worst charge; those in brackets are not paid. Prior times exp(charge) is "
        f"{weighed[Hypothesis.RELAY]:.2g} for a relay and {store:.3g} for a store, and next to nothing for the others: "
        f"the store has {store:.3g} / {splits:.3g} = {store / splits:.1%} of the split. P(split) is "
        f"{1 - result.probability[Verdict.REGULAR]:.2%}; the verdict is `{result.verdict.value}` with "
        f"{result.probability[result.verdict]:.1%}, mechanism {result.mechanism}."
    )
    return "\n".join([*lines, "", *textwrap.wrap(said, WIDTH)])


def _together() -> str:
    lines = [f"| findings | {_HEAD} P(fault) | verdict |", "|---|---|---|---|---|---|---|"]
    for names in TOGETHER:
        found = [method_findings()[name].evidence("", 1.0, "") for name in names]
        paid, made = charges(found), judge(found)
        kind = f"regular with {made.probability[Verdict.REGULAR]:.0%}: inconclusive"
        if made.verdict is not Verdict.INCONCLUSIVE:
            kind = f"{made.verdict.value}, {made.mechanism}, {made.probability[made.verdict]:.1%}"
        numbers = _cells(f"{paid[each]:g}" for each in Hypothesis)
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {numbers} {_fault(paid):.2g} | {kind} |")
    return "\n".join(lines)


def _fault(paid: dict[Hypothesis, float]) -> float:
    """Probability of a fault where one way of splitting explains all findings that a split explains."""
    end = PRIOR[Hypothesis.END]
    split = max(paid[each] for each in Hypothesis if each is not Hypothesis.END)
    explained = end * math.exp(paid[Hypothesis.END]) + (1 - end) * math.exp(split)
    return math.exp(FAULT) / (math.exp(FAULT) + explained)


def _worst(spoken: Sequence[Evidence], family: str, hypothesis: Hypothesis) -> float:
    return min(row.of(hypothesis) for item in spoken if (row := weight_of(item)).family == family)


def _charge(value: float, worst: float) -> str:
    shown = f"{value:.2f}" if value else "0"
    return shown if value == worst or not value else f"({shown})"


def _cells(values: Iterable[str]) -> str:
    return " | ".join(values) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
