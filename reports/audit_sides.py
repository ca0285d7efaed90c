"""What speaks for a split and what for end to end in a cell that is inconclusive, always both."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pepscope.results import Kind, Outcome
from reports.page_parts import strength_bar
from reports.wording import method_name

if TYPE_CHECKING:
    from pepscope.audit_results import AuditCell
    from pepscope.results import Evidence

#: Findings of each side that are shown, the firmest first; all of them stand with their connections.
MAX_OF_SIDE = 4

_SIDES = ((Outcome.SPLIT, "a split"), (Outcome.INTACT, "end to end"))


def sides_section(cell: AuditCell) -> str:
    """Both sides as a table with where each was found; empty for cells with a verdict, and where nothing speaks."""
    found = {outcome: _voices(cell, outcome) for outcome, _ in _SIDES}
    if cell.verdict is not Kind.INCONCLUSIVE or not any(found.values()):
        return ""
    rows = "".join(_rows(name, outcome, found[outcome]) for outcome, name in _SIDES)
    return (
        '<h4>Both sides</h4><table class="evidence sides"><thead><tr><th scope="col">Speaks for</th>'
        '<th scope="col">Found in</th><th scope="col">Strength</th><th scope="col">Finding</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _voices(cell: AuditCell, outcome: Outcome) -> list[tuple[str, Evidence]]:
    """Where each finding of one side was made, and the finding; the firmest first, each finding once."""
    everything = [(method_name(item.method), item) for item in cell.evidence]
    everything += [(one.task, item) for one in cell.connections if not one.set_aside for item in one.pair.evidence]
    best: dict[str, tuple[str, Evidence]] = {}
    for where, item in everything:
        known = best.get(item.finding)
        if item.outcome is outcome and (known is None or item.strength > known[1].strength):
            best[item.finding] = where, item
    return sorted(best.values(), key=lambda voice: -voice[1].strength)[:MAX_OF_SIDE]


def _rows(name: str, outcome: Outcome, voices: list[tuple[str, Evidence]]) -> str:
    if not voices:
        return (
            f'<tr class="{outcome.value}"><th scope="row">{escape(name)}</th>'
            '<td class="finding" colspan="3">Nothing that was measured.</td></tr>'
        )
    return "".join(
        f'<tr class="{outcome.value}"><th scope="row">{escape(name)}</th><td data-label="found in">{escape(where)}</td>'
        f'<td data-label="strength">{strength_bar(item)}</td><td class="finding">{escape(item.summary)}</td></tr>'
        for where, item in voices
    )
