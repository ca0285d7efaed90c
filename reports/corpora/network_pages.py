"""A network's page, and the list of its connections over as many pages as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from reports.corpora.applications import port_name
from reports.corpora.connection_pages import WayTo, connection_name
from reports.corpora.network_table import Row, network_table, weeks_of
from reports.corpora.parts import (
    HOME,
    document,
    network_page,
    pages_between,
    seconds_cell,
    section,
    share_cell,
    sql_command,
    table,
    verdict_word,
)
from reports.corpora.questions import MAX_LISTED, MAX_SERVERS, Cell, JudgedConnection, Questions
from reports.corpora.shares import Share, interval_text
from reports.page_parts import counted
from reports.quantities import format_bytes, format_count, format_percent, format_seconds
from reports.wording import method_name

#: Connections of one page: some 150 kB.
LISTED_TOGETHER = 150

#: Split points of which the network has no part, in the words of a connection's row.
_AT_ENDS = {"server": "at the server's site", "proxy": "a proxy that the client asks for"}

#: Ports of a network that have a row; servers with ports of their own may have thousands.
_MAX_PORTS = 60


@dataclass(frozen=True, slots=True)
class NetworkTables:
    """What is known of all networks, by their names."""

    servers: Mapping[str, list[tuple[Any, ...]]]
    mechanisms: Mapping[str, list[tuple[Any, ...]]]
    undecided: Mapping[str, list[tuple[Any, ...]]]

    @classmethod
    def of(cls, questions: Questions) -> NetworkTables:
        """Ask for all of it."""
        return cls(questions.servers(), questions.mechanisms(), questions.undecided())


def network_pages(
    network: str,
    rows: Sequence[Row],
    tables: NetworkTables,
    listed: Sequence[JudgedConnection],
    result: str,
    way_to: Callable[[JudgedConnection], WayTo],
) -> Iterator[tuple[str, str]]:
    """Paths and texts of a network's pages; `rows` are its applications, `way_to` says how a connection's page is
    reached."""
    cells = [cell for row in rows for cell in row.cells.values()]
    total = sum(row.connections for row in rows)
    parts = [listed[start : start + LISTED_TOGETHER] for start in range(0, len(listed), LISTED_TOGETHER)]
    names = [network_page(network, number + 1) for number in range(len(parts))]
    beside = [name.removeprefix("networks/") for name in names]
    for number, (name, part) in enumerate(zip(names, parts, strict=True)):
        about = _about_list(len(listed), total, network, result) if number == 0 else ""
        above, below = (pages_between(beside, number, where) for where in ("above", "below"))
        listing = section("Connections", f"{above}{_connections(part, way_to)}{below}", about)
        way = [("overview", f"../{HOME}")]
        if number:
            way.append((network, beside[0]))
            heading = f"{escape(network)}: connections, page {number + 1} of {len(parts)}"
            yield name, document(heading, listing, way, depth=1)
        else:
            yield (
                name,
                document(_headline(network, cells), _summary(network, rows, cells, tables) + listing, way, depth=1),
            )


def _headline(network: str, cells: Sequence[Cell]) -> str:
    share = sum((cell.share for cell in cells), Share(0, 0))
    if not share.decided:
        return f"{escape(network)}: no connection could be decided"
    return (
        f"{escape(network)}: {format_percent(share.value)} of the decided connections are split "
        f'<span class="interval">({interval_text(share)})</span>'
    )


def _summary(network: str, rows: Sequence[Row], cells: Sequence[Cell], tables: NetworkTables) -> str:
    shown = rows[:_MAX_PORTS]
    rest = len(rows) - len(shown)
    more = f'<p class="limits">{counted(rest, "more port")} not listed here.</p>' if rest else ""
    applications = network_table(shown, weeks_of(cells), (), by_network=False) + more
    total = counted(sum(row.connections for row in rows), "connection")
    return "".join((
        f'<p class="totals">{total} to {counted(len(rows), "port")}.</p>',
        section("Applications by week", applications),
        _how(tables.mechanisms.get(network, []), tables.undecided.get(network, [])),
        _servers(tables.servers.get(network, [])),
    ))  # fmt: skip


def _how(mechanisms: Sequence[tuple[Any, ...]], undecided: Sequence[tuple[Any, ...]]) -> str:
    parts = ""
    if mechanisms:
        parts += section(
            "Mechanisms of splits",
            table(
                "mechanisms of splits", [("mechanism", False), ("application", False), ("connections", True)],
                [[escape(name), escape(port_name(port)), format_count(count)] for name, port, count in mechanisms],
            ),
        )  # fmt: skip
    if undecided:
        parts += section(
            "Why connections are open",
            table(
                "reasons of open connections", [("reason, with n for numbers", False), ("connections", True)],
                [[escape(begins or "–"), format_count(count)] for begins, count in undecided],
            ),
        )  # fmt: skip
    return parts


def _servers(servers: Sequence[tuple[Any, ...]]) -> str:
    if not servers:
        return ""
    columns = [
        ("server", False), ("application", False), ("connections", True), ("split", False), ("hidden leg", True),
    ]  # fmt: skip
    rows = [
        [
            escape(server), escape(port_name(port)), format_count(count),
            share_cell(Share(split, split + regular), count, at_ends), seconds_cell(hidden_s),
        ]
        for server, port, count, split, regular, hidden_s, at_ends, _ in servers
    ]  # fmt: skip
    total = servers[0][-1]
    about = f"The {MAX_SERVERS} of {format_count(total)} with the most splits." if total > len(servers) else ""
    return section("Servers", table("servers", columns, rows), about)


def _about_list(listed: int, total: int, network: str, result: str) -> str:
    order = (
        "Divided evidence first, then splits, then open ones. The row has the command that makes a connection's page, "
        "or the link to it."
    )
    if listed == total:
        return order
    named = network.replace("'", "''")
    sql = f"SELECT * FROM connections WHERE '{named}' IN (network, client_network) ORDER BY started"
    return (
        f"{format_count(listed)} of {format_count(total)}, at most {MAX_LISTED} of each verdict. {order} All of them: "
        f"{sql_command(result, sql)}"
    )


def _connections(part: Sequence[JudgedConnection], way_to: Callable[[JudgedConnection], WayTo]) -> str:
    columns = [
        ("connection", False), ("began (UTC)", False), ("verdict", False), ("probability", True), ("payload", True),
        ("duration", True), ("why", False),
    ]  # fmt: skip
    rows = [
        [
            connection_name(each, way.page),
            escape(each.began or "–"),
            verdict_word(each.verdict) + _remark(each),
            "–" if each.verdict == "inconclusive" else format_percent(each.probability),
            format_bytes(each.payload_bytes),
            format_seconds(each.duration_s),
            f"{_reason(each)}{way.how}",
        ]
        for each, way in ((each, way_to(each)) for each in part)
    ]
    return table("connections", columns, rows)


def _remark(each: JudgedConnection) -> str:
    """What stands beside the verdict: how it is split, and who says otherwise."""
    remarks = [] if each.mechanism in (None, "undecided") else [escape((each.mechanism or "").replace("-", " "))]
    if (remark := _AT_ENDS.get(each.group_where or "")) and each.verdict in ("split-tcp", "tcp-proxy"):
        remarks.append(remark)
    if each.group_verdict not in (None, "inconclusive", each.verdict) and each.verdict != "inconclusive":
        remarks.append(f"its group: {escape(each.group_verdict or '')}")
    return f"<small>{'; '.join(remarks)}</small>" if remarks else ""


def _reason(each: JudgedConnection) -> str:
    divided = ""
    if each.methods_split and each.methods_intact:
        divided = (
            f'<p class="divided">Split, say {_names(each.methods_split)}; end to end, say '
            f"{_names(each.methods_intact)}.</p>"
        )
    return f"<p>{escape(each.reason)}</p>{divided}"


def _names(methods: str) -> str:
    return escape(", ".join(method_name(name) for name in methods.split()))
