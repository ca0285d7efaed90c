"""Calibration as text and picture: Brier scores, a reliability table, and a reliability diagram."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration.fit import FittedRow
from benchmarks.calibration.material import Flow
from benchmarks.intervals import wilson
from detector.weights import Hypothesis

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
    told = [flow for flow in flows if flow.is_split and flow.split >= 0.95 and flow.kind_shows]
    stored = Claims(
        "TCP proxy, given a split",
        tuple(flow.stored for flow in told),
        tuple(flow.truth is Hypothesis.STORE for flow in told),
    )
    return split, stored


def table(made: Claims) -> str:
    """The reliability table: what was said against how often it held, by bins, with Wilson's interval."""
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
    """A reliability diagram as SVG: one polyline of bins a set of claims, the diagonal is perfect calibration."""
    colours = ("#1b6ca8", "#c0392b", "#3a7d44", "#8e5ea2")
    size, margin = 360, 50
    width, height = size + 2 * margin + 180, size + 2 * margin
    middle = margin + size / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{margin}" y="{margin}" width="{size}" height="{size}" fill="none" stroke="#999"/>',
        f'<line x1="{margin}" y1="{margin + size}" x2="{margin + size}" y2="{margin}" stroke="#bbb"/>',
        f'<text x="{middle}" y="{height - 12}" text-anchor="middle">probability said</text>',
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">share that held</text>',
    ]
    for number, made in enumerate(sets):
        points = [(margin + x * size, margin + size - y * size) for x, y in _bins(made)]
        colour = colours[number % len(colours)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        parts.append(
            f'<text x="{margin + size + 12}" y="{margin + 16 + 18 * number}" fill="{colour}">{made.name} '
            f"({len(made.said)})</text>"
        )
    ticks = [
        f'<text x="{margin + value * size}" y="{margin + size + 16}" text-anchor="middle">{value:.0%}</text>'
        f'<text x="{margin - 6}" y="{margin + size - value * size + 4}" text-anchor="end">{value:.0%}</text>'
        for value in (0.0, 0.5, 1.0)
    ]
    return "\n".join([*parts, *ticks, "</svg>"]) + "\n"


def _bins(made: Claims) -> list[tuple[float, float]]:
    said, held = np.array(made.said), np.array(made.held, np.float64)
    points = []
    for low, high in itertools.pairwise(EDGES):
        inside = (said >= low) & ((said < high) | (high == EDGES[-1]))
        if inside.any():
            points.append((float(said[inside].mean()), float(held[inside].mean())))
    return points
