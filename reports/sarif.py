"""SARIF 2.1.0 (OASIS): the log, its rules, results and places, for every report that a code host shows beside files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pepscope
from pepscope.terminal import printable
from pepscope.whole_file import write_output
from reports.errors import cannot_write

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: Of each rule what it reports, and its level: `error`, `warning` or `note`.
Rules = Mapping[str, tuple[str, str]]


def write_log(path: str | Path, runs: Sequence[dict[str, Any]]) -> None:
    """Write a log; `-` is standard output. Raises ReportError."""
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}
    try:
        write_output(path, json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


def sarif_run(tool: str, rules: Rules, identity: str, results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What one tool found; a code host compares runs of one `identity`."""
    described = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (text, level) in rules.items()
    ]
    driver = {"name": printable(tool), "version": pepscope.__version__, "rules": described}
    return {"tool": {"driver": driver}, "automationDetails": {"id": identity}, "results": list(results)}


def sarif_result(
    rules: Rules, rule: str, text: str, captures: Iterable[str], fingerprints: Mapping[str, str]
) -> dict[str, Any]:
    """One result at some files; `fingerprints` are the same from run to run, so that a host knows it again."""
    return {
        "ruleId": rule,
        "ruleIndex": list(rules).index(rule),
        "level": rules[rule][1],
        "message": {"text": printable(text)},
        "locations": [_location(path) for path in captures],
        "partialFingerprints": dict(fingerprints),
    }


def _location(path: str) -> dict[str, Any]:
    """A file below the working directory by its relative name, which a code host needs; another one by its own."""
    place = Path(os.path.abspath(path))  # noqa: PTH100  # without `..`, and links as they are named
    below = place.is_relative_to(Path.cwd())
    uri = quote(os.fsencode(place.relative_to(Path.cwd()).as_posix())) if below else place.as_uri()
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
