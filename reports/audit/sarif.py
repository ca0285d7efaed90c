"""The matrix as SARIF 2.1.0: a result for each cell of the latest run that is split, at the archive of the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports.detection.sarif import RULES
from reports.sarif import sarif_result, sarif_run, write_log
from reports.wording import cell_name, cell_sentence

if TYPE_CHECKING:
    from pepscope.results.audits import AuditResult


def write_audit_sarif(result: AuditResult, path: str | Path) -> None:
    """Write a SARIF log with a result for each cell that is split. Raises ReportError."""
    run = result.latest
    results = []
    for cell in run.cells:
        if cell.verdict.is_split:
            name = cell_name(cell.application, cell.direction)
            text = f"{name}: {cell_sentence(cell)} {cell.reason}"
            same = {"cell/v1": f"{name} {cell.verdict.value}"}
            results.append(sarif_result(RULES, cell.verdict.value, text, [run.source], same))
    write_log(path, [sarif_run("pepscope audit", RULES, "pepscope-audit/", results)])
