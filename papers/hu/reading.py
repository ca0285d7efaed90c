"""Reading Hu's campaigns: throughput of a point over its repeats, and gains pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from papers.hu.settings import RATE, SIZE
from pepscope.results.charts import Line
from reference_sim.intervals import Interval, mean_interval


@dataclass(frozen=True, slots=True)
class Files:
    """The runs of one campaign."""

    runs: pd.DataFrame

    def values(self, column: str = "throughput_bit_s", **where: Any) -> list[float]:
        """One value a repeat; `where` may name `variant`, `rate` (bit/s), `size` (bytes)."""
        return [float(value) for value in self._chosen(where)[column]]

    def only(self, field: str, value: float) -> Files:
        """The runs in which a field has this value."""
        return Files(self.runs[self.runs[field] == value])

    def mean(self, column: str = "throughput_bit_s", **where: Any) -> Interval:
        """Interval over the repeats."""
        return mean_interval(self.values(column, **where))

    def gains(self, treated: str, base: str = "regular", **where: Any) -> list[float]:
        """Gain of one variant's throughput over another's in percent, repeat by repeat."""
        pairs = zip(self.values(variant=treated, **where), self.values(variant=base, **where), strict=True)
        return [100.0 * (one / other - 1.0) for one, other in pairs]

    def line(self, name: str, along: str, column: str = "throughput_bit_s", scale: float = 1e-3, **where: Any) -> Line:
        """Means along a field, with their intervals; points without a finished run are left out."""
        frame = self._chosen(where).dropna(subset=[column])
        points = [
            (x, mean_interval(frame[frame[along] == x][column].tolist()))
            for x in sorted(float(value) for value in frame[along].unique())
        ]
        return Line(
            name,
            [x for x, _ in points],
            [scale * interval.mean for _, interval in points],
            [None if interval.half_width is None else scale * interval.half_width for _, interval in points],
        )

    def _chosen(self, where: Mapping[str, Any]) -> pd.DataFrame:
        names = {"rate": RATE, "size": SIZE}
        frame = self.runs
        for name, value in where.items():
            frame = frame[frame[names.get(name, name)] == value]
        return frame.sort_values("repeat")


def gain_line(name: str, files: Files, along: str, points: list[float], treated: str, **where: Any) -> Line:
    """Mean gains in percent along a field."""
    found = [mean_interval(files.gains(treated, **{**where, along: point})) for point in points]
    return Line(name, points, [interval.mean for interval in found], [interval.half_width for interval in found])
