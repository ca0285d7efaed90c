"""The page that sets simulated and emulated runs of scenarios side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pepscope.whole_file import write_output
from reports.document import STILL_CONTENT_POLICY, html_document
from reports.errors import cannot_write

if TYPE_CHECKING:
    from reference_sim.live_path import Comparison, Measures

_WIDTH, _HEIGHT, _MARGIN = 640, 280, 48
_POINTS = 200


def write_comparison(comparisons: Sequence[Comparison], path: str | Path) -> None:
    """Write one self-contained HTML file to `path`."""
    try:
        write_output(path, page_text(comparisons))
    except OSError as error:
        raise cannot_write(path, error) from error


def page_text(comparisons: Sequence[Comparison]) -> str:
    """The page as text; what comes from scenarios is escaped."""
    within = sum(comparison.is_within_bounds for comparison in comparisons)
    headline = f"{within} of {len(comparisons)} scenarios run virtually as they run live"
    sections = "\n".join(_section(comparison) for comparison in comparisons)
    body = (
        f'<header>\n<p class="brand">pepscope <span>virtual against live</span></p>\n<h1>{headline}</h1>\n</header>\n'
        f"<main>\n{sections}\n</main>\n"
    )
    return html_document(
        "pepscope: virtual against live",
        body,
        styles=("page.css", "comparison.css"),
        policy=STILL_CONTENT_POLICY,
    )


def _section(comparison: Comparison) -> str:
    rows = "".join(
        f'<tr><td>{escape(row.name)}, {escape(row.unit)}</td><td class="number">{row.virtual:,.3f}</td>'
        f'<td class="number">{row.live:,.3f}</td><td>{escape(row.bound)}</td>'
        f'<td class="{"within" if row.is_within else "outside"}">{"within" if row.is_within else "outside"}</td></tr>'
        for row in comparison.rows()
    )
    return (
        f"<section>\n<h2>{escape(comparison.scenario)}</h2>\n<p>{escape(comparison.description)}</p>\n"
        f"<p>{escape(comparison.controls)}; 99 of 100 live packets left at most "
        f"{comparison.lateness_s * 1e6:,.0f} µs late.</p>\n"
        '<div class="scroll"><table><thead><tr><th scope="col">quantity</th><th scope="col" class="number">virtual</th>'
        '<th scope="col" class="number">live</th><th scope="col">may differ by</th><th scope="col">it is</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>\n{_plot(comparison)}\n</section>"
    )


def _plot(comparison: Comparison) -> str:
    """Round-trip times of both as distribution functions."""
    both = [measures.round_trip_times_s for measures in (comparison.virtual, comparison.live)]
    if not all(len(times) for times in both):
        return "<p>One of them has no round trips to draw.</p>"
    low, high = min(float(times.min()) for times in both), max(float(np.quantile(times, 0.999)) for times in both)
    high = max(high, low + 1e-6)
    body = "".join(
        f'<path class="{name}" d="{_curve(measures, low, high)}"><title>{name}</title></path>'
        for name, measures in (("virtual", comparison.virtual), ("live", comparison.live))
    )
    return (
        f'<figure class="plot"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="distribution of round-trip times">{"".join(_axes(low, high))}{body}</svg>'
        "<figcaption>Round-trip times: share of them (vertical) that are at most so long (horizontal, ms); "
        "virtual drawn through, live dashed.</figcaption></figure>"
    )


def _axes(low: float, high: float) -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _vertical(share)
        yield f'<line x1="{_MARGIN}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{share:g}</text>'
    for step in range(5):
        time_s = low + (high - low) * step / 4
        x = _horizontal(time_s, low, high)
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{time_s * 1e3:,.1f}</text>'


def _curve(measures: Measures, low: float, high: float) -> str:
    shares = np.linspace(0.0, 0.999, _POINTS)
    times = np.quantile(measures.round_trip_times_s, shares)
    places = (
        f"{_horizontal(float(time_s), low, high):.1f},{_vertical(float(share)):.1f}"
        for time_s, share in zip(times, shares, strict=True)
    )
    return "M" + " L".join(places)


def _horizontal(time_s: float, low: float, high: float) -> float:
    return _MARGIN + (min(time_s, high) - low) / (high - low) * (_WIDTH - _MARGIN - 40)


def _vertical(share: float) -> float:
    return 12 + (1 - share) * (_HEIGHT - 48)
