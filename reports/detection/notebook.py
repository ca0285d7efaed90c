"""A detection in a notebook: two short tables, groups first, in the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from reports.detection.ranking import (
    by_attention,
    class_probability,
    groups_by_attention,
    judged_alone,
    verdict_probability,
)
from reports.page_parts import counted
from reports.quantities import format_bytes, format_count, format_percent
from reports.wording import VERDICT_NAMES, group_details

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Rows of each table; what is left out is counted below it.
MAX_ROWS = 10

_GROUP_HEADINGS = ("network", "port", "connections", "verdict", "probability", "details", "reason")
_PAIR_HEADINGS = ("client", "server", "bytes", "verdict", "probability", "reason")


def notebook_table(result: DetectionResult) -> str:
    """Captures with their warnings, groups and connections that matter most, as HTML; all text is escaped."""
    return "".join(_parts(result))


def _parts(result: DetectionResult) -> Iterator[str]:
    for capture in result.captures:
        counts = f"{counted(capture.packets, 'packet')}, {counted(capture.connections, 'connection')}"
        warnings = "".join(f"<br>warning: {escape(text)}" for text in capture.warnings)
        yield f"<p><b>{escape(capture.path)}</b>: {counts}{warnings}</p>"
    groups = groups_by_attention(result.groups)
    if groups:
        rows = [
            (
                group.network,
                str(group.port),
                format_count(len(group.pairs)),
                VERDICT_NAMES[group.verdict],
                _percent(class_probability(group) if group.by_host else verdict_probability(group)),
                "; ".join(group_details(group)),
                group.reason,
            )
            for group in groups[:MAX_ROWS]
        ]
        yield _table("Networks and ports", _GROUP_HEADINGS, rows, len(groups), "groups_frame")
    if result.pairs:
        yield _table("Connections", _PAIR_HEADINGS, _pair_rows(result), len(result.pairs), "to_frame")


def _pair_rows(result: DetectionResult) -> list[tuple[str, ...]]:
    alone = judged_alone(result)
    rows: list[tuple[str, ...]] = []
    for index in by_attention(result.pairs)[:MAX_ROWS]:
        pair = result.pairs[index]
        rows.append(
            (
                pair.vantages[0].client,
                pair.vantages[0].server,
                format_bytes(pair.payload_bytes_up + pair.payload_bytes_down),
                VERDICT_NAMES[pair.verdict],
                _percent(class_probability(pair) if alone else verdict_probability(pair)),
                pair.reason,
            )
        )
    return rows


def _percent(share: float | None) -> str:
    return "" if share is None else format_percent(share)


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], total: int, method: str) -> str:
    """A table with how many rows it leaves out, and which method has them."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    left_out = total - len(rows)
    more = f"<p>{format_count(left_out)} more: <code>.{method}()</code> has all.</p>" if left_out else ""
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
