"""The evidence for a split and the evidence for end to end in an inconclusive cell, always both."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from pepscope.results.verdicts import Outcome, Verdict
from reports.page_parts import strength_bar
from reports.wording import method_name

if TYPE_CHECKING:
    from pepscope.results.audits import AuditCell
    from pepscope.results.verdicts import Evidence

#: Findings of each side that are shown, the firmest first; all of them stand with their connections.
MAX_OF_SIDE = 4

_SIDES = ((Outcome.SPLIT, "a split"), (Outcome.INTACT, "end to end"))


def sides_section(cell: AuditCell, titles: Mapping[str, str]) -> str:
    """Both sides as a table with where each was found; empty for cells with a verdict or without evidence."""
    found = {outcome: _strongest(cell, outcome, titles) for outcome, _ in _SIDES}
    if cell.verdict is not Verdict.INCONCLUSIVE or not any(found.values()):
        return ""
    rows = "".join(_rows(name, outcome, found[outcome]) for outcome, name in _SIDES)
    return (
        '<h4>Both sides</h4><table class="evidence sides"><thead><tr><th scope="col">Evidence for</th>'
        '<th scope="col">Found in</th><th scope="col">Strength</th><th scope="col">Finding</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _strongest(cell: AuditCell, outcome: Outcome, titles: Mapping[str, str]) -> list[tuple[str, Evidence]]:
    """Where each finding of one side was made, and the finding; the firmest first, each finding once."""
    everything = [(method_name(item.method, titles), item) for item in cell.evidence]
    everything += [(one.task, item) for one in cell.connections if not one.set_aside for item in one.pair.evidence]
    best: dict[str, tuple[str, Evidence]] = {}
    for where, item in everything:
        known = best.get(item.finding)
        if item.outcome is outcome and (known is None or item.strength > known[1].strength):
            best[item.finding] = where, item
    return sorted(best.values(), key=lambda found: -found[1].strength)[:MAX_OF_SIDE]


def _rows(name: str, outcome: Outcome, items: list[tuple[str, Evidence]]) -> str:
    if not items:
        return (
            f'<tr class="{outcome.value}"><th scope="row">{escape(name)}</th>'
            '<td class="finding" colspan="3">Nothing that was measured.</td></tr>'
        )
    return "".join(
        f'<tr class="{outcome.value}"><th scope="row">{escape(name)}</th><td data-label="found in">{escape(where)}</td>'
        f'<td data-label="strength">{strength_bar(item)}</td><td class="finding">{escape(item.summary)}</td></tr>'
        for where, item in items
    )
