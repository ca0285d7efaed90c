"""One pair as `detect-2` writes it: as a document, and as text of many pairs at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pepscope.captures.files.named_packets import EvidencePacket, connection_filter, locators
from pepscope.captures.provenance import time_text
from pepscope.results.encoding.pieces import UNNAMED, PieceTexts, piece_documents
from pepscope.results.encoding.templates import VALUE, Layout, Template, json_texts
from pepscope.results.evidence.named import PairPackets
from pepscope.results.evidence.reading import EvidenceReader
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN

#: Pairs that are turned into text at once: some hundred kilobytes.
_BATCH = 64


class Shape(NamedTuple):
    """Which members of a pair are there: of each vantage point its frames, of the pair a stretch."""

    has_frames: tuple[bool, ...]
    has_stretch: bool
    is_line: bool  # a line that says of itself what it is


def _head(shape: Shape, value: Callable[[], Any]) -> dict[str, Any]:
    """A pair but for its evidence; `value` gives what differs from pair to pair, in this order."""
    line = {"record": "pair", "pair": value()} if shape.is_line else {}
    return {
        **line,
        "vantages": [
            {
                "capture": value(),
                "client": value(),
                "server": value(),
                "transport": value(),
                "frames": [value(), value()] if has_frames else None,
                "display_filter": value(),
            }
            for has_frames in shape.has_frames
        ],
        "verdict": value(),
        "mechanism": value(),
        "probability": {kind.value: value() for kind in JUDGED},
        "reason": value(),
        "pairing": {"confidence": value(), "ground": value()},
        "stretch": {name: value() for name in STRETCH} if shape.has_stretch else None,
        "packets": value(),
        "payload_bytes": {"up": value(), "down": value()},
        "started": value(),
        "duration_s": value(),
    }


#: The members of a stretch.
STRETCH = (
    "one_place",
    "client_hops_beyond",
    "server_hops_beyond",
    "client_round_trip_beyond_s",
    "server_round_trip_beyond_s",
    "hops_between",
    "round_trip_between_s",
)


def _values(
    table: PairTable, row: int, leading: str, packets: PairPackets | None, place: int | None
) -> tuple[Shape, list[Any]]:
    """What `_head` asks for; `leading` is what the piece of evidence says that gives the reason, `place` that of a
    line."""
    columns = table.columns
    frames: Mapping[str, tuple[int, int]] = {} if packets is None else packets.frames
    values: list[Any] = [] if place is None else [place]
    has_frames = []
    for column in columns.vantages:
        capture = column.capture[row]
        if capture is None:
            continue
        client, server, transport = column.client[row], column.server[row], column.transport[row]
        span = frames.get(capture)
        has_frames.append(span is not None)
        shown = connection_filter(client, server, transport, span)
        values += [capture, client, server, transport, *(span or ()), shown]
    stretch = columns.stretch.values(row)
    values += [
        columns.verdict[row],
        columns.mechanism[row],
        *[0.0 if math.isnan(share := column[row]) else share for column in columns.probability],
        columns.reason_with(row, leading),
        columns.pairing_confidence[row],
        columns.pairing_ground[row] or None,
        *([] if stretch is None else stretch.values()),
        columns.packets[row],
        columns.payload_bytes[0][row],
        columns.payload_bytes[1][row],
        time_text(columns.started(row)),
        columns.duration_s[row],
    ]
    return Shape(tuple(has_frames), stretch is not None, place is not None), values


class PairDocuments:
    """The pairs of a table as documents."""

    def __init__(self, table: PairTable) -> None:
        self._table = table
        self._evidence = EvidenceReader(table.columns.evidence, piece_documents)

    def of(self, row: int) -> dict[str, Any]:
        """The document of one pair; texts and numbers may be of any type that an encoder knows."""
        table, evidence = self._table, self._evidence.on(row)
        packets, item = table.packets_of_row(row), table.columns.reason_item[row]
        shape, values = _values(table, row, "" if item == OWN else evidence[item]["summary"], packets, None)
        if packets is not None:
            named = map(packets_document, packets.evidence)
            evidence = [{**document, **shown} for document, shown in zip(evidence, named, strict=True)]
        return {**_head(shape, iter(values).__next__), "evidence": evidence}


class PairTexts:
    """The pairs of a table as text, laid out as members of a list that stand so many levels deep."""

    def __init__(self, table: PairTable, layout: Layout, level: int, *, are_lines: bool = False) -> None:
        self._table = table
        self._layout = layout
        self._level = level
        self._are_lines = are_lines
        self._pieces = PieceTexts(layout, level + 2)
        self._evidence = EvidenceReader(table.columns.evidence, self._pieces)
        self._templates: dict[Shape, Template] = {}
        self._unnamed = self._pieces.members(UNNAMED)
        within, inside = layout.line(level + 1), layout.line(level + 2)
        self._closing = layout.line(level) + b"}"
        #: Before, between and behind the pieces of evidence of a pair.
        name = b"," + within + b'"evidence"' + layout.after_name
        self._around = name + b"[" + inside, b"," + inside, within + b"]" + self._closing
        self._without = name + b"[]" + self._closing

    def batches(self) -> Iterator[list[bytes]]:
        """The texts of all pairs, some at a time."""
        places = iter(enumerate(self._table.rows))
        while batch := list(islice(places, _BATCH)):
            yield self._of(batch)

    def _of(self, batch: Sequence[tuple[int, int]]) -> list[bytes]:
        """The texts of the pairs at some places, in these rows."""
        shapes, flat, evidence = list[Shape](), list[Any](), list[bytes]()
        for place, row in batch:
            pieces, item = self._evidence.on(row), self._table.columns.reason_item[row]
            packets = self._table.packets_of_row(row)
            leading = "" if item == OWN else pieces[item].summary
            shape, values = _values(self._table, row, leading, packets, place if self._are_lines else None)
            shapes.append(shape)
            flat += values
            if packets is None:
                evidence.append(self._list([text + self._unnamed for _, text in pieces]))
            else:
                named = [self._pieces.members(packets_document(shown)) for shown in packets.evidence]
                evidence.append(self._list([text + members for (_, text), members in zip(pieces, named, strict=True)]))
        texts = iter(json_texts(flat))
        return [self._head(shape, texts) + each for shape, each in zip(shapes, evidence, strict=True)]

    def _head(self, shape: Shape, texts: Iterator[bytes]) -> bytes:
        if shape not in self._templates:
            self._templates[shape] = Template(_head(shape, lambda: VALUE), self._layout, self._level)
        template = self._templates[shape]
        (text,) = template.filled([tuple(islice(texts, template.values))])
        return text.removesuffix(self._closing)

    def _list(self, pieces: Sequence[bytes]) -> bytes:
        """The member with the evidence, and the last bracket of the pair."""
        before, between, behind = self._around
        return before + between.join(pieces) + behind if pieces else self._without


def packets_document(packets: Sequence[EvidencePacket] | None) -> dict[str, Any]:
    """The packets that show a finding as `detect-2` writes them, and how they are found again."""
    if packets is None:
        return UNNAMED
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
