"""Open parameters of a paper, and the experiments that settings of them are judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from papers.experiment import Experiment
from papers.statements.table import StatementError
from reference_sim.campaign import CampaignResult

Value: TypeAlias = str | int | float
#: A value for each open parameter of a search, by name.
Settings: TypeAlias = Mapping[str, Value]
#: Results of a search's experiments by name.
Results: TypeAlias = Mapping[str, CampaignResult]

#: How a search calls the one setting that it gives a figure which the reproduction shows under several.
ONE_SETTING = "one setting"
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class OpenParameter:
    """A parameter that a paper does not give, gives twice or gives wrongly, and the values that are tried for it."""

    #: With its unit.
    name: str
    #: The value of the reproduction.
    chosen: Value
    #: Tried one at a time for the sensitivity of verdicts; without a range also all that the search tries.
    others: tuple[Value, ...]
    #: What the paper says, and where values or range come from.
    source: str
    #: Lowest and highest value that the search tries; whole numbers where both are.
    range: tuple[float, float] | None = None
    is_logarithmic: bool = False

    def __post_init__(self) -> None:
        for value in (self.chosen, *self.others):
            if not self.admits(value):
                raise ValueError(f"{self.name} must be within its range, got {value}")

    @property
    def is_whole(self) -> bool:
        """Whether the range is one of whole numbers."""
        return self.range is not None and all(isinstance(end, int) for end in self.range)

    def admits(self, value: Value) -> bool:
        """Whether the search may try this value."""
        if self.range is None:
            return value in (self.chosen, *self.others)
        return not isinstance(value, str) and self.range[0] <= value <= self.range[1]

    def in_words(self) -> str:
        """The values that are tried."""
        if self.range is None:
            return ", ".join(f"{value}" for value in (self.chosen, *self.others))
        low, high = self.range
        return f"{low:g} to {high:g}" + (", logarithmic" if self.is_logarithmic else "")


def rounded(value: float) -> float:
    """Three significant digits: settings that a reader can repeat."""
    return 0.0 if value == 0.0 else round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))


def _none(_settings: Settings, _repeats: int, _seed: int) -> Sequence[Experiment]:
    return ()


@dataclass(frozen=True, slots=True)
class Search:
    """One inverse problem: a paper may have several that share no parameter."""

    #: As the command and files call it.
    name: str
    title: str
    #: The table whose statements are judged; those that `quantities` does not measure are left out.
    statements: Path
    parameters: tuple[OpenParameter, ...]
    #: Where the search begins, beside the settings of the reproduction, with what suggests each.
    leads: Mapping[str, Settings]
    #: Campaigns under some settings: settings, repeats, first seed.
    experiments: Callable[[Settings, int, int], Sequence[Experiment]]
    #: Quantities that the statements compare, from these campaigns.
    quantities: Callable[[Settings, Results], Mapping[str, Any]]
    #: Repeats of a trial, of the choice among the best trials, and of the final score.
    repeats: tuple[int, int, int]
    #: Repeats for the sensitivity of verdicts.
    sensitivity_repeats: int
    #: As `experiments`, of further statements: for the sensitivity of verdicts, trials have no time for them.
    further_experiments: Callable[[Settings, int, int], Sequence[Experiment]] = _none

    @property
    def chosen(self) -> dict[str, Value]:
        """The settings of the reproduction."""
        return {parameter.name: parameter.chosen for parameter in self.parameters}

    def starts(self) -> dict[str, dict[str, Value]]:
        """Settings that are tried first, by what suggests them: a lead changes what it names.

        Raises StatementError for a lead that names no parameter, or leaves its range.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        found = {"as chosen": self.chosen}
        for words, changes in self.leads.items():
            for name, value in changes.items():
                if name not in known or not known[name].admits(value):
                    raise StatementError(f"a lead of {self.name} must name a parameter and a value of it, got {name}")
            found[words] = {**self.chosen, **changes}
        return found

    def one_at_a_time(self) -> list[tuple[OpenParameter, Value, dict[str, Value]]]:
        """Each other value of each parameter, with the settings that differ from the reproduction's in it alone."""
        return [
            (parameter, value, {**self.chosen, parameter.name: value})
            for parameter in self.parameters
            for value in parameter.others
        ]
