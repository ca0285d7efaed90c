"""What a search found: settings, statements that hold under them, and those that fail then."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from papers.comparing import written
from papers.evaluation import Judged
from papers.results import Comparison, StatementOutcome
from papers.search.scoring import held
from papers.search.space import Search, Value
from reference_sim.intervals import Interval


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

    def outcomes(self) -> dict[tuple[str, str], StatementOutcome]:
        """By statement."""
        return {one.key: one.outcome for one in self.statements}


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

    def price(self) -> list[Judged]:
        """Statements that hold under the settings of the reproduction and not under the best ones."""
        before = self.chosen.outcomes()
        reproduced = StatementOutcome.REPRODUCED
        return [
            one for one in self.best.statements if before.get(one.key) is reproduced and one.outcome is not reproduced
        ]

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
                    "statements": [_statement(statement) for statement in one.statements],
                }
                for one in self.candidates
            ],
            "price": [{"where": one.where, "published": one.published} for one in self.price()],
        }


def _statement(one: Judged) -> dict[str, Any]:
    return {
        "where": one.where,
        "published": one.published,
        "verdict": one.outcome.value,
        "comparisons": [comparison.to_dict() for comparison in one.comparisons],
    }


def search_text(result: SearchResult) -> str:
    """Settings, counts, statements and price as Markdown."""
    best, count = result.best, len(result.best.statements)
    others = ", ".join(f"{one.held} with {one.origin}" for one in result.candidates if one is not best)
    head = (
        f"{best.held} of {count} statements hold at once with the settings of '{best.origin}' ({others}), on seeds "
        f"that chose nothing; {result.trials} trials, {result.search.repeats[2]} repeats for the final score."
    )
    return "\n".join(
        [textwrap.fill(head, 120), "", *_settings(result), "", *_statements(result), "", _price(result), ""]
    )


def _settings(result: SearchResult) -> list[str]:
    names = [one.origin for one in result.candidates]
    lines = [_line("parameter", "tried", "source", *names), "|---" * (3 + len(names)) + "|"]
    for parameter in result.search.parameters:
        values = [f"{one.settings[parameter.name]}" for one in result.candidates]
        lines.append(_line(parameter.name, parameter.in_words(), parameter.source, *values))
    lines.append(_line("**reproduced**", "", "", *(f"**{one.held}**" for one in result.candidates)))
    return lines


def _statements(result: SearchResult) -> list[str]:
    chosen, best = result.chosen, result.best
    before = {one.key: one for one in chosen.statements}
    lines = [_line("where", "published", "as chosen", f"'{best.origin}'"), "|---|---|---|---|"]
    for one in best.statements:
        earlier = before.get(one.key)
        lines.append(_line(one.where, one.published, _found(earlier) if earlier else "", _found(one)))
    return lines


def _found(one: Judged) -> str:
    """Verdict, and the numbers behind it."""
    numbers = ", ".join(dict.fromkeys(_number(comparison) for comparison in one.comparisons[:4]))
    rest = ", ..." if len(one.comparisons) > 4 else ""
    return f"{one.outcome.value}: {numbers}{rest}"


def _number(one: Comparison) -> str:
    return written(Interval(one.mean, one.half_width, one.count))


def _price(result: SearchResult) -> str:
    """What fails with the best settings, of what holds without them."""
    lost = [f"{one.where}: {one.published}" for one in result.price()]
    if not lost:
        return "Price: none; what holds as chosen holds here, too."
    return textwrap.fill("Price, what holds as chosen and not here: " + "; ".join(lost), 120)


def _line(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
