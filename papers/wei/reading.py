"""Reading Wei et al.'s campaigns: throughput of a cell of table II over its repeats, and the gain pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from papers.experiment import Measurements
from papers.statements.comparing import gains_percent
from papers.wei.experiments import SIZE, SIZES
from reference_sim.intervals import Interval, mean_interval

#: What the runs of a split point that begins with three segments downstream are called beside the others.
SLOW_START = "wei-split-slow-start"


def table_runs(measurements: Measurements) -> CampaignRuns:
    """Table II's runs, with those of a split point that begins with three segments downstream."""
    slower = measurements["wei-slow-start"].runs.assign(scenario=SLOW_START)
    return CampaignRuns(pd.concat([measurements["wei-table2"].runs, slower], ignore_index=True))


@dataclass(frozen=True, slots=True)
class CampaignRuns:
    """The runs of a campaign over `wei-regular` and `wei-split`."""

    runs: pd.DataFrame

    def values(self, scenario: str, variant: str, size: int, column: str = "throughput_bit_s") -> list[float]:
        """One value a repeat."""
        chosen = (self.runs["scenario"] == scenario) & (self.runs["variant"] == variant) & (self.runs[SIZE] == size)
        return [float(value) for value in self.runs[chosen].sort_values("repeat")[column]]

    def gain(self, variant: str, size: int, column: str = "throughput_bit_s", scenario: str = "wei-split") -> Interval:
        """Gain of Split-TCP over regular TCP in percent."""
        return gains_percent(
            self.values(scenario, variant, size, column), self.values("wei-regular", variant, size, column)
        )

    def throughput(self, scenario: str, variant: str, size: int) -> Interval:
        """In kbit/s."""
        return mean_interval([value / 1e3 for value in self.values(scenario, variant, size)])

    def gains(self, variant: str, scenario: str = "wei-split") -> dict[int, Interval]:
        """Gains by size, in order."""
        return {size: self.gain(variant, size, scenario=scenario) for size in SIZES}
