"""Statements of a reproduction as a Markdown table: `statements.md` of its directory, and in docs/papers."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from papers.results import Reproduction, Statement, StatementOutcome

_COLUMNS = ("where", "published", "found", "accepted", "verdict")
#: Of statements whose open parameters were changed one at a time.
_SENSITIVITY = "with other values of open parameters"
#: Of a statement that no run with other values measures.
_NOT_VARIED = "not varied"


def statements_text(result: Reproduction) -> str:
    """Counts, and a row for each statement."""
    counts = result.counts()
    reproduced = counts[StatementOutcome.REPRODUCED.value]
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "reproduced" and count)
    head = f"{reproduced} of {result.counted} statements are reproduced with `--{result.effort}` ({others})."
    statements = result.assessment.statements
    has_sensitivity = any(one.elsewhere for one in statements)
    columns = (*_COLUMNS, _SENSITIVITY) if has_sensitivity else _COLUMNS
    lines = [_line(columns), "|---" * len(columns) + "|"]
    lines += [_row(one, has_sensitivity=has_sensitivity) for one in statements]
    return textwrap.fill(head, 120) + "\n\n" + "\n".join(lines) + "\n"


def _row(statement: Statement, *, has_sensitivity: bool) -> str:
    found = statement.found
    if statement.outcome is StatementOutcome.NOT_MEASURED:
        found = statement.reason
    cells = [statement.where, statement.published, found, statement.tolerance, statement.outcome.value]
    return _line([*cells, statement.sensitivity_in_words() or _untried(statement)] if has_sensitivity else cells)


def _untried(statement: Statement) -> str:
    """Nothing where no value could change what is shown."""
    is_fixed = statement.outcome in (StatementOutcome.BY_CONSTRUCTION, StatementOutcome.NOT_MEASURED)
    return "" if is_fixed or _is_calculated(statement) else _NOT_VARIED


def _is_calculated(statement: Statement) -> bool:
    return bool(statement.comparisons) and all(
        one.half_width == 0.0 and not one.is_condition for one in statement.comparisons
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
