"""Scores as SARIF 2.1.0 (OASIS), which code hosts show beside the files: a result for each verdict not right."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pepscope
from detector.corpora.validation.scoring import FAILED, Score
from pepscope.whole_file import write_output
from reports.errors import cannot_write
from reports.terminal import printable
from reports.validation.wording import MEANINGS, Wrong, change_text, wrong

if TYPE_CHECKING:
    from detector.corpora.validation.results import Validation

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
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
        {
            "tool": {
                "driver": {
                    "name": f"pepscope validate: {printable(score.name)}",
                    "version": pepscope.__version__,
                    "rules": [
                        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
                        for rule, (text, level) in _RULES.items()
                    ],
                }
            },
            "automationDetails": {"id": f"pepscope-validate/{place}/"},
            "results": [*(_result(each) for each in wrong(validation, score)), *_worse(validation, score.name)],
        }
        for place, score in enumerate(validation.detectors)
    ]
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}
    try:
        write_output(path, json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


def _result(each: Wrong) -> dict[str, Any]:
    rule = _DETECTOR_FAILED if each.judgement.said == FAILED else each.judgement.score.value
    return {
        **_head(rule, f"{each.run}, {each.case.name}: {each.sentence}."),
        "locations": [_location(path) for path in each.captures],
        # The same from run to run, so that a host knows a result again.
        "partialFingerprints": {"label/v1": f"{each.case_id} {rule}"},
    }


def _worse(validation: Validation, detector: str) -> Iterator[dict[str, Any]]:
    comparison = validation.comparison
    if comparison is None:
        return
    for change in comparison.changes:
        if change.is_worse and change.detector == detector:
            yield {
                **_head(_WORSE, f"{MEANINGS[change.rate]}: {change_text(change)}."),
                "locations": [_location(comparison.baseline)],
                "partialFingerprints": {"rate/v1": f"{detector} {change.rate}"},
            }


def _head(rule: str, text: str) -> dict[str, Any]:
    names = list(_RULES)
    return {
        "ruleId": rule, "ruleIndex": names.index(rule), "level": _RULES[rule][1], "message": {"text": printable(text)},
    }  # fmt: skip


def _location(path: str) -> dict[str, Any]:
    """A file below the working directory by its relative name, which a code host needs; another one by its own."""
    place = Path(os.path.abspath(path))  # noqa: PTH100  # without `..`, and links as they are named
    below = place.is_relative_to(Path.cwd())
    uri = quote(place.relative_to(Path.cwd()).as_posix()) if below else place.as_uri()
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
