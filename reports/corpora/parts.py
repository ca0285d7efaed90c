"""What the pages of a site are made of: their frame, tables, shares and links."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape

from reports.corpora.shares import Share, interval_text
from reports.document import SITE_CONTENT_POLICY, asset, fill, html_document
from reports.quantities import format_count, format_percent, format_seconds

HOME = "index.html"

#: Letters of names in addresses: what file systems and browsers take as it is.
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")
_MOST_LETTERS = 40


def document(title: str, content: str, above: Sequence[tuple[str, str]] = (), *, depth: int = 0) -> str:
    """A page of the site: its title and content as HTML, and the pages above it (name, address from this page).

    `depth` counts the directories between the page and the site's top.
    """
    links = "".join(f'<li><a href="{escape(address)}">{escape(name)}</a></li>' for name, address in above)
    way = f'<nav aria-label="pages above"><ol class="way">{links}</ol></nav>' if links else ""
    styles = "".join(
        f'<link rel="stylesheet" href="{"../" * depth}assets/{name}">\n' for name in ("page.css", "site.css")
    )
    body = fill(asset("site/page.html"), {"heading": title, "way": way, "content": content})
    name = re.sub(r"<[^>]*>", "", title)
    return html_document(f"pepscope: {name}", body, policy=SITE_CONTENT_POLICY, head=styles)


def network_page(network: str, number: int = 1) -> str:
    """The path of a network's page in the site; from the second on, of the list of its connections."""
    digest = hashlib.sha256(network.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    name = _UNSAFE.sub("-", network)[:_MOST_LETTERS].strip("-.")
    return f"networks/{name}-{digest}{'' if number == 1 else f'-{number}'}.html"


def section(heading: str, content: str, about: str = "") -> str:
    """A section with its heading and a sentence about it."""
    name = _UNSAFE.sub("-", heading.lower()).strip("-")
    remark = f'<p class="limits">{about}</p>' if about else ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(heading)}</h2>{remark}{content}</section>'


def table(label: str, columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML; `columns` are names and whether they hold numbers, the first cell heads its row.

    It has a frame that the keyboard can scroll where the window is narrower.
    """
    number = ' class="number"'
    head = "".join(f'<th scope="col"{number if is_number else ""}>{name}</th>' for name, is_number in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{cell}</th>'
            if place == 0
            else f'<td data-label="{name}"{number if is_number else ""}>{cell}</td>'
            for place, (cell, (name, is_number)) in enumerate(zip(row, columns, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="table: {escape(label)}"><table class="list">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def share_cell(share: Share, connections: int, split_at_ends: int = 0) -> str:
    """A share with its interval, drawn and in figures, and of how many; those split at their ends are counted apart."""
    if not connections:
        return '<span class="none">–</span>'
    undecided = connections - share.decided - split_at_ends
    rest = f", {format_count(split_at_ends)} split at an end" if split_at_ends else ""
    if not share.decided:
        return f'<span class="none">none of {format_count(connections)} decided{rest}</span>'
    low, high = share.interval()
    counts = f"{format_count(share.split)} of {format_count(share.decided)}"
    return (
        f'<span class="share-line"><b>{format_percent(share.value)}</b> '
        f'<span class="interval">{interval_text(share)}</span></span>'
        f'<span class="range" aria-hidden="true"><i style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i>'
        f'<b style="left:{100 * share.value:.1f}%"></b></span>'
        f"<small>{counts}{rest}{f', {format_count(undecided)} open' if undecided else ''}</small>"
    )


def seconds_cell(seconds: float | None) -> str:
    """A duration, or a dash."""
    return "–" if seconds is None else format_seconds(seconds)


def verdict_word(verdict: str | None) -> str:
    """A verdict as a coloured word."""
    return "–" if verdict is None else f'<span class="badge {escape(verdict)}">{escape(verdict)}</span>'


def pages_between(paths: Sequence[str], current: int, where: str) -> str:
    """Links to the pages of a list that is cut into several, for above or below it (`where`); `current` counts from
    0."""
    if len(paths) == 1:
        return ""
    links = "".join(
        f'<li><a href="{escape(path)}"{" aria-current=page" if place == current else ""}>{place + 1}</a></li>'
        for place, path in enumerate(paths)
    )
    return f'<nav aria-label="pages of this list, {where}"><ol class="pages">{links}</ol></nav>'


def sql_command(result: str, sql: str) -> str:
    """The command that asks the tables a question."""
    import shlex

    return f"<code>{escape(shlex.join(['pepscope', 'query', result, sql]))}</code>"
