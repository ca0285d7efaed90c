"""The pages of one network and of one client: the matrix, how it went from run to run, and the archives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from pepscope.results.audits import AuditCell, AuditResult
from pepscope.results.verdicts import Verdict
from prober.server.dashboard.stored_runs import StoredRun, StoredRuns, audit_of
from reports.audit.dashboard.frame import archive_heads, archive_row, client_link, network_link, page, table
from reports.audit.history import history_section
from reports.audit.page import cell_id, headline, matrix
from reports.audit.table import when
from reports.page_parts import counted
from reports.wording import cell_name, cell_sentence


def network_page(name: str, runs: Sequence[StoredRun], reader: str) -> str:
    """What is known of one network, the latest archive first."""
    clients = dict.fromkeys(stored.client for stored in runs)
    said = f'<p class="limits">Measured by {", ".join(map(client_link, clients))}.</p>'
    return _page(f"network {name}", name, runs, reader, said, with_client=True)


def client_page(name: str, stored: StoredRuns, reader: str) -> str:
    """What one client uploaded; its networks each with their own page."""
    runs = stored.clients()[name]
    networks = dict.fromkeys(each.network for each in runs)
    said = f'<p class="limits">In {", ".join(map(network_link, networks))}.</p>'
    if len(networks) == 1:
        return _page(f"client {name}", name, runs, reader, said, with_client=False)
    title = f"{name}: {counted(len(runs), 'run')} in {counted(len(networks), 'network')}"
    return page(f"client {name}", title, said + _archives(runs, with_client=False), reader)


def _page(title: str, name: str, runs: Sequence[StoredRun], reader: str, said: str, *, with_client: bool) -> str:
    audit = audit_of(runs)
    if audit is None:
        heading = f"{name}: no archive could be judged so far"
        return page(title, heading, said + _archives(runs, with_client=with_client), reader)
    place = next((f"{quote(each.client)}/{each.sha256}" for each in runs if each.run is audit.latest), "")
    body = (
        f'{said}<section aria-labelledby="matrix-heading"><h2 id="matrix-heading">Matrix of '
        f"{escape(when(audit.latest.started_unix_ns))}</h2>"
        f'<div class="wide"><table class="matrix">{matrix(audit, f"/runs/{place}")}</table></div></section>'
        f"{history_section(audit)}{_reasons(audit)}{_archives(runs, with_client=with_client)}"
    )
    return page(title, f"{name}: {_lower(headline(audit.latest))}", body, reader)


def _reasons(audit: AuditResult) -> str:
    """What was found in the latest run, cell by cell; the evidence is on the run's own page."""
    lines = "".join(map(_reason, _by_attention(audit.latest.cells)))
    return f'<section aria-labelledby="cells-heading"><h2 id="cells-heading">Why</h2>{lines}</section>' if lines else ""


def _reason(cell: AuditCell) -> str:
    name = escape(cell_name(cell.application, cell.direction))
    return (
        f'<section class="cell {cell.verdict.value}" id="{cell_id(cell.application, cell.direction)}" '
        f'aria-label="{name}"><header><h3>{name}</h3></header><div class="body">'
        f"<p>{escape(cell_sentence(cell))}</p><p>{escape(cell.reason)}</p></div></section>"
    )


def _by_attention(cells: Iterable[AuditCell]) -> list[AuditCell]:
    return sorted(cells, key=lambda cell: (not cell.verdict.is_split, cell.verdict is Verdict.INCONCLUSIVE))


def _archives(runs: Sequence[StoredRun], *, with_client: bool) -> str:
    latest = sorted(runs, key=lambda each: (each.run is None, 0 if each.run is None else -each.run.started_unix_ns))
    rows = (archive_row(each, with_client=with_client) for each in latest)
    body = table("archives", archive_heads(with_client=with_client), rows)
    return (
        f'<section aria-labelledby="archives-heading"><h2 id="archives-heading">{counted(len(runs), "archive")}</h2>'
        f"{body}</section>"
    )


def _lower(sentence: str) -> str:
    """A sentence to follow a colon, without its full stop."""
    return f"{sentence[:1].lower()}{sentence[1:].removesuffix('.')}"
