"""The page of a paper run again: statements with outcomes, figures beside published values, tables, assumptions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pepscope.whole_file import write_output, write_whole
from reports.document import STILL_CONTENT_POLICY, asset, fill, html_document
from reports.errors import cannot_write
from reports.figures.svg_chart import chart_svg
from reports.quantities import format_count

if TYPE_CHECKING:
    from papers.results import Assumption, Reproduction, Statement, Table
    from pepscope.results.charts import Chart

_LOOKS = {
    "reproduced": "reproduced",
    "undecided: more seeds": "undecided",
    "not reproduced, same direction": "same",
    "not reproduced": "not",
    "by construction": "aside",
    "not measured": "aside",
}

#: Rows of a table on the page; its file has all.
MAX_ROWS = 200
#: Tables with more rows than this scroll.
SHOWN_ROWS = 40


def write_reproduction_page(result: Reproduction, path: str | Path) -> None:
    """Write `result` as one self-contained HTML file to `path`. Raises ReportError."""
    try:
        write_output(path, reproduction_page_text(result))
    except OSError as error:
        raise cannot_write(path, error) from error


def write_figures(result: Reproduction, directory: str | Path) -> None:
    """Write each figure of `result` as an SVG file into `directory`. Raises ReportError."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        for chart in result.assessment.charts:
            write_whole(Path(directory, f"{chart.name}.svg"), chart_svg(chart) + "\n")
    except OSError as error:
        raise cannot_write(directory, error) from error


def reproduction_page_text(result: Reproduction) -> str:
    """The page as text; everything from outside is escaped."""
    assessment, counts = result.assessment, result.counts()
    body = fill(
        asset("reproduction.html"),
        {
            "paper": escape(result.paper),
            "headline": escape(_headline(result)),
            "title": escape(result.title),
            "source": escape(result.source),
            "facts": "".join(_facts(result, counts)),
            "statements": "".join(_statement(statement) for statement in assessment.statements),
            "figures": "".join(_figure(chart) for chart in assessment.charts),
            "tables": "".join(_table(table) for table in assessment.tables),
            "choices": "".join(map(_assumption, assessment.assumptions)) or "<li>Nowhere.</li>",
        },
    )
    return html_document(
        f"pepscope reproduction: {escape(result.paper)}",
        body,
        styles=("page.css", "reproduction.css"),
        policy=STILL_CONTENT_POLICY,
    )


def _headline(result: Reproduction) -> str:
    reproduced = format_count(result.counts()["reproduced"])
    return f"{reproduced} of {format_count(result.counted)} published statements are reproduced."


def _facts(result: Reproduction, counts: Mapping[str, int]) -> Iterator[str]:
    for verdict, count in counts.items():
        yield f"<li>{escape(verdict)} <b>{format_count(count)}</b></li>"
    yield f"<li>runs <b>{format_count(result.runs)}</b> ({escape(result.effort)})</li>"
    yield f"<li>took <b>{escape(result.timing())}</b></li>"


def _statement(statement: Statement) -> str:
    rows = [
        ("published", statement.published),
        ("found", statement.found),
        ("accepted", statement.tolerance),
        ("reason", statement.reason),
        *(("depends on", f"{name}: {effect}") for name, effect in statement.sensitivity),
        ("with other values", statement.sensitivity_in_words()),
    ]
    return _card(_LOOKS[statement.outcome.value], statement.outcome.value, statement.where, rows)


def _assumption(assumption: Assumption) -> str:
    rows = [(name, getattr(assumption, name)) for name in ("paper", "choice", "reason", "effect")]
    return _card("choice", "", assumption.subject, rows)


def _card(look: str, mark: str, title: str, rows: list[tuple[str, str]]) -> str:
    said = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in rows if text)
    marked = f"<span>{escape(mark)}</span>" if mark else ""
    return f'<li class="statement {look}"><h3>{marked}{escape(title)}</h3><dl>{said}</dl></li>'


def _figure(chart: Chart) -> str:
    return (
        f"<figure><h4>{escape(chart.title)}</h4>{chart_svg(chart)}"
        f"<figcaption>{escape(chart.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    frame = table.frame
    numeric = {column: frame[column].dtype.kind in "iuf" for column in frame.columns}
    head = "".join(
        f'<th scope="col"{_number(numeric[column])}>{escape(_heading(column))}</th>' for column in frame.columns
    )
    rows = "".join(
        "<tr>" + "".join(f"<td{_number(numeric[c])}>{escape(_cell(row[c]))}</td>" for c in frame.columns) + "</tr>"
        for row in frame.head(MAX_ROWS).to_dict("records")
    )
    look = "scroll long" if len(frame) > SHOWN_ROWS else "scroll"
    limit = f" The first {MAX_ROWS} of {len(frame)} rows." if len(frame) > MAX_ROWS else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="{look}"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="limits">{escape(table.caption + limit)}</p>'
    )


def _heading(column: object) -> str:
    words = str(column).replace("bit_s", "bit/s").replace("mbit", "Mbit").replace("packets_s", "packets/s")
    return re.sub(r"_percent$", " (%)", words).replace("_", " ")


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "–" if value is None else str(value)
