"""Charts as SVG that stands alone: points with their intervals, published points hollow beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from pepscope.results.charts import Chart, Line

WIDTH, HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 52
_LEGEND_ROW = 18
_LABEL_ROW = 15  # of a tick's label of several lines
_LETTER = 6.6  # width of one in the legend, at most
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#94447c", "#b48a00", "#3a93c4", "#5b6472", "#8a6d3b")
_DARK = ("#56b4e9", "#ff8a4c", "#2fc59b", "#dd94c6", "#f0d050", "#9fd3f5", "#aab3c0", "#cdb083")


def chart_svg(chart: Chart) -> str:
    """The chart as one SVG element with its style inside; all text is escaped."""
    rows = _legend_rows(chart.lines)
    top = _TOP + _LEGEND_ROW * len(rows)
    bottom = _BOTTOM + _LABEL_ROW * max((chart.x_label(tick).count("\n") for tick in chart.x_ticks), default=0)
    height = HEIGHT + _LEGEND_ROW * (len(rows) - 1) + bottom - _BOTTOM
    frame = _Frame(chart, top, height, height - bottom)
    body = "".join((*_legend(rows), *frame.axes(), *(frame.line(line, i) for i, line in enumerate(chart.lines))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'class="chart" role="img" aria-label="{escape(chart.title)}"><style>{_style()}</style>{body}</svg>'
    )


def _style() -> str:
    def rules(colours: Sequence[str]) -> str:
        return "".join(
            f".chart .c{index}{{stroke:{colour}}}.chart .f{index}{{fill:{colour}}}"
            for index, colour in enumerate(colours)
        )

    return (
        ".chart{font:12px system-ui,sans-serif;max-width:100%;height:auto}.chart text{fill:#1c2430}"
        ".chart .rule{stroke:#8884;stroke-width:1}.chart path{fill:none;stroke-width:1.8}"
        ".chart .hollow{fill:none;stroke-width:1.8}.chart .published{stroke-dasharray:3 4;stroke-width:1.2}"
        f"{rules(_COLOURS)}"
        f"@media (prefers-color-scheme:dark){{.chart text{{fill:#e6e9ee}}{rules(_DARK)}}}"
    )


def _legend_rows(lines: Sequence[Line]) -> list[list[tuple[int, Line, float]]]:
    """Entries by row, each with its place: number, line, horizontal position."""
    rows: list[list[tuple[int, Line, float]]] = [[]]
    x = float(_LEFT)
    for index, line in enumerate(lines):
        width = 34 + _LETTER * len(line.name)
        if rows[-1] and x + width > WIDTH - _RIGHT:
            rows.append([])
            x = float(_LEFT)
        rows[-1].append((index, line, x))
        x += width
    return rows


def _legend(rows: Sequence[Sequence[tuple[int, Line, float]]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        y = _TOP + _LEGEND_ROW * number
        for index, line, x in row:
            yield _symbol(x + 8, y, index, line)
            if line.has_line and not line.is_published:
                yield f'<path class="c{index % 8}" d="M{x:.1f} {y}h16"/>'
            yield f'<text x="{x + 22:.1f}" y="{y + 4}">{escape(line.name)}</text>'


def _symbol(x: float, y: float, index: int, line: Line) -> str:
    if line.is_dense:
        return ""
    if line.is_published:
        return f'<rect class="hollow c{index % 8}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    return f'<circle class="f{index % 8}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'


class _Frame:
    """Where values go."""

    def __init__(self, chart: Chart, top: int, height: int, base: int) -> None:
        self._chart = chart
        self._top, self._base = top, base
        self._height = height
        xs = [x for line in chart.lines for x in line.x if _is_drawn(x, chart.is_x_logarithmic)]
        ys = [y for line in chart.lines for y in _extent(line) if _is_drawn(y, chart.is_y_logarithmic)]
        if chart.from_zero and not chart.is_y_logarithmic:
            ys.append(0.0)
        round_ticks, self._x_low, self._x_high = _scale(xs, chart.is_x_logarithmic, tight=True)
        self._x_ticks = chart.x_ticks or round_ticks
        self._y_ticks, self._y_low, self._y_high = _scale(ys, chart.is_y_logarithmic, tight=False)

    def x(self, value: float) -> float:
        share = _share(value, self._x_low, self._x_high, self._chart.is_x_logarithmic)
        return _LEFT + 10 + share * (WIDTH - _LEFT - _RIGHT - 20)

    def y(self, value: float) -> float:
        return self._base - _share(value, self._y_low, self._y_high, self._chart.is_y_logarithmic) * (
            self._base - self._top
        )

    def axes(self) -> Iterator[str]:
        for tick in self._y_ticks:
            y = self.y(tick)
            yield f'<path class="rule" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(self._chart.y_label(tick))}</text>'
        for tick in self._x_ticks:
            x = self.x(tick)
            yield f'<path class="rule" d="M{x:.1f} {self._base}v5"/>'
            for row, label in enumerate(self._chart.x_label(tick).split("\n")):
                y = self._base + 18 + _LABEL_ROW * row
                yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(label)}</text>'
        middle = (self._top + self._base) / 2
        yield (
            f'<text x="{(WIDTH + _LEFT) / 2:.0f}" y="{self._height - 10}" text-anchor="middle">'
            f"{escape(self._chart.x_title)}</text>"
            f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self._chart.y_title)}</text>"
        )

    def line(self, line: Line, index: int) -> str:
        chart = self._chart
        points = [
            (self.x(x), self.y(y), number)
            for number, (x, y) in enumerate(zip(line.x, line.y, strict=True))
            if _is_drawn(x, chart.is_x_logarithmic) and _is_drawn(y, chart.is_y_logarithmic)
        ]
        if not points:
            return ""
        look = f"c{index % 8}" + (" published" if line.is_published else "")
        joined = " L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
        parts = [f'<path class="{look}" d="M{joined}"/>'] if line.has_line else []
        for x, y, number in points:
            parts.append(_symbol(x, y, index, line))
            interval = line.interval_at(number)
            if interval is not None:
                low, high = interval
                if chart.is_y_logarithmic:
                    low = max(low, self._y_low)
                parts.append(f'<path class="c{index % 8}" d="M{x:.1f} {self.y(low):.1f}V{self.y(high):.1f}"/>')
        return "".join(parts)


def _extent(line: Line) -> Iterator[float]:
    for number, y in enumerate(line.y):
        yield from line.interval_at(number) or (y, y)


def _is_drawn(value: float, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0.0 or not logarithmic)


def _share(value: float, low: float, high: float, logarithmic: bool) -> float:
    if logarithmic:
        return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return (value - low) / (high - low)


def _scale(values: Sequence[float], logarithmic: bool, *, tight: bool) -> tuple[list[float], float, float]:
    """Ticks and both ends."""
    if not values:
        return [0.0, 1.0], 0.0, 1.0
    low, high = min(values), max(values)
    if logarithmic:
        low, high = (low, high) if high > low else (low / 2, high * 2)
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if len(decades) <= 4 else (1,)
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001], low, high
    if high == low:
        low, high = low - 0.5, high + 0.5
    step = _step((high - low) / 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if not tight:
        low, high = first * step, last * step
    ticks = [number * step for number in range(first, last + 1)]
    return [tick for tick in ticks if low - 1e-9 * step <= tick <= high + 1e-9 * step], low, high


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
