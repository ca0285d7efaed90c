"""Results as the JSON contracts `detect-2` and `detect-lines-2`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pepscope.captures.provenance import time_text, tool_document
from pepscope.results.encoding.packets import packets_document
from pepscope.results.encoding.pairs import PairDocuments, PairTexts
from pepscope.results.encoding.templates import Layout, Octets, finite, plain_document
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED
from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    GroupResult,
    HostResult,
    PairResult,
)

SCHEMA_VERSION = 2


def detection_document(result: DetectionResult) -> dict[str, Any]:
    """The JSON contract `detect-2`; numbers that JSON cannot write (infinities, NaN) become null."""
    table = PairTable.of(result.pairs)
    documents = PairDocuments(table)
    return {
        "schema": SCHEMA_VERSION,
        "tool": tool_document(result.tool),
        "captures": [capture_document(capture) for capture in result.captures],
        "pairs": [plain_document(documents.of(row)) for row in table.rows],
        "groups": [group_document(group) for group in result.groups],
    }


def capture_document(capture: CaptureSummary) -> dict[str, Any]:
    """One capture as `detect-2` writes it."""
    return {
        "path": capture.path,
        "packets": capture.packets,
        "connections": capture.connections,
        "started": time_text(capture.started_ns),
        "ended": time_text(capture.ended_ns),
        "sha256": capture.sha256,
        "warnings": list(capture.warnings),
    }


def pair_document(pair: PairResult) -> dict[str, Any]:
    """One pair as `detect-2` and `audit-1` write it."""
    return plain_document(PairDocuments(PairTable([pair])).of(0))


def group_document(group: GroupResult) -> dict[str, Any]:
    """One group as `detect-2` writes it."""
    interval = group.hidden_round_trip_interval_s
    return {
        "side": group.side.value,
        "network": group.network,
        "port": int(group.port),
        "asks_proxy": group.asks_proxy,
        "hosts": list(group.hosts),
        "connections": len(group.pairs),
        "pairs": [int(place) for place in group.pairs],
        "exchanges": group.exchanges,
        "verdict": group.verdict.value,
        "probability": {kind.value: float(group.probability.get(kind, 0.0)) for kind in JUDGED},
        "mechanism": None if group.mechanism is None else group.mechanism.value,
        "where": None if group.where is None else group.where.value,
        "near_round_trip_s": group.near_round_trip_s,
        "hidden_round_trip_s": group.hidden_round_trip_s,
        "hidden_round_trip_interval_s": None if interval is None else list(interval),
        "reason": group.reason,
        "evidence": [evidence_document(item) for item in group.evidence],
        "by_host": [host_document(host) for host in group.by_host],
    }


def host_document(host: HostResult) -> dict[str, Any]:
    """One far host of a group as `detect-2` writes it."""
    interval = host.hidden_round_trip_interval_s
    return {
        "host": host.host,
        "connections": host.connections,
        "exchanges": host.exchanges,
        "verdict": host.verdict.value,
        "probability": {kind.value: float(host.probability.get(kind, 0.0)) for kind in JUDGED},
        "where": None if host.where is None else host.where.value,
        "near_round_trip_s": host.near_round_trip_s,
        "hidden_round_trip_s": host.hidden_round_trip_s,
        "hidden_round_trip_interval_s": None if interval is None else list(interval),
        "reference_round_trip_s": host.reference_round_trip_s,
    }


def evidence_document(item: Evidence) -> dict[str, Any]:
    """One piece of evidence as `detect-2` and `audit-1` write it."""
    return {
        "method": item.method,
        "outcome": item.outcome.value,
        "finding": item.finding,
        "strength": float(item.strength),
        "summary": item.summary,
        "numbers": {name: finite(number) for name, number in item.numbers.items()},
        "caveats": list(item.caveats),
        **packets_document(item.packets),
    }


def json_chunks(result: DetectionResult, *, indent: int = 2, jobs: int = 1) -> Iterator[Octets]:
    """The text of `detection_document` in pieces, indented, without a document in memory; `jobs` processes make it."""
    layout = Layout(indent)
    head = {
        "schema": SCHEMA_VERSION,
        "tool": tool_document(result.tool),
        "captures": [capture_document(capture) for capture in result.captures],
    }
    yield layout.text(head).removesuffix(b"\n}")
    before = b"," + layout.line(2)
    pairs = PairTexts(PairTable.of(result.pairs), layout, 2, before=before).chunks(jobs)
    groups = (before + layout.text(group_document(group), 2) for group in result.groups)
    for name, chunks in (("pairs", pairs), ("groups", groups)):
        yield b"," + layout.line(1) + b'"%s"' % name.encode() + b": ["
        yield from _members(chunks, layout)
    yield b"\n}"


def _members(chunks: Iterable[Octets], layout: Layout) -> Iterator[Octets]:
    """The members of a list at the top of a document, of which each begins with a comma, and its closing bracket."""
    rest = iter(chunks)
    first = next(rest, b"")
    is_empty = not first
    yield first[1:]
    del first  # while the next one is made its memory is free
    yield from rest
    yield b"]" if is_empty else layout.line(1) + b"]"


def line_chunks(result: DetectionResult, *, jobs: int = 1) -> Iterator[Octets]:
    """The contract `detect-lines-2`: a line with the captures and counts, then one a pair, then one a group.

    `jobs` processes make it.
    """
    layout = Layout(None)
    first = {
        "record": "captures",
        "schema": SCHEMA_VERSION,
        "tool": tool_document(result.tool),
        "captures": [capture_document(capture) for capture in result.captures],
        "pairs": len(result.pairs),
        "groups": len(result.groups),
    }
    yield layout.text(first) + b"\n"
    yield from PairTexts(PairTable.of(result.pairs), layout, 0, behind=b"\n", are_lines=True).chunks(jobs)
    for place, group in enumerate(result.groups):
        yield layout.text({"record": "group", "group": place, **group_document(group)}) + b"\n"
