"""What a search found: settings, statements that hold under them, and those that fail then."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from papers.results import Comparison, StatementOutcome
from papers.search.scoring import held
from papers.search.space import Search, Value
from papers.statements.comparing import written
from papers.statements.evaluation import Judged
from reference_sim.intervals import Interval

#: Numbers that a cell of the table of statements shows.
_SHOWN_NUMBERS = 4
_FAILED = (StatementOutcome.DIRECTION, StatementOutcome.NOT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings, scored on seeds that chose nothing."""

    #: "as chosen", a lead, or "found".
    origin: str
    settings: Mapping[str, Value]
    statements: tuple[Judged, ...] = field(repr=False)

    @property
    def held(self) -> int:
        """Statements that are reproduced."""
        return held(self.statements)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Settings of the reproduction, leads and what the search found, side by side."""

    search: Search = field(repr=False)
    trials: int
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """The settings of the reproduction."""
        return self.candidates[0]

    @property
    def found(self) -> Candidate:
        """What the search found."""
        return self.candidates[-1]

    @property
    def best(self) -> Candidate:
        """The candidate under which most statements hold: a lead may be ahead of the search."""
        return max(self.candidates, key=lambda one: one.held)

    def different(self) -> list[Candidate]:
        """The candidates, each settings once: the search may find those of the reproduction or of a lead."""
        shown: list[Candidate] = []
        for one in self.candidates:
            if one.settings not in [other.settings for other in shown]:
                shown.append(one)
        return shown

    def gained(self, candidate: Candidate) -> list[Judged]:
        """Statements that hold under these settings and not under those of the reproduction."""
        return _only_in(candidate, self.chosen)

    def price(self, candidate: Candidate) -> list[Judged]:
        """Statements that hold under the settings of the reproduction and not under these."""
        return _only_in(self.chosen, candidate)

    def lost(self, candidate: Candidate) -> list[Judged]:
        """Statements that more seeds may decide under the settings of the reproduction and that fail under these."""
        failed = {one.key for one in candidate.statements if one.outcome in _FAILED}
        is_open = StatementOutcome.UNDECIDED
        return [one for one in self.chosen.statements if one.outcome is is_open and one.key in failed]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "search": self.search.name,
            "title": self.search.title,
            "trials": self.trials,
            "parameters": [
                {"name": one.name, "chosen": one.chosen, "tried": one.in_words(), "source": one.source}
                for one in self.search.parameters
            ],
            "best": self.best.origin,
            "candidates": [
                {
                    "origin": one.origin,
                    "settings": dict(one.settings),
                    "reproduced": one.held,
                    "gained": [_named(statement) for statement in self.gained(one)],
                    "price": [_named(statement) for statement in self.price(one)],
                    "lost": [_named(statement) for statement in self.lost(one)],
                    "statements": [_statement(statement) for statement in one.statements],
                }
                for one in self.candidates
            ],
        }


def _only_in(one: Candidate, other: Candidate) -> list[Judged]:
    reproduced = StatementOutcome.REPRODUCED
    held_there = {statement.key for statement in other.statements if statement.outcome is reproduced}
    return [
        statement for statement in one.statements if statement.outcome is reproduced and statement.key not in held_there
    ]


def _named(one: Judged) -> dict[str, str]:
    return {"where": one.where, "published": one.published}


def _statement(one: Judged) -> dict[str, Any]:
    return {
        **_named(one),
        "verdict": one.outcome.value,
        "comparisons": [comparison.to_dict() for comparison in one.comparisons],
    }


def search_text(result: SearchResult) -> str:
    """Counts, settings, what other settings gain and cost, and statements, as Markdown."""
    best, count = result.best, len(result.best.statements)
    others = ", ".join(f"{one.held} with '{one.origin}'" for one in result.candidates if one is not best)
    head = (
        f"{best.held} of {count} statements hold at once with the settings of '{best.origin}' ({others}), on seeds "
        f"that chose nothing; {result.trials} trials, {result.search.repeats[2]} repeats for the final score."
    )
    parts = [[textwrap.fill(head, 120)], _settings(result), _prices(result), _statements(result)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _settings(result: SearchResult) -> list[str]:
    shown = result.different()
    lines = [_line("parameter", "tried", "source", *(one.origin for one in shown)), _rule(3 + len(shown))]
    for parameter in result.search.parameters:
        values = [f"{one.settings[parameter.name]}" for one in shown]
        lines.append(_line(parameter.name, parameter.in_words(), parameter.source, *values))
    lines.append(_line("**reproduced**", "", "", *(f"**{one.held}**" for one in shown)))
    return lines


def _prices(result: SearchResult) -> list[str]:
    """What each of the other settings gains, and what fails with them of what holds as chosen."""
    return [
        textwrap.fill(
            f"- {one.origin}: gained {in_words(result.gained(one))}. Price: {in_words(result.price(one))}."
            f"{_losses(result, one)}",
            120,
            subsequent_indent="  ",
        )
        for one in result.different()[1:]
    ]


def _losses(result: SearchResult, candidate: Candidate) -> str:
    lost = result.lost(candidate)
    return f" Undecided as chosen, not reproduced here: {in_words(lost)}." if lost else ""


def in_words(statements: Sequence[Judged]) -> str:
    """Names of statements for a sentence."""
    return "; ".join(f"{one.where}: {one.published.strip().rstrip('.')}" for one in statements) or "nothing"


def _statements(result: SearchResult) -> list[str]:
    shown = result.different()
    found = [{one.key: one for one in candidate.statements} for candidate in shown]
    lines = [_line("where", "published", *(one.origin for one in shown)), _rule(2 + len(shown))]
    for key in dict.fromkeys(key for statements in found for key in statements):
        cells = (_found(statements[key]) if key in statements else "not measured" for statements in found)
        lines.append(_line(*key, *cells))
    return lines


def _found(one: Judged) -> str:
    """Verdict, and the numbers behind it."""
    measured = [comparison for comparison in one.comparisons if not comparison.is_condition]
    numbers = ", ".join(dict.fromkeys(_number(comparison) for comparison in measured[:_SHOWN_NUMBERS]))
    rest = ", ..." if len(measured) > _SHOWN_NUMBERS else ""
    return f"{one.outcome.value}: {numbers}{rest}" if measured else one.outcome.value


def _number(one: Comparison) -> str:
    return written(Interval(one.mean, one.half_width, one.count))


def _line(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def _rule(columns: int) -> str:
    return "|---" * columns + "|"
