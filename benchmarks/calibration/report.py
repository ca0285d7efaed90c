"""Calibration as text and picture: Brier scores, a reliability table, and a reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.calibration.fit import FittedRow
from benchmarks.calibration.material import Flow
from detector.corpora.validation.calibration import Claims
from pepscope.results.charts import Chart, Line
from pepscope.results.hypotheses import Hypothesis
from reports.figures.svg_chart import chart_svg


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
    for each in made.bins():
        begin, end = each.held.interval
        lines.append(
            f"| {each.low:.0%} to {each.high:.0%} | {each.held.of} | {each.mean_said:.1%} | {each.held.value:.1%} | "
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
        bins = made.bins()
        lines.append(
            Line(f"{made.name} ({len(made.said)})", [b.mean_said for b in bins], [b.held.value or 0.0 for b in bins])
        )
    return chart_svg(
        Chart(
            "calibration", "Reliability of probabilities", "probability said", "share that held", tuple(lines),
            x_label="{:.0%}".format, y_label="{:.0%}".format,
        )
    )  # fmt: skip
