"""Verdicts as SARIF: what a code host shows of them, and what it knows again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pepscope.results.verdicts import DetectionResult
from reports.audit.sarif import write_audit_sarif
from reports.detection.sarif import write_sarif
from reports.errors import ReportError
from tests.pepscope.results.detections import DETECTIONS
from tests.reports.audits_made_by_hand import make_audit

AUDIT = make_audit()


def log(path: Path) -> dict[str, Any]:
    (run,) = json.loads(path.read_text(encoding="utf-8"))["runs"]
    assert isinstance(run, dict)
    return run


@given(DETECTIONS)
def test_each_split_is_one_result_of_a_rule(tmp_path_factory: pytest.TempPathFactory, result: DetectionResult) -> None:
    path = tmp_path_factory.mktemp("sarif") / "verdicts.sarif"
    write_sarif(result, path)
    run = log(path)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    splits = [group.verdict for group in result.groups if group.verdict.is_split]
    splits += [verdict for verdict in result.verdicts if verdict.is_split]
    assert [each["ruleId"] for each in run["results"]] == [verdict.value for verdict in splits]
    for each in run["results"]:
        assert rules[each["ruleIndex"]] == each["ruleId"]
        assert each["message"]["text"].isprintable()
        assert each["locations"]
        assert each["partialFingerprints"]


def test_a_place_below_the_working_directory_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_audit_sarif(AUDIT, "cells.sarif")
    split = [cell for cell in AUDIT.latest.cells if cell.verdict.is_split]
    results = log(tmp_path / "cells.sarif")["results"]
    assert len(results) == len(split) > 0
    uri = results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == AUDIT.latest.source


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot be written: No such file or directory\.$"):
        write_audit_sarif(AUDIT, tmp_path / "missing" / "cells.sarif")
