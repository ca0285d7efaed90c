"""How verdicts went from run to run: a strip a cell, and every change in words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from reports.audit.signs import sign
from reports.audit.table import when
from reports.quantities import format_count
from reports.wording import VERDICT_NAMES, cell_name

if TYPE_CHECKING:
    from pepscope.results.audits import AuditCell, AuditResult, AuditRun

#: Runs in a strip, the latest ones.
MAX_STRIP = 60


def history_section(result: AuditResult) -> str:
    """The section; empty with a single run, which has no history."""
    if len(result.runs) < 2:
        return ""
    runs = result.runs[-MAX_STRIP:]
    rows = "".join(
        f'<tr><th scope="row">{escape(cell_name(application, direction))}</th><td><ol class="strip">'
        + "".join(
            _mark(run, cell)
            for run, cell in zip(runs, result.history(application, direction)[-MAX_STRIP:], strict=True)
        )
        + "</ol></td></tr>"
        for application in result.rows()
        for direction in result.columns()
        if any(result.history(application, direction))
    )
    cut = (
        f'<p class="limits">The last {MAX_STRIP} of {format_count(len(result.runs))} runs.</p>'
        if len(runs) < len(result.runs)
        else ""
    )
    return (
        '<section aria-labelledby="history-heading"><h2 id="history-heading">History</h2>'
        f'<div class="wide"><table class="history"><tbody>{rows}</tbody></table></div>{cut}{_changes(result)}</section>'
    )


def _mark(run: AuditRun, cell: AuditCell | None) -> str:
    at = when(run.started_unix_ns)
    if cell is None:
        return f'<li class="absent" title="{escape(at)}: not measured"><span aria-label="not measured">·</span></li>'
    label = escape(f"{at}: {VERDICT_NAMES[cell.verdict]}")
    return f'<li class="{cell.verdict.value}" title="{label}" aria-label="{label}">{sign(cell.verdict)}</li>'


def _changes(result: AuditResult) -> str:
    since = escape(when(result.runs[0].started_unix_ns))
    changes = result.changes()
    if not changes:
        return f'<p class="limits">No verdict changed in {len(result.runs)} runs since {since}.</p>'
    lines = "".join(
        f"<li><b>{escape(cell_name(change.application, change.direction))}</b> was {VERDICT_NAMES[change.before]} "
        f"until {escape(when(change.last_before_unix_ns))} and is {VERDICT_NAMES[change.after]} from "
        f"{escape(when(change.first_after_unix_ns))}.</li>"
        for change in reversed(changes[-MAX_STRIP:])
    )
    return f'<ul class="changes">{lines}</ul>'
