"""The first page: every network with its latest verdicts, what changed, every client, and the latest archives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pepscope.captures.direction import Direction
from pepscope.results.audits import AuditChange, AuditResult
from prober.server.dashboard.stored_runs import StoredRun, StoredRuns, audit_of
from reports.audit.dashboard.frame import (
    archive_heads,
    archive_row,
    client_link,
    head,
    network_address,
    network_link,
    page,
    table,
    unix_time,
    verdict_cell,
)
from reports.audit.table import when
from reports.page_parts import counted
from reports.quantities import format_bytes, format_count
from reports.wording import DIRECTION_NAMES, VERDICT_NAMES, application_name, cell_name

#: Changes and archives that are listed, the latest ones.
MAX_CHANGES = 30
MAX_ARCHIVES = 50

_Column = tuple[str, Direction]


def overview_page(stored: StoredRuns, reader: str) -> str:
    """The page as text; everything that comes from clients is escaped."""
    if not stored.runs:
        body = (
            '<p class="limits">Clients upload archives with <code>pepscope probe run --upload</code>, or '
            "<code>pepscope probe upload ARCHIVE</code>.</p>"
        )
        return page("runs of clients", "No archive was uploaded yet.", body, reader)
    audits = {name: audit_of(runs) for name, runs in stored.networks().items()}
    parts = (_waiting(stored), _networks(stored, audits), _changes(audits), _clients(stored), _archives(stored))
    return page("runs of clients", _headline(stored), "".join(parts), reader)


def _headline(stored: StoredRuns) -> str:
    networks, clients = len(stored.networks()), len(stored.clients())
    return f"{counted(len(stored.runs), 'run')} of {counted(clients, 'client')} in {counted(networks, 'network')}"


def _waiting(stored: StoredRuns) -> str:
    if not stored.waiting:
        return ""
    verb = "waits" if stored.waiting == 1 else "wait"
    return f'<p class="limits">{counted(stored.waiting, "archive")} {verb} to be judged.</p>'


def _networks(stored: StoredRuns, audits: dict[str, AuditResult | None]) -> str:
    columns = _columns(audit for audit in audits.values() if audit is not None)
    heads = [head("network"), head("runs", "number"), head("latest"), *map(_column_head, columns)]
    rows = (_network_row(name, runs, audits[name], columns) for name, runs in stored.networks().items())
    return _section("networks", "Networks", table("networks and their latest verdicts", heads, rows))


def _columns(audits: Iterator[AuditResult]) -> list[_Column]:
    known = list(audits)
    applications = dict.fromkeys(application for audit in known for application in audit.rows())
    columns = [(application, direction) for application in applications for direction in (Direction.DOWN, Direction.UP)]
    return [column for column in columns if any(audit.latest.cell(*column) is not None for audit in known)]


def _column_head(column: _Column) -> str:
    application, direction = column
    return head(f"{application_name(application)} {DIRECTION_NAMES[direction].lower()}", "at")


def _network_row(name: str, runs: Sequence[StoredRun], audit: AuditResult | None, columns: Sequence[_Column]) -> str:
    unknown = "cannot be judged" if all(each.fault for each in runs) else "waits to be judged"
    latest = unknown if audit is None else unix_time(audit.latest.started_unix_ns / 1e9)
    cells = (None if audit is None else audit.latest.cell(*column) for column in columns)
    address = network_address(name)
    return (
        f'<tr><th scope="row">{network_link(name)}</th><td class="number">{format_count(len(runs))}</td>'
        f'<td class="time">{latest}</td>'
        + "".join(verdict_cell(None if cell is None else cell.verdict, address) for cell in cells)
        + "</tr>"
    )


def _changes(audits: dict[str, AuditResult | None]) -> str:
    found: list[tuple[AuditChange, str]] = [
        (change, name) for name, audit in audits.items() if audit is not None for change in audit.changes()
    ]
    found.sort(key=lambda item: -item[0].first_after_unix_ns)
    if not found:
        return _section("changes", "Changes", '<p class="limits">No verdict changed from one run to the next.</p>')
    lines = "".join(
        f"<li>{escape(when(change.first_after_unix_ns))}: {network_link(name)}, "
        f"<b>{escape(cell_name(change.application, change.direction))}</b> is {VERDICT_NAMES[change.after]}, and was "
        f"{VERDICT_NAMES[change.before]} until {escape(when(change.last_before_unix_ns))}.</li>"
        for change, name in found[:MAX_CHANGES]
    )
    more = len(found) - MAX_CHANGES
    rest = f'<p class="limits">{counted(more, "earlier change")} on the pages of networks.</p>' if more > 0 else ""
    return _section("changes", "Changes", f'<ul class="changes">{lines}</ul>{rest}')


def _clients(stored: StoredRuns) -> str:
    heads = [head("client"), head("archives", "number"), head("bytes", "number"), head("latest"), head("networks")]
    rows = (
        f'<tr><th scope="row">{client_link(name)}</th><td class="number">{format_count(len(runs))}</td>'
        f'<td class="number">{format_bytes(sum(each.size_bytes for each in runs))}</td>'
        f'<td class="time">{unix_time(runs[0].received_unix_s)}</td>'
        f"<td>{', '.join(network_link(each) for each in dict.fromkeys(run.network for run in runs))}</td></tr>"
        for name, runs in stored.clients().items()
    )
    return _section("clients", "Clients", table("clients", heads, rows))


def _archives(stored: StoredRuns) -> str:
    latest = sorted(stored.runs, key=lambda run: -run.number)
    rows = (archive_row(each, with_client=True) for each in latest[:MAX_ARCHIVES])
    more = len(latest) - MAX_ARCHIVES
    rest = f'<p class="limits">{counted(more, "earlier archive")} on the pages of clients.</p>' if more > 0 else ""
    body = table("latest archives", archive_heads(with_client=True), rows) + rest
    return _section("archives", "Latest archives", body)


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}-heading"><h2 id="{name}-heading">{title}</h2>{body}</section>'
