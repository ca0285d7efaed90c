"""Result of running a paper again: an outcome for each published statement, tables, charts, assumptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pepscope.results.charts import Chart

if TYPE_CHECKING:
    import pandas as pd


class StatementOutcome(StrEnum):
    """How the simulated result compares with the published one (`papers.statements.comparing` has the rule)."""

    #: The whole interval of ours lies inside what counts as the published value: equivalent to it.
    REPRODUCED = "reproduced"
    #: A part of the interval does: more seeds decide.
    UNDECIDED = "undecided: more seeds"
    #: None of it does, but the effect has the published direction.
    DIRECTION = "not reproduced, same direction"
    NOT = "not reproduced"
    #: It agrees, but cannot differ: it follows from a parameter that was set so. Not counted among the statements.
    BY_CONSTRUCTION = "by construction"
    #: No run of ours says anything on it.
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measured quantity beside the values that count as the published one."""

    quantity: str
    mean: float
    #: Of the 95 % interval; 0 for a number that is calculated, None for a single run.
    half_width: float | None
    #: Values behind the mean.
    count: int
    #: What counts as the published value; None for no bound.
    lowest: float | None
    highest: float | None
    outcome: StatementOutcome

    @property
    def is_condition(self) -> bool:
        """Whether it is true (1), false (0) or open (0.5) instead of a number."""
        return (self.lowest, self.highest, self.count) == (1.0, None, 1) and self.mean in (0.0, 0.5, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "quantity": self.quantity,
            "mean": self.mean,
            "half_width": self.half_width,
            "count": self.count,
            "accepted": [self.lowest, self.highest],
            "verdict": self.outcome.value,
        }


@dataclass(frozen=True, slots=True)
class OtherVerdict:
    """The outcome of a statement with another value of one open parameter; no name, the values of the reproduction."""

    parameter: str
    value: str
    outcome: StatementOutcome
    comparisons: tuple[Comparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "parameter": self.parameter,
            "value": self.value,
            "verdict": self.outcome.value,
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }


@dataclass(frozen=True, slots=True)
class Statement:
    """One published statement beside the simulated result."""

    #: Where the paper makes it: a section, a table, a figure, a slide.
    where: str
    #: The statement in our words, with its numbers.
    published: str
    #: The simulated result, with numbers, units and intervals; empty where nothing is measured.
    found: str
    outcome: StatementOutcome
    #: Cause of the difference, or what the result depends on. Never empty unless reproduced or undecided.
    reason: str = ""
    #: What counts as the published value, and where that comes from.
    tolerance: str = ""
    comparisons: tuple[Comparison, ...] = ()
    #: What other values of parameters that the paper leaves open make of it, as (parameter, effect).
    sensitivity: tuple[tuple[str, str], ...] = ()
    #: Outcomes with one open parameter changed at a time; the first is that of no change, from as many runs.
    elsewhere: tuple[OtherVerdict, ...] = ()

    def changes(self) -> dict[StatementOutcome, list[str]]:
        """Other outcomes than that without a change, with each parameter and the values that make them so."""
        found: dict[StatementOutcome, dict[str, list[str]]] = {}
        for one in self.elsewhere[1:]:
            if one.outcome is not self.elsewhere[0].outcome:
                found.setdefault(one.outcome, {}).setdefault(one.parameter, []).append(one.value)
        return {
            outcome: [f"{parameter} = {' or '.join(values)}" for parameter, values in by_parameter.items()]
            for outcome, by_parameter in found.items()
        }

    def sensitivity_in_words(self) -> str:
        """Values of open parameters that give another verdict; empty where none was tried."""
        if not self.elsewhere:
            return ""
        unchanged, *changed = self.elsewhere
        tried = f"{len(changed)} values of {len({one.parameter for one in changed})} parameters"
        words = [f"{outcome.value.capitalize()} with {'; '.join(values)}" for outcome, values in self.changes().items()]
        head = f"{unchanged.outcome.value.capitalize()} without a change in these runs. "
        rest = f"{'. '.join(words)} (of {tried})" if words else f"The same with {tried}"
        return rest if unchanged.outcome is self.outcome else head + rest

    def __post_init__(self) -> None:
        plain = (StatementOutcome.REPRODUCED, StatementOutcome.UNDECIDED)
        if self.outcome not in plain and not self.reason:
            raise ValueError(f"a statement that is {self.outcome} needs a reason: {self.published}")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "where": self.where,
            "published": self.published,
            "found": self.found,
            "tolerance": self.tolerance,
            "verdict": self.outcome.value,
            "reason": self.reason,
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "sensitivity": [{"parameter": name, "effect": effect} for name, effect in self.sensitivity],
            "other_values": [one.to_dict() for one in self.elsewhere],
        }


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the paper has it, ours and the published values side by side."""

    #: Of its file, without an ending.
    name: str
    title: str
    frame: pd.DataFrame
    #: What the columns are, with units.
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Assumption:
    """The value chosen for a parameter that a paper does not give, gives twice, or gives wrongly."""

    #: The parameter.
    subject: str
    #: What the paper gives for it.
    paper: str
    choice: str
    #: What it is derived from; never a published result.
    reason: str
    #: Effect of other values, with numbers; empty where there is no other value.
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a paper's experiments gave."""

    statements: tuple[Statement, ...]
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One paper, run again."""

    paper: str
    title: str
    source: str
    effort: str
    assessment: Assessment = field(repr=False)
    #: Runs of all its experiments.
    runs: int = 0
    #: How many of them this call made, the others being there already, and its time in seconds.
    ran: int = 0
    wall_s: float = 0.0

    def timing(self) -> str:
        """Time of this call, and how many runs were reused."""
        there = self.runs - self.ran
        return f"{self.wall_s:.0f} s" + (f" ({there:,} runs were there already)" if there else "")

    def counts(self) -> dict[str, int]:
        """Statements by outcome."""
        return {
            outcome.value: sum(statement.outcome is outcome for statement in self.assessment.statements)
            for outcome in StatementOutcome
        }

    @property
    def counted(self) -> int:
        """Statements that could have come out otherwise: all but those by construction."""
        return len(self.assessment.statements) - self.counts()[StatementOutcome.BY_CONSTRUCTION.value]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "paper": self.paper,
            "title": self.title,
            "source": self.source,
            "effort": self.effort,
            "runs": self.runs,
            "ran": self.ran,
            "wall_s": self.wall_s,
            "counts": self.counts(),
            "counted": self.counted,
            "statements": [statement.to_dict() for statement in self.assessment.statements],
            "choices": [
                {name: getattr(assumption, name) for name in ("subject", "paper", "choice", "reason", "effect")}
                for assumption in self.assessment.assumptions
            ],
            "tables": [table.name for table in self.assessment.tables],
            "figures": [chart.name for chart in self.assessment.charts],
        }
