"""The page: one HTML file with verdicts, evidence and figures, which needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pepscope.captures.packets import Direction
from pepscope.captures.provenance import Tool
from pepscope.results.attention import EndPoints, places_between
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import CaptureSummary, PairResult, SplitPlace, Verdict
from pepscope.whole_file import write_output
from reports.detection.connection_columns import connection_columns
from reports.detection.flow_section import flow_section
from reports.detection.group_section import groups_section
from reports.detection.ranking import (
    KINDS_IN_ORDER,
    by_attention,
    count_by_verdict,
    groups_by_attention,
    judged_alone,
    stated_probability,
)
from reports.document import (
    CONTENT_POLICY,
    SITE_CONTENT_POLICY,
    asset,
    figure_data,
    fill,
    html_document,
    plotly_element,
)
from reports.errors import cannot_write
from reports.figures.flow_figures import Figure, choose_limit, flow_figures
from reports.glossary import with_tooltips
from reports.packets import vantage_filters, without_packets
from reports.page_parts import counted, evidence_table, probability_bar, verdict_badge
from reports.quantities import (
    describe_number,
    format_bytes,
    format_count,
    format_moment,
    format_percent,
    format_seconds,
)
from reports.wording import VERDICT_NAMES, group_sentence, verdict_sentence

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Connections whose figures are drawn; the detector collects series for no more than these.
MAX_DRAWN = 50

#: Connections with a section of their own.
MAX_SECTIONS = 200

#: Connections whose packets are named.
MAX_WITH_PACKETS = 50

#: Bytes of a page, and how many of them sections and groups take: 200 sections of 13 kB, 50 of which name packets in
#: 15 kB more, 50 groups and captions.
PAGE_BYTES = 10_000_000
_SECTION_BYTES = 4_400_000

#: Points a trace, and most and fewest points of the whole page, with the bytes that one takes. What the table and
#: plotly.js leave of the page is for points; every figure keeps its shape with the fewest.
MAX_TRACE_POINTS = 4000
MAX_POINTS, MIN_POINTS = 350_000, 50_000
_POINT_BYTES = 10.7


def write_page(result: DetectionResult, path: str | Path) -> None:
    """Write `result` as one self-contained HTML file to `path`."""
    _write(page_text(result), path)


def write_connection_page(result: DetectionResult, path: str | Path, ends: EndPoints) -> None:
    """Write the page of one connection of `result`. Raises UsageError where there is no such connection."""
    _write(page_text(result, only=places_between(result.pairs, ends)), path)


def _write(text: str, path: str | Path) -> None:
    try:
        write_output(path, text)
    except OSError as error:
        raise cannot_write(path, error) from error


@dataclass(frozen=True, slots=True)
class InSite:
    """A page that is one of a site: where its plotly.js and the page above it lie, relative to it."""

    plotly: str
    above: str
    above_name: str


def page_text(result: DetectionResult, *, only: Sequence[int] | None = None, site: InSite | None = None) -> str:
    """The page as text; everything that comes from captures or paths is escaped.

    `only` are the places of the connections to show, with their groups, instead of all.
    """
    pairs = PairTable.of(result.pairs)
    if only is not None:
        kept = set(only)
        result = replace(result, groups=tuple(group for group in result.groups if not kept.isdisjoint(group.pairs)))
    order = [place for place in by_attention(pairs) if only is None or place in kept]
    drawn = [place for place in order if pairs.series(place)][:MAX_DRAWN]
    one_vantage = judged_alone(result)
    columns = connection_columns(pairs, order, MAX_SECTIONS, one_vantage=one_vantage)
    groups = groups_section(result, order[:MAX_SECTIONS])
    plotly = plotly_element(None if site is None else site.plotly) if drawn or groups.data else ""
    limit = _points_per_trace(pairs, drawn, len(columns) + len(plotly) + len(groups.data))
    figures = {place: _figures(result.pairs[place], limit) for place in drawn}
    opens_first = only is not None or not groups.data
    sections = _sections(result, order, figures, opens_first=opens_first, one_vantage=one_vantage)
    data = [figure_data(place, figures[place]) for place in order[:MAX_SECTIONS] if place in figures]
    body = fill(
        asset("page.html"),
        {
            "headline": with_tooltips(_headline(result, order)),
            "tool": _tool(result.tool),
            "captures": "".join(_capture(capture) for capture in result.captures),
            "groups_above": groups.html if only is None else "",
            "groups_below": "" if only is None else groups.html,
            "chips": "".join(_chips([pairs.verdict(place) for place in order])),
            "limits": _limits(len(order), len(drawn)),
            "sections_count": counted(len(sections), "connection"),
            "sections": "".join(sections),
            "columns": columns,
            "data": groups.data + "".join(data),
            "plotly": plotly,
            **_surroundings(site),
            **_scripts(),
        },
    )
    return html_document(
        f"pepscope: {escape(_title(result.captures))}",
        body,
        styles=("page.css",),
        policy=CONTENT_POLICY if site is None else SITE_CONTENT_POLICY,
    )


def _points_per_trace(pairs: PairTable, drawn: Sequence[int], other_bytes: int) -> int:
    """How many points a trace may have, so that the figures of the `drawn` connections fit on the page beside its
    sections and `other_bytes`."""
    flows = [series for place in drawn for series in pairs.series(place)]
    room = PAGE_BYTES - _SECTION_BYTES - other_bytes
    return choose_limit(flows, min(MAX_POINTS, max(MIN_POINTS, int(room / _POINT_BYTES))), MAX_TRACE_POINTS)


def _surroundings(site: InSite | None) -> dict[str, str]:
    """The gaps of the page that depend on whether it is one of a site."""
    if site is None:
        return {"above": "", "library_place": "inside this file"}
    above = f'<a href="{escape(site.above)}">{escape(site.above_name)}</a>'
    return {"above": above, "library_place": "beside this file"}


def _scripts() -> dict[str, str]:
    names = {"inflate_script": "inflate", "table_script": "connections", "script": "page", "figure_script": "figures"}
    return {gap: asset(f"{name}.js") for gap, name in names.items()}


def _figures(pair: PairResult, limit: int) -> list[list[Figure]]:
    """The figures of a connection, of so many points a trace."""
    return [flow_figures(series, limit, pair.evidence) for series in pair.series]


def _sections(
    result: DetectionResult,
    order: Sequence[int],
    figures: Mapping[int, list[list[Figure]]],
    *,
    opens_first: bool,
    one_vantage: bool,
) -> list[str]:
    """The sections of the first connections in `order`, with their figures."""
    return [
        connection_section(
            index,
            result.pairs[index] if rank < MAX_WITH_PACKETS else without_packets(result.pairs[index]),
            figures.get(index, []),
            opened=rank == 0 and opens_first,
            alone=len(order) == 1,
            one_vantage=one_vantage,
        )
        for rank, index in enumerate(order[:MAX_SECTIONS])
    ]


def _title(captures: Sequence[CaptureSummary]) -> str:
    return " and ".join(Path(capture.path).name or capture.path for capture in captures) or "no captures"


def _headline(result: DetectionResult, shown: Sequence[int]) -> str:
    pairs = result.pairs
    if not pairs:
        return "No TCP connection was found."
    if len(shown) == 1 and (len(pairs) > 1 or not judged_alone(result)):
        return verdict_sentence(pairs[shown[0]])
    if judged_alone(result):
        return _headline_of_groups(result)
    counts = count_by_verdict(result.verdicts)
    split = sum(count for verdict, count in counts.items() if verdict.is_split)
    open_ones = counts.get(Verdict.INCONCLUSIVE, 0)
    total = format_count(len(pairs))
    if split == 0 and open_ones == 0:
        return f"All {total} connections are end to end."
    if split == len(pairs):
        return f"All {total} connections are split."
    count = "None" if split == 0 else format_count(split)
    sentence = f"{count} of {total} connections {'is' if split in (0, 1) else 'are'} split"
    return sentence + (f"; {format_count(open_ones)} cannot be judged." if open_ones else "; the rest is end to end.")


def _headline_of_groups(result: DetectionResult) -> str:
    """One vantage point in one sentence: its networks and ports."""
    groups = groups_by_attention(result.groups)
    if len(groups) == 1:
        return group_sentence(groups[0])
    own_site = sum(group.where is SplitPlace.SERVER for group in groups)
    declared = sum(group.where is SplitPlace.PROXY for group in groups)
    split = sum(group.verdict.is_split for group in groups) - own_site - declared
    open_ones = sum(group.verdict is Verdict.INCONCLUSIVE for group in groups)
    if split == own_site == declared == open_ones == 0:
        return f"All {format_count(len(groups))} networks and ports are end to end."
    if split == len(groups):
        return f"All {format_count(len(groups))} networks and ports are split."
    count = "None" if split == 0 else format_count(split)
    sentence = f"{count} of {format_count(len(groups))} networks and ports {'is' if split in (0, 1) else 'are'} split"
    if split == 0 and own_site + declared:
        sentence += " in the network"
    if own_site:
        sentence += f"; {format_count(own_site)} at the server's own site"
    if declared:
        sentence += f"; {format_count(declared)} at proxies that the client asks for"
    if open_ones:
        return f"{sentence}; {format_count(open_ones)} cannot be judged."
    return f"{sentence}." if split + own_site + declared == len(groups) else f"{sentence}; the rest is end to end."


def _capture(capture: CaptureSummary) -> str:
    warnings = "".join(f"<li>{escape(text)}</li>" for text in capture.warnings)
    return (
        f'<li class="capture"><span class="path">{escape(capture.path)}</span>'
        f"<span>{counted(capture.packets, 'packet')}, {counted(capture.connections, 'connection')}{_captured(capture)}"
        "</span>"
        + ("" if capture.sha256 is None else f'<span class="digest">SHA-256 {capture.sha256}</span>')
        + (f'<ul class="warnings">{warnings}</ul>' if warnings else "")
        + "</li>"
    )


def _captured(capture: CaptureSummary) -> str:
    if capture.started_ns is None or capture.ended_ns is None:
        return ""
    return f", {format_moment(capture.started_ns)} to {format_moment(capture.ended_ns)}"


def _tool(tool: Tool | None) -> str:
    """Version and options, for the foot of the page."""
    if tool is None:
        return "pepscope. "
    options = "".join(
        f"<li><code>{escape(name)}</code> {escape(describe_number(name, value)[1])}</li>"
        for name, value in tool.options.items()
        if value is not None
    )
    return f'pepscope {escape(tool.version)}, with the options</p><ul class="options">{options}</ul><p>'


def _chips(verdicts: Sequence[Verdict]) -> Iterator[str]:
    counts = count_by_verdict(verdicts)
    for kind in KINDS_IN_ORDER:
        if kind in counts:
            yield (
                f'<button type="button" class="chip {kind.value}" data-kind="{kind.value}" aria-pressed="true">'
                f"{escape(VERDICT_NAMES[kind])} <b>{format_count(counts[kind])}</b></button>"
            )


def _limits(total: int, drawn: int) -> str:
    """What the page leaves out, in one paragraph; nothing where it leaves out nothing."""
    parts = []
    if total > MAX_SECTIONS:
        parts.append(f"evidence is shown for {format_count(MAX_SECTIONS)}")
    if drawn < total:
        parts.append(f"figures are drawn for {format_count(drawn)}")
    if not parts:
        return ""
    text = ", ".join(parts)
    return (
        f'<p class="limits">Of {format_count(total)} connections, {escape(text)}: split ones first, then inconclusive '
        "ones, then the largest. The table lists all; <code>--csv</code>, <code>--parquet</code> and "
        "<code>--json</code> write every connection.</p>"
    )


def connection_section(
    index: int,
    pair: PairResult,
    figures: list[list[Figure]],
    *,
    opened: bool = False,
    alone: bool = False,
    one_vantage: bool = False,
    label: str = "",
    remark: str = "",
) -> str:
    """One connection with its evidence and figures, to be opened.

    `label` stands in its headline, `remark` above the reason; without `alone` the verdict's meaning is added. The
    probability of a split from `one_vantage` is that of a split of either kind.
    """
    first = pair.vantages[0]
    share = stated_probability(pair, one_vantage=one_vantage)
    probability = "" if share is None else f'<span class="share">{format_percent(share)}</span>'
    # The page's headline already shows it if there is only one connection.
    meaning = "" if alone else f'<p class="verdict">{with_tooltips(verdict_sentence(pair))}</p>'
    drawings = "".join(
        flow_section(index, position, pair.series[position].direction, figures[position], _payloads(pair))
        for position in sorted(range(len(figures)), key=lambda place: -_payloads(pair)[pair.series[place].direction])
    )
    return (
        f'<details class="connection" id="connection-{index}"{" open" if opened else ""}>'
        f"<summary>{verdict_badge(pair.verdict)}{probability}{_label(label)}"
        f'<span class="endpoints">{escape(first.client)} <span aria-label="to">→</span> {escape(first.server)}</span>'
        '</summary><div class="body">'
        f'{meaning}{_remark(remark)}<p class="reason">{with_tooltips(pair.reason)}</p>'
        f"{probability_bar(pair.probability)}{_facts(pair)}{evidence_table(pair.evidence)}{drawings}</div></details>"
    )


def _label(text: str) -> str:
    return f'<span class="label">{escape(text)}</span>' if text else ""


def _remark(text: str) -> str:
    return f'<p class="limits">{escape(text)}</p>' if text else ""


def _facts(pair: PairResult) -> str:
    rows = "".join(
        f'<tr><th scope="row" class="path">{escape(vantage.capture)}</th><td class="endpoint">{escape(vantage.client)}'
        f" → {escape(vantage.server)}</td><td>{escape(vantage.transport.upper())}</td></tr>"
        for vantage in pair.vantages
    )
    if len(pair.vantages) == 1:
        how = '<p class="limits">Only one capture holds this connection.</p>'
    elif pair.pairing_ground:
        sure = format_percent(pair.pairing_confidence)
        how = f'<p class="limits">Paired by the {escape(pair.pairing_ground)}, {sure} sure.</p>'
    else:
        how = ""
    return (
        f'<table class="vantages"><tbody>{rows}</tbody></table>{how}{vantage_filters(pair)}'
        f'<p class="totals">{format_count(pair.packets)} packets in {format_seconds(pair.duration_s)}{_since(pair)}; '
        f"payload {format_bytes(pair.payload_bytes_up)} up (client to server), "
        f"{format_bytes(pair.payload_bytes_down)} down.</p>"
    )


def _since(pair: PairResult) -> str:
    return "" if pair.started_ns is None else f" from {format_moment(pair.started_ns)}"


def _payloads(pair: PairResult) -> dict[Direction, int]:
    return {Direction.UP: pair.payload_bytes_up, Direction.DOWN: pair.payload_bytes_down}
