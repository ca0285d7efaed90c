"""The page of `inspect --html`: the connections of one capture with their figures, without a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pepscope
from pepscope.captures.connections import Close
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.files.named_packets import locator
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import FlowSeries, VantageName
from pepscope.whole_file import write_output
from reports.detection.flow_section import flow_section
from reports.detection.page import MAX_POINTS, MAX_TRACE_POINTS
from reports.document import asset, figure_data, fill, html_document, plotly_element
from reports.errors import cannot_write
from reports.figures.flow_figures import choose_limit, flow_figures
from reports.packets import filters_list
from reports.page_parts import counted
from reports.quantities import format_bytes, format_count, format_moment, format_seconds

if TYPE_CHECKING:
    from pepscope.captures.capture import Capture
    from pepscope.captures.connections import Connection, FlowSummary

_ENDED = {Close.FIN: "ended by FIN", Close.RESET: "reset", Close.OPEN: "still open when the capture ends"}


def write_capture_page(capture: Capture, series: Mapping[int, tuple[FlowSeries, ...]], path: str | Path) -> None:
    """Write the page of a capture, with the connections of which there are series. Raises ReportError."""
    text = capture_page_text(capture, series)
    try:
        write_output(path, text)
    except OSError as error:
        raise cannot_write(path, error) from error


def capture_page_text(capture: Capture, series: Mapping[int, tuple[FlowSeries, ...]]) -> str:
    """The page as text; everything that comes from captures or paths is escaped."""
    flows = [each for of_one in series.values() for each in of_one]
    limit = choose_limit(flows, MAX_POINTS, MAX_TRACE_POINTS)
    sections, data = [], []
    for rank, (number, drawn) in enumerate(series.items()):
        figures = [flow_figures(each, limit) for each in drawn]
        drawings = {each.direction: place for place, each in enumerate(drawn)}
        connection = capture.connections[number]
        payload = {Direction.UP: connection.up.payload_bytes, Direction.DOWN: connection.down.payload_bytes}
        body = "".join(
            flow_section(number, drawings[way], way, figures[drawings[way]], payload)
            for way in sorted(drawings, key=lambda each: -payload[each])
        )
        sections.append(_section(capture, connection, body, opened=rank == 0))
        data.append(figure_data(number, figures))
    total = len(capture.connections)
    left_out = total - len(series)
    name = Path(capture.path).name or capture.path
    body = fill(
        asset("capture.html"),
        {
            "headline": escape(f"{counted(total, 'TCP connection')} in {name}"),
            "facts": _facts(capture),
            "tool": f"pepscope {escape(pepscope.__version__)}" + _filtered(capture),
            "limits": ""
            if left_out <= 0
            else f'<p class="limits">The {format_count(len(series))} with most payload are drawn. '
            "<code>--filter</code> draws others, <code>--csv</code> and <code>--json</code> list all.</p>",
            "sections": "".join(sections),
            "data": "".join(data),
            "plotly": plotly_element() if flows else "",
            "inflate_script": asset("inflate.js"),
            "script": asset("page.js"),
            "figure_script": asset("figures.js"),
        },
    )
    return html_document(f"pepscope: {escape(name)}", body, styles=("page.css",))


def _facts(capture: Capture) -> str:
    warnings = "".join(f"<li>{escape(text)}</li>" for text in capture.warnings)
    when = ""
    if capture.time_span_ns is not None:
        first, last = map(format_moment, capture.time_span_ns)
        when = f", {first} to {last}"
    return (
        f'<li class="capture"><span class="path">{escape(capture.path)}</span>'
        f"<span>{counted(capture.packet_count, 'packet')}{when}</span>"
        + ("" if capture.sha256 is None else f'<span class="digest">SHA-256 {capture.sha256}</span>')
        + (f'<ul class="warnings">{warnings}</ul>' if warnings else "")
        + "</li>"
    )


def _filtered(capture: Capture) -> str:
    return "" if capture.filter is None else f", with the filter <code>{escape(capture.filter)}</code>"


def _section(capture: Capture, connection: Connection, drawings: str, *, opened: bool) -> str:
    numbers = capture.frame_numbers(connection.id)
    frames = (int(numbers[0]), int(numbers[-1])) if len(numbers) else None
    vantage = VantageName(capture.path, connection.client, connection.server, frames=frames)
    found = filters_list([locator(capture.path, vantage.display_filter)])
    duration = format_seconds((connection.last_time_ns - connection.first_time_ns) / 1e9)
    rows = "".join(
        _flow_row(way, flow) for way, flow in zip(DIRECTIONS, (connection.up, connection.down), strict=True)
    )  # fmt: skip
    return (
        f'<details class="connection" id="connection-{connection.id}"{" open" if opened else ""}><summary>'
        f'<span class="label">{connection.id}</span><span class="endpoints">{escape(connection.client)} '
        f'<span aria-label="to">→</span> {escape(connection.server)}</span></summary><div class="body">'
        f'<p class="totals">{counted(connection.packets, "packet")} in {duration} from '
        f"{format_moment(connection.first_time_ns)}; handshake {_time(connection.handshake_syn_ack_ns)} to SYN-ACK, "
        f"{_time(connection.handshake_ack_ns)} to ACK; {_ENDED[connection.close]}.</p>"
        '<div class="scroll"><table class="counts"><thead><tr><th scope="col">sent by</th>'
        '<th scope="col" class="number">payload</th><th scope="col" class="number">least round trip</th>'
        '<th scope="col" class="number">sent again</th><th scope="col" class="number">reordered</th>'
        '<th scope="col" class="number">not captured</th><th scope="col" class="number">window, least to largest</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<details class="packets"><summary>in Wireshark</summary>{found}</details>{drawings}</div></details>'
    )


def _flow_row(way: Direction, flow: FlowSummary) -> str:
    cells = (
        format_bytes(flow.payload_bytes),
        _time(flow.round_trip_time_min_ns),
        f"{counted(flow.retransmitted_packets, 'packet')}, {format_bytes(flow.retransmitted_bytes)}",
        format_count(flow.reordered_packets),
        format_bytes(flow.missed_bytes),
        f"{format_bytes(flow.window_min_bytes)} to {format_bytes(flow.window_max_bytes)}",
    )
    end = "client" if way is Direction.UP else "server"
    return f'<tr><th scope="row">{end}</th>' + "".join(f'<td class="number">{cell}</td>' for cell in cells) + "</tr>"


def _time(time_ns: int | None) -> str:
    return "–" if time_ns is None else format_seconds(time_ns / 1e9)
