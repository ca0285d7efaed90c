"""The site's first page: networks by application and week, what changed, where methods disagree, hidden legs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from pepscope.results.charts import Chart, Line
from reports.corpora.applications import port_name
from reports.corpora.changes import Change, Changes
from reports.corpora.connection_pages import connection_name
from reports.corpora.network_table import DECIDED, FIRST_ROWS, Row, list_page, network_link, network_table, weeks_of
from reports.corpora.parts import document, seconds_cell, section, share_cell, table, verdict_word
from reports.corpora.questions import MAX_ROWS, Cell, JudgedConnection, Questions
from reports.corpora.shares import Share, interval_text
from reports.figures.svg_chart import chart_svg
from reports.glossary import with_tooltips
from reports.page_parts import counted
from reports.quantities import format_count, format_percent
from reports.wording import method_name

#: Lines of the chart beside that of all networks.
_LINES = 5


def overview_page(
    questions: Questions,
    cells: Sequence[Cell],
    rows: Sequence[Row],
    news: Changes,
    linked: Collection[str],
    drawn: Sequence[tuple[JudgedConnection, str]],
) -> str:
    """The first page; `drawn` are the connections that have a page, with its path."""
    weeks = weeks_of(cells)
    more = (
        f'<p class="limits">The first {FIRST_ROWS} of {format_count(len(rows))}; '
        f'<a href="{list_page(0)}">all of them</a>.</p>'
        if len(rows) > FIRST_ROWS
        else ""
    )
    content = "".join((
        _totals(questions, cells),
        section("What changed", _news(news, linked), _about_news(news)),
        section("Share by week", _chart(rows, cells)),
        section(
            "Networks by application and week",
            network_table(rows[:FIRST_ROWS], weeks, linked) + more,
            f"{DECIDED} Those with the most splits come first.",
        ),
        section("Connections that tell most", _drawn(drawn, linked)),
        section("Where judgements disagree", _disagreements(questions, linked)),
        section("Slowest hidden legs", _legs(questions, linked), with_tooltips(
            "The round trip behind the split point, of connections whose group has one: the greatest first."
        )),
        _failures(questions),
    ))  # fmt: skip
    return document(_headline(cells), content)


def _headline(cells: Sequence[Cell]) -> str:
    share = sum((cell.share for cell in cells), Share(0, 0))
    total = sum(cell.connections for cell in cells)
    networks = len({cell.network for cell in cells})
    if not share.decided:
        return f"None of {counted(total, 'connection')} in {counted(networks, 'network')} could be decided."
    return (
        f"{format_percent(share.value)} of the decided connections in {counted(networks, 'network')} are split "
        f'<span class="interval">({interval_text(share)})</span>'
    )


def _totals(questions: Questions, cells: Sequence[Cell]) -> str:
    weeks = sorted({cell.week for cell in cells if cell.week is not None})
    span = f", weeks of {weeks[0]} to {weeks[-1]}" if len(weeks) > 1 else f", week of {weeks[0]}" if weeks else ""
    verdicts = questions.verdicts()
    items = "".join(
        f"<li>{verdict_word(kind)} <b>{format_count(verdicts[kind])}</b></li>"
        for kind in ("split-tcp", "tcp-proxy", "inconclusive", "regular")
        if kind in verdicts
    )
    return (
        f'<p class="totals">{counted(sum(verdicts.values()), "connection")} in '
        f'{counted(questions.captures(), "capture")}{span}.</p><ul class="counts">{items}</ul>'
        f"{_split_at_ends(cells)}"
    )


def _split_at_ends(cells: Sequence[Cell]) -> str:
    count = sum(cell.split_at_ends for cell in cells)
    if not count:
        return ""
    is_split = "is split" if count == 1 else "are split"
    return (
        f"<p>{counted(count, 'connection')} {is_split} at an end, not by the network: at the server's own site, or at "
        "a proxy that the client asks for. No share counts them.</p>"
    )


def _about_news(news: Changes) -> str:
    if news.week is None:
        return "No connection has a time."
    if not news.has_before:
        return f"All connections lie in the week of {news.week}: there is nothing to compare it with."
    return (
        f"The week of {news.week}, network by network and application by application, beside the week before it in "
        f"which connections were decided. {counted(news.compared, 'comparison')}; each is held to a level at which "
        "all of them together show chance as a change once in twenty times at most (Fisher's exact test, Bonferroni). "
        "The change is Newcombe's 95 % interval of the difference."
    )


def _news(news: Changes, linked: Collection[str]) -> str:
    if not news.has_before:
        return ""
    new = _changes_table("new splits", news.new_splits, linked) or "<p>No split where there was none before.</p>"
    changed = (
        _changes_table("changed shares", news.changed, linked)
        or "<p>No share changed by more than chance explains.</p>"
    )
    return f"<h3>New splits</h3>{new}<h3>Shares that changed</h3>{changed}"


def _changes_table(label: str, found: Sequence[Change], linked: Collection[str]) -> str:
    if not found:
        return ""
    columns = [("network", False), ("application", False), ("before", False), ("this week", False), ("change", True)]
    body = [
        [
            network_link(each.network, linked),
            escape(port_name(each.port)),
            "never decided before"
            if each.before_week is None
            else f"{share_cell(each.before, each.before.decided)}<small>week of {each.before_week}</small>",
            share_cell(each.now, each.now.decided),
            _difference(each),
        ]
        for each in found[:MAX_ROWS]
    ]
    rest = len(found) - len(body)
    return table(label, columns, body) + (f'<p class="limits">{format_count(rest)} more.</p>' if rest else "")


def _difference(change: Change) -> str:
    if change.before_week is None:
        return "new"
    if change.differs is None:
        return "within chance"
    low, high = (f"{100 * bound:+.0f}".replace("-", "\u2212") for bound in change.differs)
    return f"{low} to {high} points"


def _chart(rows: Sequence[Row], cells: Sequence[Cell]) -> str:
    weeks = sorted({cell.week for cell in cells if cell.week is not None})
    if len(weeks) < 2:
        return "<p>One week only.</p>"
    place = {week: float(number) for number, week in enumerate(weeks)}
    all_of = Row("all networks", 0, _pooled(cells))
    named = [("all networks", all_of), *((f"{row.network}, {port_name(row.port)}", row) for row in rows[:_LINES])]
    lines = []
    for name, row in named:
        known = [week for week in weeks if week in row.cells and row.cells[week].share.decided]
        shares = [row.cells[week].share for week in known]
        if shares:
            lines.append(
                Line(
                    name, [place[week] for week in known], [100 * share.value for share in shares],
                    interval=[(100 * low, 100 * high) for low, high in (share.interval() for share in shares)],
                )
            )  # fmt: skip
    step = max(1, len(weeks) // 6)
    chart = Chart(
        "share-by-week", "Share of split connections by week, with 95 % intervals",
        f"week, from {weeks[0]} to {weeks[-1]}",
        "split, % of decided", tuple(lines), x_ticks=[place[week] for week in weeks[::step]],
        x_label=lambda tick: weeks[round(tick)][5:],
    )  # fmt: skip
    return (
        f"<figure>{chart_svg(chart)}<figcaption>All networks, and the {_LINES} networks and applications with the most "
        "splits. Bars are 95 % intervals.</figcaption></figure>"
    )


def _pooled(cells: Sequence[Cell]) -> dict[str | None, Cell]:
    found: dict[str | None, Cell] = {}
    for cell in cells:
        before = found.get(cell.week)
        share = cell.share if before is None else before.share + cell.share
        count = cell.connections + (0 if before is None else before.connections)
        found[cell.week] = Cell("", 0, cell.week, count, share)
    return found


def _drawn(drawn: Sequence[tuple[JudgedConnection, str]], linked: Collection[str]) -> str:
    if not drawn:
        return (
            "<p>No page of a connection was made. The lists of the networks have the command that makes one, and "
            "<code>--pages</code> makes those of the most telling ones.</p>"
        )
    columns = [("connection", False), ("network", False), ("application", False), ("verdict", False), ("began", False)]
    return table(
        "connections that tell most", columns,
        [
            [
                connection_name(each, path),
                network_link(each.network, linked), escape(port_name(each.port)), verdict_word(each.verdict),
                escape(each.began or "–"),
            ]
            for each, path in drawn
        ],
    )  # fmt: skip


def _disagreements(questions: Questions, linked: Collection[str]) -> str:
    parts = []
    if divided := questions.divided():
        columns = [
            ("network", False), ("application", False), ("say split", False), ("say end to end", False),
            ("verdict", False), ("connections", True),
        ]  # fmt: skip
        rows = [
            [
                network_link(place, linked), escape(port_name(port)), _methods(split), _methods(intact),
                verdict_word(verdict), format_count(count),
            ]
            for place, port, split, intact, verdict, count in divided
        ]  # fmt: skip
        parts.append("<h3>Methods among each other</h3>" + table("methods that disagree", columns, rows))
    if against := questions.against_groups():
        columns = [
            ("network", False), ("application", False), ("connection", False), ("its group", False),
            ("connections", True),
        ]  # fmt: skip
        rows = [
            [
                network_link(place, linked), escape(port_name(port)), verdict_word(own), verdict_word(group),
                format_count(count),
            ]
            for place, port, own, group, count in against
        ]  # fmt: skip
        parts.append("<h3>Connections and their groups</h3>" + table("connections against groups", columns, rows))
    if between := questions.between_vantage_points():
        columns = [("connection", False), ("network", False), ("day", False), ("verdicts", False)]
        rows = [
            [
                f"{escape(client)} → {escape(server)}", network_link(place, linked), escape(day),
                " ".join(verdict_word(kind) for kind in verdicts.split(", ")),
            ]
            for place, client, server, day, verdicts in between
        ]  # fmt: skip
        parts.append("<h3>Vantage points about one connection</h3>" + table("vantage points", columns, rows))
    return "".join(parts) or "<p>Nowhere.</p>"


def _methods(names: str) -> str:
    return escape(", ".join(method_name(name) for name in names.split()))


def _legs(questions: Questions, linked: Collection[str]) -> str:
    legs = questions.hidden_legs()
    if not legs:
        return "<p>No hidden leg was measured.</p>"
    columns = [
        ("network", False), ("clients in", False), ("application", False), ("split point", False), ("greatest", True),
        ("median", True), ("connections", True),
    ]  # fmt: skip
    rows = [
        [
            network_link(place, linked), escape(clients or "–"), escape(port_name(port)), escape(where or "unknown"),
            seconds_cell(most), seconds_cell(median), format_count(count),
        ]
        for place, clients, port, where, median, most, count in legs
    ]  # fmt: skip
    return table("slowest hidden legs", columns, rows)


def _failures(questions: Questions) -> str:
    failures = questions.failures()
    if not failures:
        return ""
    rows = [[escape(name), escape(reason)] for name, reason in failures[:MAX_ROWS]]
    rest = len(failures) - len(rows)
    more = f'<p class="limits">{format_count(rest)} more in errors.parquet.</p>' if rest else ""
    listed = table("what could not be judged", [("capture", False), ("reason", False)], rows)
    return section("What could not be judged", f"{listed}{more}")
