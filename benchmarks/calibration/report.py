"""Calibration as text and picture: Brier scores, a reliability table, and a reliability diagram."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration.fit import FittedRow
from benchmarks.calibration.material import Flow
from benchmarks.intervals import wilson
from pepscope.results.charts import Chart, Line
from pepscope.results.hypotheses import Hypothesis
from reports.figures.svg_chart import chart_svg

#: Edges of the bins of a reliability table; verdicts need 0.05 or 0.95.
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Claims:
    """Probabilities that something holds, and whether it did."""

    name: str
    said: tuple[float, ...]
    held: tuple[bool, ...]

    @property
    def brier(self) -> float:
        """Mean squared difference of probability and outcome (Brier 1950): 0 is perfect, 0.25 a coin's."""
        return float(np.mean((np.array(self.said) - np.array(self.held)) ** 2)) if self.said else float("nan")


def claims(flows: Sequence[Flow]) -> tuple[Claims, Claims]:
    """Of a split, over all flows; of a TCP proxy, over flows that are split, known so, and show which."""
    split = Claims("split", tuple(f.split for f in flows), tuple(f.is_split for f in flows))
    reported = [flow for flow in flows if flow.is_split and flow.split >= 0.95 and flow.kind_shows]
    stored = Claims(
        "TCP proxy, given a split",
        tuple(flow.stored for flow in reported),
        tuple(flow.truth is Hypothesis.STORE for flow in reported),
    )
    return split, stored


def table(made: Claims) -> str:
    """The reliability table: predicted probability against the share that was right, in bins, with Wilson intervals."""
    lines = ["| said | flows | mean said | held | 95 % interval |", "|---|---:|---:|---:|---:|"]
    said, held = np.array(made.said), np.array(made.held, np.float64)
    for low, high in itertools.pairwise(EDGES):
        inside = (said >= low) & ((said < high) | (high == EDGES[-1]))
        count = int(inside.sum())
        if count:
            share = float(held[inside].mean())
            begin, end = wilson(int(held[inside].sum()), count)
            lines.append(
                f"| {low:.0%} to {high:.0%} | {count} | {said[inside].mean():.1%} | {share:.1%} | "
                f"{begin:.1%} to {end:.1%} |"
            )
    return "\n".join(lines)


def fitted_table(rows: Sequence[FittedRow]) -> str:
    """What the fit would change: counts by truth, numbers as written, numbers as fitted."""
    head = " | ".join(each.name for each in Hypothesis)
    lines = [f"| finding | seen under {head} | written | fitted |", "|---|" + "---:|" * 4 + "---|---|"]
    for row in rows:
        seen = " | ".join(str(row.seen.get(each, 0)) for each in Hypothesis)
        numbers = [" ".join(f"{value:.1f}" for value in values) for values in (row.written, row.fitted)]
        lines.append(f"| `{row.finding}` | {seen} | {numbers[0]} | {numbers[1]} |")
    return "\n".join(lines)


def diagram(sets: Sequence[Claims]) -> str:
    """A reliability diagram as SVG: one line of bins a set of claims, the diagonal is perfect calibration."""
    lines = [Line("said = held", (0.0, 1.0), (0.0, 1.0), is_dense=True)]
    for made in sets:
        bins = _bins(made)
        lines.append(Line(f"{made.name} ({len(made.said)})", [x for x, _ in bins], [y for _, y in bins]))
    return chart_svg(
        Chart(
            "calibration", "Reliability of probabilities", "probability said", "share that held", tuple(lines),
            x_label="{:.0%}".format, y_label="{:.0%}".format,
        )
    )  # fmt: skip


def _bins(made: Claims) -> list[tuple[float, float]]:
    said, held = np.array(made.said), np.array(made.held, np.float64)
    points = []
    for low, high in itertools.pairwise(EDGES):
        inside = (said >= low) & ((said < high) | (high == EDGES[-1]))
        if inside.any():
            points.append((float(said[inside].mean()), float(held[inside].mean())))
    return points
