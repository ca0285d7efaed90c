"""A line chart as data: what is drawn where. `reports.figures.svg_chart` draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


def plain_number(value: float) -> str:
    """A tick's label: six digits at most, with a true minus sign."""
    return f"{value:,.6g}".replace("-", "\u2212")


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
    #: Both ends of each interval, where it is not symmetric.
    interval: Sequence[tuple[float, float] | None] = ()

    def interval_at(self, number: int) -> tuple[float, float] | None:
        """Both ends of one point's interval; None where it has none."""
        if self.interval:
            return self.interval[number]
        half = self.half_width[number] if self.half_width else None
        return (self.y[number] - half, self.y[number] + half) if half else None


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its axes and lines."""

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
    #: Values that the horizontal axis labels, instead of round ones.
    x_ticks: Sequence[float] = ()
    #: Labels of `x_ticks` may have several lines.
    x_label: Callable[[float], str] = plain_number
    y_label: Callable[[float], str] = plain_number
