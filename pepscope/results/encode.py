"""Results as the JSON contracts `detect-2` and `detect-lines-2`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from pepscope.captures.files.named_packets import EvidencePacket, connection_filter, locators
from pepscope.results.evidence.table import plain_number
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN
from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    GroupResult,
    HostResult,
    Number,
    PairResult,
    Tool,
    VantageName,
)

SCHEMA_VERSION = 2

#: Pairs that are turned into text at once: some hundred kilobytes.
_BATCH = 64


def detection_document(result: DetectionResult) -> dict[str, Any]:
    """The JSON contract `detect-2`; numbers that JSON cannot write (infinities, NaN) become null."""
    return {
        "schema": SCHEMA_VERSION,
        "tool": tool_document(result.tool),
        "captures": [capture_document(capture) for capture in result.captures],
        "pairs": [_plain_document(record) for record in _pair_records(result)],
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


def tool_document(tool: Tool | None) -> dict[str, Any] | None:
    """What made a result as `detect-2` writes it."""
    return None if tool is None else {"name": "pepscope", "version": tool.version, "options": dict(tool.options)}


def pair_document(pair: PairResult) -> dict[str, Any]:
    """One pair as `detect-2` and `audit-1` write it."""
    return _plain_document(_pair_record(PairTable([pair]), 0))


def _pair_records(result: DetectionResult) -> Iterator[dict[str, Any]]:
    table = PairTable.of(result.pairs)
    return (_pair_record(table, row) for row in table.rows)


def _pair_record(table: PairTable, row: int) -> dict[str, Any]:
    """One pair for the encoder, which writes texts and numbers of any type as JSON has them."""
    columns, packets = table.columns, table.packets_of_row(row)
    found, item = columns.evidence.documents(row), columns.reason_item[row]
    evidence = found
    if packets is not None:
        named = map(packets_document, packets.evidence)
        evidence = [{**document, **shown} for document, shown in zip(found, named, strict=True)]
    return {
        "vantages": [
            _vantage_document(vantage, {} if packets is None else packets.frames)
            for column in columns.vantages
            if (vantage := column[row]) is not None
        ],
        "verdict": columns.verdict[row],
        "mechanism": columns.mechanism[row],
        "probability": {
            kind: 0.0 if math.isnan(share := column[row]) else share
            for kind, column in zip(JUDGED, columns.probability, strict=True)
        },
        "reason": columns.reason_with(row, "" if item == OWN else evidence[item]["summary"]),
        "pairing": {"confidence": columns.pairing_confidence[row], "ground": columns.pairing_ground[row] or None},
        "stretch": columns.stretch.values(row),
        "packets": columns.packets[row],
        "payload_bytes": {"up": columns.payload_bytes[0][row], "down": columns.payload_bytes[1][row]},
        "started": time_text(columns.started(row)),
        "duration_s": columns.duration_s[row],
        "evidence": evidence,
    }


def _vantage_document(vantage: VantageName, frames: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    span = frames.get(vantage.capture)
    return {
        "capture": vantage.capture,
        "client": vantage.client,
        "server": vantage.server,
        "transport": vantage.transport,
        "frames": None if span is None else list(span),
        "display_filter": connection_filter(vantage.client, vantage.server, vantage.transport, span),
    }


def packets_document(packets: Sequence[EvidencePacket] | None) -> dict[str, Any]:
    """The packets that show a finding as `detect-2` writes them, and how they are found again."""
    if packets is None:
        return {"packets": None, "find": None}
    return {
        "packets": [
            {
                "capture": packet.capture,
                "frame": packet.frame,
                "time": time_text(packet.time_ns),
                "shows": packet.shows,
            }
            for packet in packets
        ],
        "find": [
            {"capture": each.capture, "display_filter": each.display_filter, "tshark": each.tshark}
            for each in locators(packets)
        ],
    }


def time_text(time_ns: int | None) -> str | None:
    """A Unix time as RFC 3339 has it, in UTC and to the nanosecond."""
    return None if time_ns is None else f"{np.datetime64(time_ns, 'ns')}Z"


def group_document(group: GroupResult) -> dict[str, Any]:
    """One group as `detect-2` writes it."""
    interval = group.hidden_round_trip_interval_s
    return {
        "side": group.side.value,
        "network": group.network,
        "port": int(group.port),
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
        "numbers": {name: _plain(number) for name, number in item.numbers.items()},
        "caveats": list(item.caveats),
        **packets_document(item.packets),
    }


def numbers_texts(numbers: Sequence[dict[str, Number]]) -> list[str]:
    """The figures of pieces of evidence, each as JSON text."""
    try:
        return _ENCODER.encode_lines(numbers).decode().split("\n")[:-1]
    except UnicodeEncodeError:
        return [_compact(each).decode("utf-8", "surrogatepass") for each in numbers]


def _plain(number: Number) -> Number:
    """The number as JSON has it; NumPy's scalars become Python's."""
    value: Number = number.item() if isinstance(number, np.generic) else number
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_chunks(result: DetectionResult, *, indent: int = 2) -> Iterator[bytes]:
    """The text of `detection_document` in pieces, indented, without a document in memory."""
    head = {
        "schema": SCHEMA_VERSION,
        "tool": tool_document(result.tool),
        "captures": [capture_document(capture) for capture in result.captures],
    }
    yield _indented(head, indent).removesuffix(b"\n}")
    for name, documents in (
        ("pairs", _pair_records(result)),
        ("groups", map(group_document, result.groups)),
    ):
        yield b",\n" + b" " * indent + b'"%s": [' % name.encode()
        yield from _items(documents, indent)
    yield b"\n}"


def _items(documents: Iterable[dict[str, Any]], indent: int) -> Iterator[bytes]:
    """The members of a list at the top of a document, and its closing bracket."""
    margin = b"\n" + b" " * indent
    opened, closed = b'{%s"": [' % margin, margin + b"]\n}"
    between = b""
    for batch in _batches(documents):
        # Formatted as members of such a list, they have its indentation.
        yield between + _indented({"": batch}, indent).removeprefix(opened).removesuffix(closed)
        between = b","
    yield (margin if between else b"") + b"]"


def _batches(documents: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(documents)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def line_chunks(result: DetectionResult) -> Iterator[bytes]:
    """The contract `detect-lines-2`: a line with the captures and counts, then one a pair, then one a group."""
    yield _line(
        {
            "record": "captures",
            "schema": SCHEMA_VERSION,
            "tool": tool_document(result.tool),
            "captures": [capture_document(capture) for capture in result.captures],
            "pairs": len(result.pairs),
            "groups": len(result.groups),
        }
    )
    for place, record in enumerate(_pair_records(result)):
        yield _line({"record": "pair", "pair": place, **record})
    for place, group in enumerate(result.groups):
        yield _line({"record": "group", "group": place, **group_document(group)})


def _line(record: dict[str, Any]) -> bytes:
    return _compact(record) + b"\n"


def _indented(document: dict[str, Any], indent: int) -> bytes:
    return msgspec.json.format(_compact(document), indent=indent)


def _compact(document: dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(document)
    except UnicodeEncodeError:  # a path that is no Unicode keeps its surrogates
        text = json.dumps(_plain_document(document), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def _plain_document(document: dict[str, Any]) -> dict[str, Any]:
    """What the encoder would write of a document, as plain dictionaries, lists, texts and numbers."""
    plain: dict[str, Any] = _finite(msgspec.to_builtins(document, enc_hook=plain_number))
    return plain


def _finite(value: Any) -> Any:
    """The document with null for what JSON cannot write."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return _plain(value)


_ENCODER = msgspec.json.Encoder(enc_hook=plain_number)
