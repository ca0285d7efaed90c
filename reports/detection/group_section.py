"""Groups on the page: a table of them above the connections, and a section each with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from pepscope.results.verdicts import GroupResult, GroupSide, HostResult
from reports.detection.ranking import (
    class_probability,
    groups_by_attention,
    hosts_by_attention,
    judged_alone,
    verdict_probability,
)
from reports.document import figure_data
from reports.figures.flow_figures import Figure
from reports.figures.group_figures import group_figures
from reports.glossary import with_tooltips
from reports.page_parts import counted, evidence_table, probability_bar, verdict_badge
from reports.quantities import format_count, format_percent, format_seconds
from reports.wording import captured_at, group_details, group_sentence, hidden_leg, place_name

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Rows of the table, each with a section.
MAX_GROUPS = 50

#: Connections, and servers, of one group that are named.
_MAX_NAMED = 30

_NUMBER = ' class="number"'

#: Columns of the table with whether they hold numbers: of two captures, and of one vantage point.
_COLUMNS = (
    ("clients in", False), ("port", True), ("connections", True), ("verdict", False), ("probability", True),
    ("handshake", True), ("other leg", True), ("reason", False),
)  # fmt: skip
_COLUMNS_ALONE = (
    ("network", False), ("port", True), ("judged", False), ("verdict", False), ("probability", True),
    ("near leg", True), ("hidden leg", True), ("where", False), ("exchanges", True), ("connections", True),
    ("reason", False),
)  # fmt: skip

#: Which stretch was judged, by side.
_JUDGED = {GroupSide.CLIENT: "to the servers", GroupSide.SERVER: "to the clients", GroupSide.BOTH: "between"}


@dataclass(frozen=True, slots=True)
class GroupsSection:
    """The section on groups, and the elements with the points of its figures."""

    html: str
    data: str


def groups_section(result: DetectionResult, with_sections: Sequence[int]) -> GroupsSection:
    """The groups; empty where each connection stands alone.

    `with_sections` are the places in `result.pairs` that have a section on the page, to be linked to.
    """
    groups = groups_by_attention(result.groups)
    if not groups:
        return GroupsSection("", "")
    shown = groups[:MAX_GROUPS]
    linked, alone = set(with_sections), judged_alone(result)
    drawn = [group_figures(group) for group in shown]
    columns = _columns(groups, alone=alone)
    rows = "".join(_row(number, group, columns, alone) for number, group in enumerate(shown))
    sections = "".join(
        _section(number, group, result, linked, figures, opened=alone and number == 0)
        for number, (group, figures) in enumerate(zip(shown, drawn, strict=True))
    )
    data = "".join(figure_data(_key(number), [figures]) for number, figures in enumerate(drawn) if figures)
    rest = len(groups) - len(shown)
    more = (
        f'<p class="limits">{counted(rest, "more group")} not listed here; <code>--parquet</code> and '
        "<code>--json</code> write them all.</p>"
    )
    stretches = " and ".join(_JUDGED[side] for side in GroupSide if any(group.side is side for group in groups))
    about = (
        f"Judged from one vantage point, on the way {stretches}: what governs a network governs all its connections to "
        "a port. Connections follow from them."
        if alone
        else "Connections of one network of clients to one port, weighed together: one rule governs them."
    )
    heading = "Networks and ports" if alone else "Groups"
    html = (
        f'<section aria-labelledby="groups-heading"><h2 id="groups-heading">{heading}</h2>'
        f'<p class="limits">{about}</p>'
        f'<div class="scroll"><table id="groups"><thead><tr>{_heads(columns)}</tr></thead><tbody>{rows}</tbody></table>'
        f'</div>{more if rest else ""}<div class="group-sections">{sections}</div></section>'
    )
    return GroupsSection(html, data)


def _key(number: int) -> str:
    """What the figures of a group are found by."""
    return f"group-{number}"


def _columns(groups: Sequence[GroupResult], *, alone: bool) -> Sequence[tuple[str, bool]]:
    """The columns of the table; which stretch was judged only where there are two."""
    if not alone:
        return _COLUMNS
    sides = {group.side for group in groups}
    return [(name, is_number) for name, is_number in _COLUMNS_ALONE if name != "judged" or len(sides) > 1]


def _heads(columns: Sequence[tuple[str, bool]]) -> str:
    return "".join(f'<th scope="col"{_NUMBER if is_number else ""}>{name}</th>' for name, is_number in columns)


def _row(number: int, group: GroupResult, columns: Sequence[tuple[str, bool]], alone: bool) -> str:
    share = class_probability(group) if alone else verdict_probability(group)
    near = "–" if group.near_round_trip_s is None else format_seconds(group.near_round_trip_s)
    values = {
        "clients in": f'<a href="#group-{number}">{escape(group.network)}</a>',
        "network": f'<a href="#group-{number}">{escape(group.network)}</a>',
        "judged": _JUDGED[group.side],
        "port": str(group.port),
        "connections": format_count(len(group.pairs)),
        "exchanges": "–" if group.exchanges is None else format_count(group.exchanges),
        "verdict": verdict_badge(group.verdict),
        "probability": "–" if share is None else format_percent(share),
        "handshake": near,
        "near leg": near,
        "other leg": escape(hidden_leg(group, interval=False).replace("-", "–")),
        "hidden leg": _hidden_leg(group),
        "where": escape(place_name(group).replace("-", "–")),
        "reason": f"<span>{escape(group.reason)}</span>" if alone else escape(group.reason),
    }
    cells = "".join(
        f'<td data-label="{name}"{_class(name, is_number)}>{values[name]}</td>' for name, is_number in columns
    )
    return f"<tr>{cells}</tr>"


def _hidden_leg(judged: GroupResult | HostResult) -> str:
    """Its round trip, and its interval as an element that goes below it where the table is narrow."""
    leg, *interval = escape(hidden_leg(judged).replace("-", "–")).split(" (")
    return leg + "".join(f' <span class="interval">({bounds}</span>' for bounds in interval)


def _class(name: str, is_number: bool) -> str:
    if is_number:
        return _NUMBER
    return {"clients in": ' class="network"', "network": ' class="network"', "reason": ' class="reason"'}.get(name, "")


def _section(
    number: int,
    group: GroupResult,
    result: DetectionResult,
    linked: set[int],
    figures: Sequence[Figure],
    *,
    opened: bool,
) -> str:
    share = class_probability(group) if group.by_host else verdict_probability(group)
    probability = "" if share is None else f'<span class="share">{format_percent(share)}</span>'
    details = escape("; ".join([*captured_at(group, result.captures), *group_details(group)]))
    return (
        f'<details class="connection" id="group-{number}"{" open" if opened else ""}><summary>'
        f"{verdict_badge(group.verdict)}{probability}"
        f'<span class="label">group of {format_count(len(group.pairs))}</span><span class="endpoints">'
        f'{escape(group.network)} <span aria-label="to">→</span> port {group.port}</span></summary><div class="body">'
        f'<p class="verdict">{with_tooltips(group_sentence(group))}</p>'
        f'<p class="reason">{with_tooltips(group.reason)}</p>'
        f'{probability_bar(group.probability)}<p class="totals">{details}</p>{_servers(group)}'
        f"{_connections(group, result, linked)}{_drawings(number, figures)}{_hosts(group)}"
        f"{evidence_table(group.evidence)}</div></details>"
    )


def _drawings(number: int, figures: Sequence[Figure]) -> str:
    if not figures:
        return ""
    drawings = "".join(
        f'<figure><h4>{escape(figure.title)}</h4><div class="plot" data-connection="{_key(number)}" data-flow="0" '
        f'data-figure="{place}" role="group" aria-label="{escape(f"{figure.title}. {figure.caption}")}"></div>'
        f'<figcaption>{escape(figure.caption)} <span class="note">{escape(figure.note)}</span></figcaption></figure>'
        for place, figure in enumerate(figures)
    )
    return f'<h3>Figures</h3><div class="figures">{drawings}</div>'


def _hosts(group: GroupResult) -> str:
    """The far hosts of a group that one capture holds, one by one."""
    if len(group.by_host) < 2:
        return ""
    hosts = hosts_by_attention(group)
    heads = (
        ("host", False), ("connections", True), ("exchanges", True), ("near leg", True), ("hidden leg", True),
        ("reference", True), ("verdict", False), ("probability", True),
    )  # fmt: skip
    head = "".join(f'<th scope="col"{_NUMBER if is_number else ""}>{name}</th>' for name, is_number in heads)
    rows = []
    for host in hosts[:_MAX_NAMED]:
        share = class_probability(host)
        near, reference = (
            "–" if time is None else format_seconds(time)
            for time in (host.near_round_trip_s, host.reference_round_trip_s)
        )
        values = (
            escape(host.host), format_count(host.connections), format_count(host.exchanges), near,
            _hidden_leg(host), reference, verdict_badge(host.verdict),
            "–" if share is None else format_percent(share),
        )  # fmt: skip
        rows.append(
            "<tr>"
            + "".join(
                f'<td data-label="{name}"{_NUMBER if is_number else ""}>{value}</td>'
                for (name, is_number), value in zip(heads, values, strict=True)
            )
            + "</tr>"
        )
    rest = len(hosts) - len(rows)
    more = f'<p class="limits">{counted(rest, "more host")} not listed here.</p>' if rest else ""
    side = "servers" if group.side is GroupSide.CLIENT else "clients"
    return (
        f'<h3>By host</h3><div class="scroll"><table class="hosts" aria-label="the {side} one by one"><thead><tr>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}"
    )


def _servers(group: GroupResult) -> str:
    if len(group.hosts) == 1:
        return ""
    return f'<p class="totals">Servers: {escape(_listed(group.hosts[:_MAX_NAMED], len(group.hosts)))}</p>'


def _connections(group: GroupResult, result: DetectionResult, linked: set[int]) -> str:
    named = []
    for place in group.pairs[:_MAX_NAMED]:
        client = escape(result.pairs[place].vantages[0].client)
        named.append(f'<a href="#connection-{place}">{client}</a>' if place in linked else client)
    return f'<p class="totals">Connections: {_listed(named, len(group.pairs))}</p>'


def _listed(names: Sequence[str], total: int) -> str:
    return ", ".join(names) + (f" and {format_count(total - len(names))} more" if total > len(names) else "")
