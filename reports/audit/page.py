"""The page of an audit: the matrix, what each cell rests on, how it changed, and what could not be measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pepscope.results.attention import ATTENTION
from pepscope.results.verdicts import Verdict
from pepscope.whole_file import write_output
from reports.audit.history import history_section
from reports.audit.metrics import gains_section, metrics_section, missing_section
from reports.audit.sides import sides_section
from reports.audit.signs import sign
from reports.audit.table import how_text, share_text, when
from reports.detection.page import (
    MAX_DRAWN,
    MAX_POINTS,
    MAX_TRACE_POINTS,
    connection_section,
)
from reports.document import asset, figure_data, fill, html_document, plotly_element
from reports.errors import cannot_write
from reports.figures.flow_figures import Figure, choose_limit, flow_figures
from reports.glossary import with_tooltips
from reports.page_parts import counted, evidence_table, probability_bar, verdict_badge
from reports.quantities import format_count, format_seconds
from reports.wording import DIRECTION_NAMES, VERDICT_NAMES, application_name, cell_name, cell_sentence

if TYPE_CHECKING:
    from pepscope.captures.packets import Direction
    from pepscope.results.audits import AuditCell, AuditConnection, AuditResult, AuditRun

#: Connections of one cell that get a section.
MAX_OF_CELL = 30


def write_audit_page(result: AuditResult, path: str | Path) -> None:
    """Write `result` as one self-contained HTML file to `path`. Raises ReportError."""
    try:
        write_output(path, audit_page_text(result))
    except OSError as error:
        raise cannot_write(path, error) from error


def audit_page_text(result: AuditResult) -> str:
    """The page as text; everything that comes from an archive is escaped."""
    run = result.latest
    drawings = _Drawings(run)
    cells = "".join(_cell(cell, run.titles, result, drawings) for cell in run.cells)
    body = fill(
        asset("audit.html"),
        {
            "headline": escape(headline(run)),
            "runs": _run(run) + _earlier(result),
            "matrix": matrix(result),
            "key": "".join(
                f'<li class="{kind.value}">{sign(kind)}{escape(VERDICT_NAMES[kind])}</li>'
                for kind in (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY, Verdict.INCONCLUSIVE)
            ),
            "history": history_section(result),
            "gains": gains_section(run.metrics),
            "cells": cells or '<p class="limits">The plan measured no application.</p>',
            "missing": missing_section(run),
            "facts": metrics_section(run),
            "data": "".join(drawings.data),
            "plotly": plotly_element() if drawings.data else "",
            "script": asset("audit.js"),
            "inflate_script": asset("inflate.js"),
            "figure_script": asset("figures.js"),
        },
    )
    title = escape(f"pepscope: audit over {run.server or 'a path'}")
    return html_document(title, body, styles=("page.css", "audit.css"))


def cell_id(application: str, direction: Direction) -> str:
    """Where a link to a cell leads."""
    return f"cell-{application}-{direction.name.lower()}"


def headline(run: AuditRun) -> str:
    """What a run shows, in a sentence."""
    split = [cell for cell in run.cells if cell.verdict.is_split]
    unsure = sum(cell.verdict is Verdict.INCONCLUSIVE for cell in run.cells)
    if not run.cells:
        return "Nothing was measured."
    if not split and not unsure:
        return "Everything that was measured is end to end."
    rest = f"; {counted(unsure, 'case')} cannot be judged" if unsure else ""
    if not split:
        return f"No split was found{rest}."
    names = list(dict.fromkeys(application_name(cell.application) for cell in split))
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"A middlebox splits {shown}{rest}."


def _run(run: AuditRun) -> str:
    warnings = "".join(f"<li>{escape(text)}</li>" for text in run.warnings[:20])
    more = f"<li>and {format_count(len(run.warnings) - 20)} more</li>" if len(run.warnings) > 20 else ""
    return (
        f'<li class="capture"><span class="path">{escape(Path(run.source).name)}</span>'
        f"<span>{escape(when(run.started_unix_ns))}, {escape(run.server)}, took {format_seconds(run.duration_s)}, "
        f"{format_count(run.tasks_done)} of {format_count(run.tasks)} measurements done</span>"
        + (f'<ul class="warnings">{warnings}{more}</ul>' if warnings else "")
        + "</li>"
    )


def _earlier(result: AuditResult) -> str:
    earlier = len(result.runs) - 1
    if not earlier:
        return ""
    since = escape(when(result.runs[0].started_unix_ns))
    return (
        f'<li class="capture"><span class="path">{counted(earlier, "earlier run")}</span><span>since {since}, in the '
        '<a href="#history-heading">history</a></span></li>'
    )


def matrix(result: AuditResult, address: str = "") -> str:
    """The rows of the latest run's matrix; its cells lead to their sections at `address`, else of the same page."""
    columns = result.columns()
    heads = "".join(f'<th scope="col">{DIRECTION_NAMES[direction]}</th>' for direction in columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(application_name(application))}</th>'
        + "".join(_place(result.latest.cell(application, direction), address) for direction in columns)
        + "</tr>"
        for application in result.rows()
    )
    return f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody>"


def _place(cell: AuditCell | None, address: str) -> str:
    if cell is None:
        return '<td><span class="none">not in the plan</span></td>'
    connections = sum(not item.set_aside for item in cell.connections)
    known = [share_text(cell)] if cell.verdict is not Verdict.INCONCLUSIVE else []
    known += [how] if (how := how_text(cell)) else []
    # A page of many runs has no connections to count.
    known += [] if address else [counted(connections, "connection") if connections else "no connections"]
    return (
        f'<td class="{cell.verdict.value}"><a href="{address}#{cell_id(cell.application, cell.direction)}">'
        f"<b>{sign(cell.verdict)}{escape(VERDICT_NAMES[cell.verdict])}</b><small>{', '.join(known)}</small></a></td>"
    )


class _Drawings:
    """The figures of the connections that deserve them most, numbered over the whole page."""

    def __init__(self, run: AuditRun) -> None:
        everything = [item for cell in run.cells for item in shown_connections(cell)]
        drawn = sorted((item for item in everything if item.pair.series), key=_attention)[:MAX_DRAWN]
        self._chosen = {id(item) for item in drawn}
        flows = [series for item in drawn for series in item.pair.series]
        self._limit = choose_limit(flows, MAX_POINTS, MAX_TRACE_POINTS)
        self.data: list[str] = []
        self.count = 0

    def section(self, item: AuditConnection) -> str:
        """The connection's section; its figures are remembered."""
        index, self.count = self.count, self.count + 1
        figures: list[list[Figure]] = []
        if id(item) in self._chosen:
            figures = [flow_figures(series, self._limit, item.pair.evidence) for series in item.pair.series]
            self.data.append(figure_data(index, figures))
        return connection_section(index, item.pair, figures, alone=True, label=item.task, remark=item.set_aside)


def shown_connections(cell: AuditCell) -> Sequence[AuditConnection]:
    """Those that get a section: what counts, then what contradicts the cell or is split, then the largest."""
    return sorted(cell.connections, key=lambda item: (bool(item.set_aside), *_attention(item)))[:MAX_OF_CELL]


def _attention(item: AuditConnection) -> tuple[int, int]:
    return ATTENTION[item.pair.verdict], -(item.pair.payload_bytes_up + item.pair.payload_bytes_down)


def _cell(cell: AuditCell, titles: Mapping[str, str], result: AuditResult, drawings: _Drawings) -> str:
    share = "" if cell.verdict is Verdict.INCONCLUSIVE else share_text(cell)
    name = escape(cell_name(cell.application, cell.direction))
    return (
        f'<section class="cell {cell.verdict.value}" id="{cell_id(cell.application, cell.direction)}" '
        f'aria-label="{name}"><header><h3>{name}</h3>{verdict_badge(cell.verdict)}<span class="share">{share}</span>'
        f'</header><div class="body"><p class="verdict">{escape(cell_sentence(cell))}</p>'
        f'<p class="reason">{with_tooltips(cell.reason)}</p>{"".join(_since(cell, result))}'
        f"{probability_bar(cell.probability)}{sides_section(cell, titles)}{_active(cell, titles)}"
        f"{''.join(_connections(cell, drawings))}</div></section>"
    )


def _since(cell: AuditCell, result: AuditResult) -> Iterator[str]:
    since = result.since_unix_ns(cell.application, cell.direction)
    if since is not None and since != result.latest.started_unix_ns:
        yield f'<p class="limits">So since {escape(when(since))}.</p>'


def _active(cell: AuditCell, titles: Mapping[str, str]) -> str:
    if not cell.evidence:
        return ""
    return evidence_table(cell.evidence, titles).replace("<h3>Evidence</h3>", "<h4>Experiments</h4>")


def _connections(cell: AuditCell, drawings: _Drawings) -> Iterator[str]:
    if not cell.connections:
        return
    yield "<h4>Connections</h4>"
    shown = shown_connections(cell)
    for item in shown:
        if not item.set_aside:
            yield drawings.section(item)
    aside = [item for item in shown if item.set_aside]
    if aside:
        sections = "".join(drawings.section(item) for item in aside)
        label = f"{format_count(len(aside))} that {'does' if len(aside) == 1 else 'do'} not count"
        yield f'<details class="facts"><summary>{label}</summary>{sections}</details>'
    if len(shown) < len(cell.connections):
        yield (
            f'<p class="limits">{format_count(len(cell.connections) - len(shown))} more are in the output of '
            "<code>--json</code>.</p>"
        )
