"""Statements of a reproduction as a Markdown table: `statements.md` of its directory, and in docs/papers."""

from __future__ import annotations

import textwrap

from papers.results import Reproduction, Statement, StatementOutcome

_HEAD = "| where | published | found | accepted | verdict |\n|---|---|---|---|---|\n"


def statements_text(result: Reproduction) -> str:
    """Counts, and a row for each statement."""
    counts = result.counts()
    reproduced = counts[StatementOutcome.REPRODUCED.value]
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "reproduced" and count)
    head = f"{reproduced} of {result.counted} statements are reproduced with `--{result.effort}` ({others})."
    return textwrap.fill(head, 120) + "\n\n" + _HEAD + "".join(map(_row, result.assessment.statements))


def _row(statement: Statement) -> str:
    found = statement.found
    if statement.outcome is StatementOutcome.NOT_MEASURED:
        found = statement.reason
    cells = (statement.where, statement.published, found, statement.tolerance, statement.outcome.value)
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |\n"
