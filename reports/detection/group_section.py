"""Groups on the page: a table of them above the connections, and a section each with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from pepscope.results.verdicts import GroupResult
from reports.detection.ranking import groups_by_attention, verdict_probability
from reports.glossary import with_tooltips
from reports.page_parts import counted, evidence_table, probability_bar, verdict_badge
from reports.quantities import format_count, format_percent, format_seconds
from reports.wording import GROUP_SENTENCES, captured_at, group_details

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Rows of the table, each with a section.
MAX_GROUPS = 50

#: Connections, and servers, of one group that are named.
_MAX_NAMED = 30


def groups_section(result: DetectionResult, with_sections: Sequence[int]) -> str:
    """The groups of several connections; empty where each connection stands alone.

    `with_sections` are the places in `result.pairs` that have a section on the page, to be linked to.
    """
    groups = groups_by_attention(result.groups)
    if not groups:
        return ""
    shown = groups[:MAX_GROUPS]
    linked = set(with_sections)
    rows = "".join(_row(number, group) for number, group in enumerate(shown))
    sections = "".join(_section(number, group, result, linked) for number, group in enumerate(shown))
    rest = len(groups) - len(shown)
    more = f'<p class="limits">{counted(rest, "more group")} not listed here; <code>--json</code> writes them all.</p>'
    return (
        '<section aria-labelledby="groups-heading"><h2 id="groups-heading">Groups</h2>'
        '<p class="limits">Connections of one network of clients to one port, weighed together: one rule governs them.'
        "</p>"
        '<div class="scroll"><table id="groups"><thead><tr><th scope="col">clients in</th>'
        '<th scope="col" class="number">port</th><th scope="col" class="number">connections</th>'
        '<th scope="col">verdict</th><th scope="col" class="number">probability</th>'
        '<th scope="col" class="number">handshake</th><th scope="col" class="number">other leg</th>'
        f'<th scope="col">reason</th></tr></thead><tbody>{rows}</tbody></table></div>'
        f'{more if rest else ""}<div class="group-sections">{sections}</div></section>'
    )


def _row(number: int, group: GroupResult) -> str:
    share = verdict_probability(group)
    near, hidden = (
        "–" if time is None else format_seconds(time) for time in (group.near_round_trip_s, group.hidden_round_trip_s)
    )
    return (
        f'<tr><td data-label="clients in" class="network"><a href="#group-{number}">{escape(group.network)}</a></td>'
        f'<td data-label="port" class="number">{group.port}</td>'
        f'<td data-label="connections" class="number">{format_count(len(group.pairs))}</td>'
        f'<td data-label="verdict">{verdict_badge(group.verdict)}</td>'
        f'<td data-label="probability" class="number">{"–" if share is None else format_percent(share)}</td>'
        f'<td data-label="handshake" class="number">{near}</td>'
        f'<td data-label="other leg" class="number">{hidden}</td>'
        f'<td data-label="reason" class="reason">{escape(group.reason)}</td></tr>'
    )


def _section(number: int, group: GroupResult, result: DetectionResult, linked: set[int]) -> str:
    share = verdict_probability(group)
    probability = "" if share is None else f'<span class="share">{format_percent(share)}</span>'
    details = escape("; ".join([*captured_at(group, result.captures), *group_details(group)]))
    return (
        f'<details class="connection" id="group-{number}"><summary>{verdict_badge(group.verdict)}{probability}'
        f'<span class="label">group of {format_count(len(group.pairs))}</span><span class="endpoints">'
        f'{escape(group.network)} <span aria-label="to">→</span> port {group.port}</span></summary><div class="body">'
        f'<p class="verdict">{with_tooltips(GROUP_SENTENCES[group.verdict])}</p>'
        f'<p class="reason">{with_tooltips(group.reason)}</p>'
        f'{probability_bar(group.probability)}<p class="totals">{details}</p>{_servers(group)}'
        f"{_connections(group, result, linked)}{evidence_table(group.evidence)}</div></details>"
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
