"""What a run measured besides verdicts: gains, metrics of experiments, circumstances, and what was not measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from reports.audit.gain_chart import gain_chart, gain_table, read_gains
from reports.audit.table import by_reason, when
from reports.figures.svg_chart import chart_svg
from reports.quantities import describe_number, format_count
from reports.wording import cell_name, experiment_name

if TYPE_CHECKING:
    from pepscope.results.audits import AuditMetrics, AuditRun, NotMeasured

#: Most rows of one table of metrics, and most characters of a metric that is not a table.
_MAX_ROWS = 60
_MAX_TEXT = 6000


def gains_section(metrics: Sequence[AuditMetrics]) -> str:
    """A figure for each application whose gain was measured."""
    figures = "".join(_gain(item) for item in metrics if read_gains(item.metrics))
    if not figures:
        return ""
    return (
        '<section aria-labelledby="gains-heading" class="gains"><h2 id="gains-heading">What the usual port gains</h2>'
        f"{figures}</section>"
    )


def _gain(item: AuditMetrics) -> str:
    gains, name = read_gains(item.metrics), cell_name(item.application, item.direction)
    title = f"Throughput gained by the usual port: {name}"
    open_ones = " Hollow squares have too few pairs for an interval." if any(gain.low is None for gain in gains) else ""
    drawn = chart_svg(gain_chart(gains, title))
    return (
        f'<figure><h3>{escape(name[:1].upper() + name[1:])}</h3><div class="wide">{drawn}</div>'
        "<figcaption>By how much the throughput from the application's usual port exceeds that from a free port, by "
        "medians over pairs of downloads made by turns, with 95 % bootstrap intervals. A gain is no proof of a split: "
        f"a queue that favours a port gives one, too.{open_ones}</figcaption>{gain_table(gains)}</figure>"
    )


def missing_section(run: AuditRun) -> str:
    """What could not run and why."""
    items, titles = run.not_measured, run.titles
    if not items:
        return ""
    rows = "".join(
        f'<tr><td data-label="what">{escape(_names(group, titles))}</td>'
        f'<td data-label="measurements" class="number">{format_count(sum(item.tasks for item in group))}</td>'
        f'<td data-label="how">{escape(group[0].status)}</td><td data-label="why">{escape(reason)}</td></tr>'
        for reason, group in by_reason(items).items()
    )
    return (
        '<section aria-labelledby="missing-heading"><h2 id="missing-heading">What was not measured</h2>'
        '<div class="wide"><table class="rows"><thead><tr><th scope="col">what</th><th scope="col" class="number">'
        'measurements</th><th scope="col">how</th><th scope="col">why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _names(group: Sequence[NotMeasured], titles: Mapping[str, str]) -> str:
    experiments = ", ".join(dict.fromkeys(experiment_name(item.experiment, titles) for item in group))
    cells = list(dict.fromkeys(cell_name(item.application, item.direction) for item in group))
    shown = "; ".join(cells[:4]) + (f" and {len(cells) - 4} more" if len(cells) > 4 else "")
    return f"{experiments} ({shown})"


def metrics_section(run: AuditRun) -> str:
    """Metrics of the experiments and circumstances of the run, each in a folded block."""
    parts = [
        _details(
            f"{experiment_name(item.experiment, run.titles)}: {cell_name(item.application, item.direction)}",
            item.metrics,
        )
        for item in run.metrics
    ]
    parts += [_details("circumstances of the run", run.circumstances)] if run.circumstances else []
    if not parts:
        return ""
    return (
        '<section aria-labelledby="metrics-heading"><h2 id="metrics-heading">Other measurements</h2>'
        f"{''.join(parts)}</section>"
    )


def _details(title: str, metrics: Mapping[str, Any]) -> str:
    body = "".join(_metric_parts(metrics))
    return f'<details class="facts"><summary>{escape(title)}</summary>{body}</details>'


def _metric_parts(metrics: Mapping[str, Any]) -> Iterator[str]:
    single = {
        name: value for name, value in metrics.items() if value is None or isinstance(value, bool | int | float | str)
    }
    if single:
        entries = "".join(
            f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
            for label, value in (described(name, value) for name, value in single.items())
        )
        yield f"<dl>{entries}</dl>"
    for name, value in metrics.items():
        if name in single or not value:
            continue
        if _is_table(value):
            yield f"<h4>{escape(name.replace('_', ' '))}</h4>{_table(value)}"
        else:
            text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
            cut = text[:_MAX_TEXT] + (" ..." if len(text) > _MAX_TEXT else "")
            yield f"<h4>{escape(name.replace('_', ' '))}</h4><pre>{escape(cut)}</pre>"


def described(name: str, value: float | int | str | bool | None) -> tuple[str, str]:
    """A label and a value with its unit; a moment as its day and time."""
    if name.endswith("_unix_ns"):
        label = name.removesuffix("_unix_ns").replace("_", " ")
        return label, when(value) if isinstance(value, int) else "not known"
    return describe_number(name, value)


def _is_table(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(
            isinstance(row, Mapping) and all(not isinstance(item, Mapping | list | tuple) for item in row.values())
            for row in value
        )
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    labels = {name: described(name, None)[0] for name in names}
    heads = "".join(f'<th scope="col">{escape(labels[name])}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(labels[name])}">{escape(described(name, row.get(name))[1])}</td>'
            for name in names
        )
        + "</tr>"
        for row in rows[:_MAX_ROWS]
    )
    more = f'<p class="limits">{format_count(len(rows) - _MAX_ROWS)} more rows.</p>' if len(rows) > _MAX_ROWS else ""
    table = f'<table class="rows"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table}</div>{more}'
