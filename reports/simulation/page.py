"""The page of a simulation: one HTML file with the settings, counts and figures of a simulation, without a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pepscope.results.verdicts import Verdict
from pepscope.whole_file import write_output
from reports.document import asset, figure_data, fill, html_document, plotly_element
from reports.errors import cannot_write
from reports.quantities import format_bit_rate, format_bytes, format_count, format_percent, format_seconds
from reports.simulation.figures import simulation_figures
from reports.wording import VERDICT_NAMES

if TYPE_CHECKING:
    from reference_sim.run import Run
    from reports.figures.flow_figures import Figure

#: Rows of the tables of flows and of delays.
MAX_ROWS = 200

#: What a hop is called on its box.
_KINDS = {
    "wired": "wired link",
    "variable-rate": "link of variable rate",
    "managed": "link with managed queues",
    "radio-states": "states of radios",
    "handover": "handovers",
    "umts-dch": "UMTS dedicated channel",
    "hsdpa": "HSDPA cells",
    "lte": "LTE cell",
    "rewriter": "middlebox",
    "split-proxy": "split proxy",
    "store-and-forward-proxy": "store-and-forward proxy",
    "window-adaptation-proxy": "window-adaptation proxy",
}
_ARROWS = {"down": "↓", "up": "↑"}


def write_simulation_page(run: Run, path: str | Path) -> None:
    """Write `run` as one self-contained HTML file to `path`. Raises ReportError."""
    try:
        write_output(path, simulation_page_text(run))
    except OSError as error:
        raise cannot_write(path, error) from error


def simulation_page_text(run: Run) -> str:
    """The page as text; everything that comes from the scenario is escaped."""
    summary = run.summary()
    figures = simulation_figures(run)
    scenario = run.truth["scenario"]
    title = escape(run.scenario.name)
    body = fill(
        asset("simulation.html"),
        {
            "title": title,
            "headline": escape(_headline(run, summary)),
            "description": escape(run.scenario.description),
            "facts": "".join(_facts(run, summary)),
            "path": "".join(_boxes(scenario)),
            "flows": "".join(_flow(flow) for flow in run.truth["flows"][:MAX_ROWS]),
            "flow_limit": _limit(len(run.truth["flows"]), "flows"),
            "hops": "".join(_hops(summary, run.truth["hops"])),
            "delays": "".join(_delays(run.truth["flows"][:MAX_ROWS])),
            "figures": "".join(_drawing(number, figure) for number, figure in enumerate(figures))
            or '<p class="limits">No series were recorded: set <code>record.series_interval_s</code>.</p>',
            "data": figure_data(0, [figures]) if figures else "",
            "plotly": plotly_element() if figures else "",
            "inflate_script": asset("inflate.js"),
            "figure_script": asset("figures.js"),
        },
    )
    return html_document(f"pepscope simulation: {title}", body, styles=("page.css", "simulation.css"))


def _headline(run: Run, summary: Mapping[str, Any]) -> str:
    what = f"{format_bytes(summary['delivered_bytes'])} delivered in {format_seconds(summary['simulated_s'])}"
    flows, finished = summary["flows"], summary["finished_flows"]
    if not flows:
        return f"{summary['scenario']}: no flows."
    if flows == 1:
        going = run.truth["flows"][0]["mobile"]["outcome"] == "open"
        ended = "finished" if finished else "was still going" if going else "did not finish"
        return f"{what} by one flow, which {ended}."
    return f"{what} by {format_count(flows)} flows, of which {format_count(finished) if finished else 'none'} finished."


def _facts(run: Run, summary: Mapping[str, Any]) -> Iterator[str]:
    kind = summary["class"]
    if kind is not None:
        yield f"<li>{_badge(kind)}</li>"
    yield f"<li>goodput <b>{format_bit_rate(summary['goodput_bit_s'])}</b></li>"
    yield f"<li>data packets <b>{format_count(summary['data_packets'])}</b></li>"
    yield f"<li>sent again <b>{format_count(summary['retransmitted_packets'])}</b></li>"
    yield f"<li>timeouts <b>{format_count(summary['timeouts'])}</b></li>"
    yield f"<li>seed <b>{run.scenario.seed}</b></li>"
    yield f"<li>{format_count(run.events)} events in <b>{format_seconds(run.wall_s)}</b></li>"


def _badge(kind: str) -> str:
    return f'<span class="badge {escape(kind)}">{escape(VERDICT_NAMES[Verdict(kind)])}</span>'


def _boxes(scenario: Mapping[str, Any]) -> Iterator[str]:
    yield _box("server", "host", _end(scenario["server"]), "end")
    for hop in scenario["path"]:
        settings = [*_settings(hop)]
        yield _box(
            hop["name"], _KINDS.get(hop["kind"], hop["kind"]), settings, "proxy" if "server_leg" in hop else "hop"
        )
    yield _box("mobile", "host", _end(scenario["mobile"]), "end")


def _box(name: str, kind: str, settings: Sequence[str], look: str) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in settings)
    return f'<li class="box {look}"><b>{escape(name)}</b><span>{escape(kind)}</span><ul>{lines}</ul></li>'


def _end(host: Mapping[str, Any]) -> list[str]:
    options = [word for word in ("sack", "timestamps") if host[word]]
    return [
        f"{host['control']}, {host['recovery']}",
        f"segments of {host['maximum_segment_size_bytes']} B, initial window {host['initial_window_segments']}",
        f"receive buffer {format_bytes(host['receive_buffer_bytes'])}",
        ", ".join(options) or "no options",
    ]


def _settings(hop: Mapping[str, Any]) -> Iterator[str]:
    """The main settings, one in each line."""
    for direction, arrow in _ARROWS.items():
        line = hop.get(direction)
        if isinstance(line, Mapping):
            said = ", ".join(_line(line))
            if said:
                yield f"{arrow} {said}"
    for name in (
        "preset",
        "scheduler",
        "speech_terminals",
        "buffer_bytes",
        "cache_bytes",
        "recompression_ratio",
        "opening",
        "aborts",
        "promotion_s",
        "release_s",
        "long_cycle_s",
        "interval_s",
        "interruption_s",
    ):
        if hop.get(name) not in (None, "none", 0):
            yield _named(name, hop[name])
    for terminal in (hop.get("terminals") or ())[:4]:
        for direction, arrow in _ARROWS.items():
            if isinstance(terminal.get(direction), Mapping):
                yield f"{arrow} {', '.join(_line(terminal[direction]))}"
    yield from (name.replace("_", " ") for name, value in hop.items() if value is True and hop["kind"] == "rewriter")


def _named(name: str, value: Any) -> str:
    """A setting in words, with the unit that its name ends with."""
    for unit, text in (("_bytes", format_bytes), ("_s", format_seconds)):
        if name.endswith(unit):
            return f"{name.removesuffix(unit).replace('_', ' ')} {text(value)}"
    return f"{name.replace('_', ' ')} {value}"


def _line(line: Mapping[str, Any]) -> Iterator[str]:
    if line.get("rate_bit_s"):
        yield format_bit_rate(line["rate_bit_s"])
    if line.get("rates"):
        yield _rates(line["rates"])
    if line.get("fading"):
        yield f"fading, {line['fading']['mean_sinr_db']:g} dB"
    if line.get("delay_s"):
        yield format_seconds(line["delay_s"])
    for name, unit in (("queue_packets", "packets"), ("queue_frames", "frames")):
        if line.get(name) is not None:
            yield f"{line[name]} {unit}"
    if line.get("queue_bytes") is not None:
        yield format_bytes(line["queue_bytes"])
    if line.get("queue"):
        yield line["queue"]["kind"]
    if line.get("burst_bytes") and line["rate_bit_s"]:
        yield _named("burst_bytes", line["burst_bytes"])
    if line.get("jitter_s"):
        yield _named("jitter_s", line["jitter_s"])
    for name in ("reordered", "duplicated"):
        if line.get(name):
            yield f"{format_percent(line[name])} {name}"
    if line.get("block_error_rate"):
        yield f"block errors {format_percent(line['block_error_rate'])}"
    loss = line.get("loss")
    if loss:
        share = loss.get("probability")
        yield f"loss {share * 100:g} %" if share is not None else f"{loss['kind']} loss"


def _rates(rates: Mapping[str, Any]) -> str:
    if rates["kind"] == "constant":
        return format_bit_rate(rates["rate_bit_s"])
    if rates["kind"] == "random":
        ends = f"{format_bit_rate(rates['low_bit_s'])} to {format_bit_rate(rates['high_bit_s'])}"
        return f"{ends}, new every {format_seconds(rates['period_s'])}"
    return f"{rates['kind']} rates"


def _flow(flow: Mapping[str, Any]) -> str:
    server, mobile = flow["server"], flow["mobile"]
    last = max((end["last_read_s"] or 0.0 for end in (server, mobile)), default=0.0)
    duration = last - flow["start_s"]
    total = server["read_bytes"] + mobile["read_bytes"]
    exact, is_open = flow["delivered_exactly"], "open" in (server["outcome"], mobile["outcome"])
    return "".join(
        (
            "<tr>",
            _cell("flow", str(flow["flow"])),
            _cell("user", str(flow["user"])),
            _cell("kind", str(flow["kind"]), ""),
            f'<td data-label="class">{_badge(flow["class"])}</td>',
            _cell("down", format_bytes(mobile["read_bytes"])),
            _cell("up", format_bytes(server["read_bytes"])),
            _cell("until last byte", format_seconds(duration) if total else "–"),
            _cell("goodput", format_bit_rate(8 * total / duration) if total and duration > 0 else "–"),
            _cell("sent again", format_count(sum(end["tcp"]["retransmitted_segments"] for end in (server, mobile)))),
            _cell("timeouts", format_count(sum(end["tcp"]["timeouts"] for end in (server, mobile)))),
            _cell("ended", f"{server['outcome']} / {mobile['outcome']}", ""),
            _cell("exact", "–" if is_open else "yes" if exact["down"] and exact["up"] else "no", ""),
            "</tr>",
        )
    )


def _hops(summary: Mapping[str, Any], truth: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for hop, counts in zip(summary["hops"], truth, strict=True):
        for direction, arrow in _ARROWS.items():
            reported, counted = hop[direction], counts[direction]
            share = reported["utilisation"]
            yield "".join(
                (
                    "<tr>",
                    _cell("hop", f"{hop['name']} {arrow}", ""),
                    _cell("offered", format_count(counted["offered_packets"])),
                    _cell("delivered", format_count(reported["delivered_packets"])),
                    _cell("bytes", format_bytes(reported["delivered_bytes"])),
                    _cell("overflowed", format_count(reported["overflowed_packets"])),
                    _cell("lost", format_count(reported["lost_packets"])),
                    _cell("marked", format_count(counted["marked_packets"])),
                    _cell("utilisation", "–" if share is None else format_percent(share)),
                    "</tr>",
                )
            )


def _delays(flows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for flow in flows:
        for leg in flow["legs"]:
            for direction, arrow in _ARROWS.items():
                delay = leg[f"one_way_delay_{direction}"]
                if delay is None:
                    continue
                ends = (leg["from"], leg["to"]) if direction == "down" else (leg["to"], leg["from"])
                names = ("minimum_s", "median_s", "mean_s", "quantile_95_s", "quantile_99_s", "maximum_s")
                values = "".join(
                    _cell(name.removesuffix("_s").replace("_", " "), format_seconds(delay[name])) for name in names
                )
                yield (
                    f"<tr>{_cell('flow', str(flow['flow']))}{_cell('leg', f'{ends[0]} → {ends[1]} {arrow}', '')}"
                    f"{_cell('segments', format_count(delay['segments']))}{values}</tr>"
                )


def _cell(label: str, text: str, look: str = "number") -> str:
    return f'<td data-label="{label}" class="{look}">{escape(text)}</td>'


def _limit(total: int, noun: str) -> str:
    if total <= MAX_ROWS:
        return ""
    return (
        f'<p class="limits">The first {format_count(MAX_ROWS)} of {format_count(total)} {noun}; truth.json has all.</p>'
    )


def _drawing(number: int, figure: Figure) -> str:
    return (
        f'<figure><h4>{escape(figure.title)}</h4><div class="plot" data-connection="0" data-flow="0" '
        f'data-figure="{number}" role="group" aria-label="{escape(figure.title)}"></div>'
        f'<figcaption>{escape(figure.caption)} <span class="note">{escape(figure.note)}</span></figcaption></figure>'
    )
