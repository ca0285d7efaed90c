"""Scores as JUnit XML: a suite a detector with a case a label, and a suite of rates beside a baseline's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from detector.corpora.validation.scoring import FAILED, Score
from pepscope.terminal import printable
from pepscope.whole_file import write_output
from reports.errors import cannot_write
from reports.validation.wording import MEANINGS, change_text, sentence

if TYPE_CHECKING:
    from detector.corpora.validation.results import Comparison, DetectorScore, Validation


def write_validation_junit(validation: Validation, path: str | Path) -> None:
    """Write one test case a label: failed = false alarm or split called regular, skipped = not found or of the other
    kind, error = the detector failed. A rate that is worse than the baseline's fails, too. Raises ReportError."""
    suites = [_suite(score.name, list(_cases(validation, score))) for score in validation.detectors]
    if validation.comparison is not None:
        suites.append(_suite(f"against {validation.comparison.baseline}", list(_changes(validation.comparison))))
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "".join(suites) + "</testsuites>\n"
    try:
        write_output(path, text)
    except OSError as error:
        raise cannot_write(path, error) from error


def _suite(name: str, cases: Sequence[str]) -> str:
    counts = {kind: sum(f"<{tag} " in case for case in cases) for kind, tag in _TAGS.items()}
    sums = " ".join(f'{kind}="{count}"' for kind, count in {"tests": len(cases), **counts}.items())
    return f"<testsuite name={_quoted(name)} {sums}>\n" + "".join(f"{case}\n" for case in cases) + "</testsuite>\n"


_TAGS = {"failures": "failure", "skipped": "skipped", "errors": "error"}


def _cases(validation: Validation, score: DetectorScore) -> Iterator[str]:
    seconds = [answer.seconds / max(1, len(answer.judgements)) for answer in score.answers for _ in answer.judgements]
    runs = [run.name for run in validation.runs for _ in run.cases]
    for run, case, judged, took in zip(runs, validation.cases, score.judgements, seconds, strict=True):
        head = f'<testcase classname={_quoted(run)} name={_quoted(case.name)} time="{took:.6f}"'
        if judged.score is Score.RIGHT:
            yield f"{head}/>"
            continue
        message = _quoted(sentence(case, judged))
        if judged.said == FAILED:
            yield f'{head}><error type="failed" message={message}/></testcase>'
        elif judged.score.is_error:
            body = escape(printable(judged.reason))
            yield f'{head}><failure type="{judged.score.value}" message={message}>{body}</failure></testcase>'
        else:
            yield f"{head}><skipped message={message}/></testcase>"


def _changes(comparison: Comparison) -> Iterator[str]:
    for change in comparison.changes:
        head = f"<testcase classname={_quoted(change.detector)} name={_quoted(MEANINGS[change.rate])}"
        if change.is_worse:
            yield f'{head}><failure type="worse" message={_quoted(change_text(change))}/></testcase>'
        else:
            yield f"{head}/>"


def _quoted(text: str) -> str:
    return quoteattr(printable(text))
