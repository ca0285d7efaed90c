"""Scores as SARIF 2.1.0: a result for each verdict not right, and for each rate that got worse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detector.corpora.validation.scoring import FAILED, Score
from reports.sarif import sarif_result, sarif_run, write_log
from reports.validation.wording import MEANINGS, Wrong, change_text, wrong

if TYPE_CHECKING:
    from detector.corpora.validation.results import Validation

_WORSE, _DETECTOR_FAILED = "worse", "detector-failed"
_RULES = {
    Score.FALSE_ALARM.value: (
        "A split is reported where none is, or in the network instead of at the server.",
        "error",
    ),
    Score.REVERSED.value: ("A split connection is called regular.", "error"),
    Score.OTHER_KIND.value: ("A split is found, but reported as one of the other kind.", "note"),
    Score.NOT_FOUND.value: ("The verdict is inconclusive, or the connection was not judged.", "note"),
    _DETECTOR_FAILED: ("The detector failed at these captures.", "warning"),
    _WORSE: ("A rate is worse than the baseline's, beyond chance.", "error"),
}


def write_validation_sarif(validation: Validation, path: str | Path) -> None:
    """Write a SARIF log with one run a detector. Raises ReportError."""
    runs = [
        sarif_run(
            f"pepscope validate: {score.name}", _RULES, f"pepscope-validate/{place}/",
            [*(_result(each) for each in wrong(validation, score)), *_worse(validation, score.name)],
        )
        for place, score in enumerate(validation.detectors)
    ]  # fmt: skip
    write_log(path, runs)


def _result(each: Wrong) -> dict[str, Any]:
    rule = _DETECTOR_FAILED if each.judgement.said == FAILED else each.judgement.score.value
    text = f"{each.run}, {each.case.name}: {each.sentence}."
    return sarif_result(_RULES, rule, text, each.captures, {"label/v1": f"{each.case_id} {rule}"})


def _worse(validation: Validation, detector: str) -> Iterator[dict[str, Any]]:
    comparison = validation.comparison
    if comparison is None:
        return
    for change in comparison.changes:
        if change.is_worse and change.detector == detector:
            text = f"{MEANINGS[change.rate]}: {change_text(change)}."
            same = {"rate/v1": f"{detector} {change.rate}"}
            yield sarif_result(_RULES, _WORSE, text, [comparison.baseline], same)
