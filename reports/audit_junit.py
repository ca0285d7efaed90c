"""The matrix as JUnit XML: a test case a cell; a split fails, an inconclusive cell is skipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from pepscope.results import Kind
from reports.errors import cannot_write
from reports.table import printable
from reports.wording import CELL_SENTENCES, cell_name

if TYPE_CHECKING:
    from pepscope.audit_results import AuditCell, AuditResult


def write_audit_junit(result: AuditResult, path: str | Path) -> None:
    """Write one test case a cell of the latest run: passed = regular, failed = split, skipped = inconclusive."""
    run = result.latest
    counts = Counter(cell.verdict for cell in run.cells)
    failures = counts[Kind.SPLIT_TCP] + counts[Kind.TCP_PROXY]
    sums = f'tests="{len(run.cells)}" failures="{failures}" skipped="{counts[Kind.INCONCLUSIVE]}" errors="0"'
    suite = quoteattr(printable(run.source))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {sums}>",
        f'<testsuite name="pepscope audit" {sums}>',
        *(_case(cell, suite) for cell in run.cells),
        *([f"<system-err>{escape(printable('; '.join(run.warnings)))}</system-err>"] if run.warnings else []),
        "</testsuite>",
        "</testsuites>",
    ]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def _case(cell: AuditCell, suite: str) -> str:
    name = quoteattr(cell_name(cell.application, cell.direction))
    seconds = sum(item.pair.duration_s for item in cell.connections)
    head = f'<testcase classname={suite} name={name} time="{seconds:.6f}"'
    if cell.verdict is Kind.REGULAR:
        return f"{head}/>"
    reason = quoteattr(printable(cell.reason))
    if cell.verdict is Kind.INCONCLUSIVE:
        return f"{head}><skipped message={reason}/></testcase>"
    told = [CELL_SENTENCES[cell.verdict], *(item.summary for item in cell.evidence)]
    told += [f"{item.task}: {item.pair.reason}" for item in cell.connections if not item.set_aside]
    body = escape(printable(" ".join(told)))
    return f'{head}><failure type="{cell.verdict.value}" message={reason}>{body}</failure></testcase>'
