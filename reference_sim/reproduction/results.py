"""What a reproduction finds: tables, charts, choices, and a verdict for each published statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class Verdict(StrEnum):
    """How what was found stands to what was published."""

    #: The published number lies inside the interval of ours, or the published order or bound holds beyond the interval.
    REPRODUCED = "reproduced"
    #: The effect goes the way the paper says, but the number lies outside the interval, or the interval spans none.
    DIRECTION = "same direction only"
    NOT = "not reproduced"


@dataclass(frozen=True, slots=True)
class Statement:
    """One published statement, held against what was found."""

    #: Where the paper makes it: a section, a table, a figure, a slide.
    where: str
    #: What the paper says, in our words with its numbers.
    published: str
    #: What was found, with numbers, units and intervals.
    found: str
    verdict: Verdict
    #: Why it differs; what makes it hold where that is not plain. Never empty unless reproduced.
    reason: str = ""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.REPRODUCED and not self.reason:
            raise ValueError(f"a statement that is {self.verdict} needs a reason: {self.published}")


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
class Line:
    """Points of a chart; `half_width` are the confidence intervals, `is_published` draws hollow symbols."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    half_width: Sequence[float | None] = ()
    is_published: bool = False
    #: Points of a series over time: drawn without symbols.
    is_dense: bool = False
    #: Whether points are joined.
    has_line: bool = True


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: what the paper drew, from our runs, published points beside them."""

    #: Of its file, without an ending.
    name: str
    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    caption: str = ""
    is_x_logarithmic: bool = False
    is_y_logarithmic: bool = False
    #: Whether the vertical axis must show zero.
    from_zero: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter about which a paper is silent, or wrong."""

    #: What is chosen.
    subject: str
    #: What the paper says of it: nothing, two things, or something that cannot be.
    paper: str
    choice: str
    #: What it is derived from; never a published result.
    reason: str
    #: What other values do, with numbers; empty where nothing else could be chosen.
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """What a paper's experiments say."""

    statements: tuple[Statement, ...]
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One paper, run again."""

    paper: str
    title: str
    source: str
    effort: str
    story: Story = field(repr=False)
    #: Runs of all its experiments.
    runs: int = 0
    #: How many of them this call made, the others being there already, and its time in seconds.
    ran: int = 0
    wall_s: float = 0.0

    def timing(self) -> str:
        """What took how long."""
        there = self.runs - self.ran
        return f"{self.wall_s:.0f} s" + (f" ({there:,} runs were there already)" if there else "")

    def counts(self) -> dict[str, int]:
        """Statements by verdict."""
        return {
            verdict.value: sum(statement.verdict is verdict for statement in self.story.statements)
            for verdict in Verdict
        }

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
            "statements": [
                {
                    "where": statement.where,
                    "published": statement.published,
                    "found": statement.found,
                    "verdict": statement.verdict.value,
                    "reason": statement.reason,
                }
                for statement in self.story.statements
            ],
            "choices": [
                {name: getattr(choice, name) for name in ("subject", "paper", "choice", "reason", "effect")}
                for choice in self.story.choices
            ],
            "tables": [table.name for table in self.story.tables],
            "figures": [chart.name for chart in self.story.charts],
        }
