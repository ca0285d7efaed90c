"""Reading Wei et al.'s campaigns: throughput of a cell of table II over its repeats, and the gain pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from reference_sim.intervals import Interval, mean_interval
from reference_sim.reproduction.judging import gains_percent
from reference_sim.reproduction.wei.experiments import SIZE, SIZES


@dataclass(frozen=True, slots=True)
class Cells:
    """The runs of a campaign over `wei-regular` and `wei-split`."""

    runs: pd.DataFrame

    def values(self, scenario: str, variant: str, size: int, column: str = "throughput_bit_s") -> list[float]:
        """One value a repeat."""
        chosen = (self.runs["scenario"] == scenario) & (self.runs["variant"] == variant) & (self.runs[SIZE] == size)
        return [float(value) for value in self.runs[chosen].sort_values("repeat")[column]]

    def gain(self, variant: str, size: int, column: str = "throughput_bit_s") -> Interval:
        """Gain of Split-TCP over regular TCP in percent."""
        return gains_percent(
            self.values("wei-split", variant, size, column), self.values("wei-regular", variant, size, column)
        )

    def throughput(self, scenario: str, variant: str, size: int) -> Interval:
        """In kbit/s."""
        return mean_interval([value / 1e3 for value in self.values(scenario, variant, size)])

    def gains(self, variant: str) -> dict[int, Interval]:
        """Gains by size, in order."""
        return {size: self.gain(variant, size) for size in SIZES}
