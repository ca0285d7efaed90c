"""The matrix as JUnit XML: a test case a cell; a split fails, an inconclusive cell is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports.detection.junit import junit_case, write_suite
from reports.wording import cell_name, cell_sentence

if TYPE_CHECKING:
    from pepscope.results.audits import AuditCell, AuditResult


def write_audit_junit(result: AuditResult, path: str | Path) -> None:
    """Write one test case a cell of the latest run: passed = regular, failed = split, skipped = inconclusive."""
    run = result.latest
    cases = (_case(cell, run.source) for cell in run.cells)
    write_suite(path, "pepscope audit", [cell.verdict for cell in run.cells], cases, run.warnings)


def _case(cell: AuditCell, suite: str) -> str:
    seconds = sum(item.pair.duration_s for item in cell.connections)
    details = [cell_sentence(cell), *(item.summary for item in cell.evidence)]
    details += [f"{item.task}: {item.pair.reason}" for item in cell.connections if not item.set_aside]
    return junit_case(suite, cell_name(cell.application, cell.direction), seconds, cell.verdict, cell.reason, details)
