"""What a paper declares: experiments as campaigns, and how their measurements are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from papers.results import Assessment
from reference_sim.campaign import CampaignResult, MeasureRun
from reference_sim.library import campaign_path, load_scenario
from reference_sim.measures import measure
from reference_sim.sweep import Campaign, Variant

if TYPE_CHECKING:
    from papers.search.space import Search


class Effort(StrEnum):
    """Number of repeats: more make the intervals smaller; the points change only where a paper says so."""

    #: For tests: the fewest repeats that still show a direction.
    REDUCED = "reduced"
    QUICK = "quick"
    FULL = "full"

    def of(self, reduced: int, quick: int, full: int) -> int:
        """The number that belongs to this effort."""
        return {Effort.REDUCED: reduced, Effort.QUICK: quick, Effort.FULL: full}[self]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One campaign of a paper."""

    campaign: Campaign
    #: Stored numbers of each run; a function of a module, since other processes call it.
    measure: MeasureRun = measure

    @property
    def name(self) -> str:
        """That of its campaign."""
        return self.campaign.name


@dataclass(frozen=True, slots=True)
class Measurements:
    """What all experiments of a paper gave."""

    effort: Effort
    results: Mapping[str, CampaignResult]

    def __getitem__(self, experiment: str) -> CampaignResult:
        return self.results[experiment]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and how to run it again."""

    #: As the command calls it.
    name: str
    title: str
    #: Authors, venue, year.
    source: str
    experiments: Callable[[Effort], Sequence[Experiment]]
    assess: Callable[[Measurements], Assessment]
    #: What the paper leaves open, as inverse problems.
    searches: tuple[Search, ...] = ()


def sweep(
    name: str,
    scenarios: Sequence[str],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    repeats: int = 1,
    seed: int = 1,
    description: str = "",
) -> Campaign:
    """A campaign over named scenarios: every combination of scenario, variant and grid, `repeats` seeds each.

    Raises ScenarioError, OSError.
    """
    return Campaign(
        name=name,
        description=description,
        scenarios={scenario: load_scenario(scenario) for scenario in scenarios},
        variants=tuple(Variant(label, values) for label, values in (variants or {"": {}}).items()),
        grid={path: tuple(values) for path, values in (grid or {}).items()},
        distributions={},
        draws=1,
        repeats=repeats,
        seed=seed,
        captures=False,
    )


def shipped(name: str, *, repeats: int, grid: Mapping[str, Sequence[Any]] | None = None) -> Campaign:
    """A campaign that comes with pepscope, with so many repeats and, where given, other values of its grid.

    Raises ScenarioError, OSError.
    """
    campaign = Campaign.from_toml(campaign_path(name))
    changed = {path: tuple(values) for path, values in (grid or {}).items()}
    return replace(campaign, repeats=repeats, grid={**campaign.grid, **changed})
