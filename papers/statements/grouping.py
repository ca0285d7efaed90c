"""Runs of a campaign as plain rows, and means over groups of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from papers.statements.comparing import gains_percent
from reference_sim.intervals import Interval, mean_interval

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = Mapping[str, Any]


def rows_of(runs: pd.DataFrame) -> list[Row]:
    """One mapping a run, in order."""
    return [{str(name): value for name, value in row.items()} for row in runs.to_dict("records")]


def grouped(rows: Sequence[Row], *fields: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of these fields, in the order in which they appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in fields), []).append(row)
    return groups


def chosen(rows: Sequence[Row], **fields: Any) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in fields.items())]


def values_of(rows: Sequence[Row], measure: str) -> list[float]:
    """One measure of each row; rows in which it does not apply are left out."""
    return [float(row[measure]) for row in rows if row[measure] is not None and row[measure] == row[measure]]


def mean_of(rows: Sequence[Row], measure: str) -> Interval:
    """Mean and interval of one measure."""
    return mean_interval(values_of(rows, measure))


def paired_gains(treated: Sequence[float], base: Sequence[float]) -> Interval:
    """Mean gain in percent, pair by pair, over the pairs in which the other one is above 0."""
    pairs = [(one, other) for one, other in zip(treated, base, strict=True) if other > 0.0]
    return gains_percent([one for one, _ in pairs], [other for _, other in pairs])


def ratio_gain(treated: Sequence[float], base: Sequence[float]) -> Interval:
    """Gain of the mean in percent, with the interval of a ratio of paired values (to first order).

    Where pairs differ in size by orders of magnitude, a mean of their single gains is ruled by the smallest.

    Raises ValueError for no pair, or a base whose sum is not above 0.
    """
    if not math.fsum(base) > 0.0:
        raise ValueError("a gain must be over at least one value")
    ratio = math.fsum(treated) / math.fsum(base)
    apart = mean_interval([one - ratio * other for one, other in zip(treated, base, strict=True)])
    scale = 100.0 * len(base) / math.fsum(base)
    return Interval(100.0 * (ratio - 1.0), None if apart.half_width is None else scale * apart.half_width, len(base))
