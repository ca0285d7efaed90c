"""Scores on the terminal: rates, what was said of what is true, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from detector.corpora.validation.scoring import SAYINGS
from pepscope.terminal import printable
from reports.page_parts import counted
from reports.quantities import format_seconds
from reports.terminal import FAINT, WARNING, paint, wrapped
from reports.validation.wording import (
    MEANINGS,
    change_text,
    failure_lines,
    headline,
    share_text,
    test_sentence,
    wrong,
)

if TYPE_CHECKING:
    from detector.corpora.validation.results import Change, DetectorScore, Validation

WIDTH = 80

#: Errors that are listed; --json and --html have all.
MOST_LISTED = 10


def write_validation_table(validation: Validation, stream: TextIO, colour: bool) -> None:
    """Write the scores to `stream`, 80 columns wide; terminal colours only if `colour`."""
    for line in _lines(validation, colour):
        stream.write(line.rstrip() + "\n")


def _lines(validation: Validation, colour: bool) -> Iterator[str]:
    yield from wrapped(headline(validation), WIDTH, "", "")
    yield paint(f"{counted(len(validation.cases), 'label')} in {counted(len(validation.runs), 'run')}", FAINT, colour)
    for score in validation.detectors:
        yield ""
        yield paint(printable(score.name), FAINT, colour)
        yield from _rates(score)
        yield from _confusion(score, colour)
        yield from _speed(score)
    yield from _changes(validation, colour)
    for line in failure_lines(validation):
        yield from (paint(each, WARNING, colour) for each in wrapped(printable(line), WIDTH, "", "  "))
    yield from _errors(validation, colour)


def _rates(score: DetectorScore) -> Iterator[str]:
    for name, share in score.rates.items():
        if share.of:
            yield f"  {MEANINGS[name]:<35} {share_text(share)}"


def _confusion(score: DetectorScore, colour: bool) -> Iterator[str]:
    yield paint(
        "  " + "TRUTH".ljust(10) + "".join(each.upper().rjust(len(each) + 2) for each in SAYINGS), FAINT, colour
    )
    for truth, row in score.confusion.items():
        if any(row.values()):
            yield "  " + truth.ljust(10) + "".join(f"{row[each]:,}".rjust(len(each) + 2) for each in SAYINGS)


def _speed(score: DetectorScore) -> Iterator[str]:
    timing, area = score.timing, score.roc.area
    parts = [] if area is None else [f"area under the ROC {area:.4f}"]
    if score.claims.said:
        parts.append(f"Brier score {score.claims.brier:.4f}")
    parts.append(f"median {format_seconds(timing.run_median_s)} a run")
    if timing.connection_median_s is not None:
        parts.append(f"{format_seconds(timing.connection_median_s)} a connection")
    yield from wrapped(", ".join(parts), WIDTH, "  ", "  ")


def _changes(validation: Validation, colour: bool) -> Iterator[str]:
    if validation.beside:
        yield ""
        yield from wrapped("pepscope -> the other detector, on the same captures:", WIDTH, "", "  ")
        for change in validation.beside:
            yield from _change(change, colour, worse="more often")
    if validation.comparison is not None:
        yield ""
        text = f"Against {validation.comparison.baseline}: {test_sentence(validation.comparison)}:"
        yield from wrapped(printable(text), WIDTH, "", "  ")
        for change in validation.comparison.changes:
            yield from _change(change, colour, worse="worse")


def _change(change: Change, colour: bool, worse: str) -> Iterator[str]:
    mark = f" {worse.upper()}" if change.is_worse else ""
    text = f"{MEANINGS[change.rate]}: {change_text(change)}{mark}"
    for line in wrapped(text, WIDTH, "  ", "    "):
        yield paint(line, WARNING, colour) if change.is_worse else line


def _errors(validation: Validation, colour: bool) -> Iterator[str]:
    errors = [
        each for score in validation.detectors for each in wrong(validation, score) if each.judgement.score.is_error
    ]
    if errors:
        yield ""
    for each in errors[:MOST_LISTED]:
        text = printable(f"{each.detector}: {each.run}: {each.case.name}: {each.sentence}")
        yield from (paint(line, WARNING, colour) for line in wrapped(text, WIDTH, "", "  "))
    if len(errors) > MOST_LISTED:
        yield f"and {counted(len(errors) - MOST_LISTED, 'more error')}"
