"""What all pages of the dashboard share: the frame with its navigation, tables that scroll, signs with their names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from pepscope.results.verdicts import Verdict
from prober.server.dashboard.stored_runs import StoredRun
from reports.audit.page import headline
from reports.audit.signs import sign
from reports.document import asset, fill, html_document
from reports.quantities import format_bytes
from reports.wording import VERDICT_NAMES

#: How long a page that leads on by itself is shown.
REFRESH_S = 3


def page(title: str, headline_text: str, body: str, reader: str = "", *, next_page: str = "") -> str:
    """A page; `reader` is who is logged in, and `body` is HTML. The browser goes on to `next_page` by itself."""
    content = fill(
        asset("dashboard.html"),
        {
            "headline": escape(headline_text),
            "navigation": _navigation(reader) if reader else "",
            "body": body,
        },
    )
    return html_document(
        f"pepscope: {escape(title)}",
        content,
        styles=("page.css", "audit.css", "dashboard.css"),
        policy=None,
        head=_refresh(next_page) if next_page else "",
    )


def login_page(fault: str = "") -> str:
    """The page that asks for a key; `fault` says why the last one was refused."""
    said = f'<p class="fault" role="alert">{escape(fault)}</p>' if fault else ""
    return page(
        "log in",
        "Log in with a key of this server.",
        f'<section class="login" aria-label="log in">{said}<form method="post" action="/login">'
        '<label for="key">Key</label>'
        '<input name="user" value="pepscope" autocomplete="username" hidden>'
        '<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>'
        "<button>Log in</button></form>"
        '<p class="limits">A key shows what was uploaded with it; one that was added with <code>--reads-all</code> '
        "shows the archives of all clients.</p></section>",
    )


def message_page(title: str, text: str, reader: str = "", *, next_page: str = "") -> str:
    """A page of one sentence."""
    return page(title, text, "", reader, next_page=next_page)


def table(caption: str, heads: Iterable[str], rows: Iterable[str]) -> str:
    """A table that scrolls where it is too wide, also by keyboard; `heads` and `rows` are HTML."""
    return (
        f'<div class="grid" tabindex="0" role="group" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def head(text: str, kind: str = "") -> str:
    """The head of a column."""
    return f'<th scope="col"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(text)}</th>'


def verdict_cell(kind: Verdict | None, address: str) -> str:
    """A verdict as its sign, which leads to `address`; for readers of the page its name."""
    if kind is None:
        return '<td class="at none"><span aria-hidden="true">·</span></td>'
    name = escape(VERDICT_NAMES[kind])
    return f'<td class="at {kind.value}" title="{name}"><a href="{address}" aria-label="{name}">{sign(kind)}</a></td>'


def archive_row(stored: StoredRun, *, with_client: bool) -> str:
    """One archive: when it came, what it shows, where to download it."""
    place = f"{quote(stored.client)}/{stored.sha256}"
    client = f"<td>{client_link(stored.client)}</td>" if with_client else ""
    if stored.run is not None:
        found = f'<a href="/runs/{place}">{escape(headline(stored.run))}</a>'
    elif stored.fault:
        found = f'<span class="fault">{escape(stored.fault)}</span>'
    else:
        found = '<span class="none">waits to be judged</span>'
    measured = "-" if stored.run is None else unix_time(stored.run.started_unix_ns // 1_000_000_000)
    return (
        f'<tr><td class="time">{measured}</td><td class="time">{unix_time(stored.received_unix_s)}</td>{client}'
        f"<td>{network_link(stored.network)}</td><td>{found}</td>"
        f'<td class="number"><a href="/archives/{place}" download="{escape(stored.name)}" '
        f'aria-label="download {escape(stored.name)}">{format_bytes(stored.size_bytes)}</a></td></tr>'
    )


def archive_heads(*, with_client: bool) -> list[str]:
    """The heads of `archive_row`."""
    names = ["measured", "uploaded", *(["client"] if with_client else []), "network", "what it shows"]
    return [*map(head, names), head("archive", "number")]


def client_link(client: str) -> str:
    """A client's name, which leads to its page."""
    return f'<a href="/clients/{quote(client)}">{escape(client)}</a>'


def network_link(network: str) -> str:
    """A network's name, which leads to its page."""
    return f'<a href="{network_address(network)}">{escape(network)}</a>'


def network_address(network: str) -> str:
    """Where a network's page is; its name may hold anything."""
    return f"/networks/{quote(network, safe='')}"


def unix_time(unix_s: float) -> str:
    """Day and minute."""
    try:
        return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _refresh(address: str) -> str:
    # With an address: without one, a page that was opened at a place of it (`#cell-...`) is not loaded again.
    return f'<meta http-equiv="refresh" content="{REFRESH_S};url={escape(address)}">\n'


def _navigation(reader: str) -> str:
    return (
        '<nav aria-label="dashboard"><a href="/">Overview</a>'
        f"<span>logged in as {escape(reader)}</span>"
        '<form method="post" action="/logout"><button>Log out</button></form></nav>'
    )
