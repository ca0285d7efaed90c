"""One pair as `detect-2` writes it: as a document, and as text of many pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pepscope.captures.files.named_packets import EvidencePacket, connection_filter, locators
from pepscope.captures.provenance import time_text
from pepscope.results.encoding.pieces import UNNAMED, PieceText, PieceTexts, piece_documents
from pepscope.results.encoding.templates import VALUE, Layout, Template, json_texts
from pepscope.results.evidence.named import PairPackets
from pepscope.results.evidence.reading import EvidenceReader
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN
from pepscope.results.pairs.stretch import STRETCH

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


def _values(
    table: PairTable,
    rows: Sequence[int],
    leading: Sequence[str],
    packets: Sequence[PairPackets | None],
    places: Sequence[int] | None,
) -> list[tuple[Shape, list[Any]]]:
    """What `_head` asks for of each of some pairs; `leading` is what the piece of evidence says that gives the reason,
    `places` those of lines."""
    columns = table.columns
    vantages = [column.of(rows) for column in columns.vantages]
    stretches = columns.stretch.of(rows)
    probability = (np.asarray(column)[rows] for column in columns.probability)
    first = zip(
        columns.verdict.of(rows),
        columns.mechanism.of(rows),
        *(np.where(np.isnan(shares), 0.0, shares).tolist() for shares in probability),
        map(columns.reason_with, rows, leading),
        np.asarray(columns.pairing_confidence)[rows].tolist(),
        [ground or None for ground in columns.pairing_ground.of(rows)],
        strict=True,
    )
    last = zip(
        np.asarray(columns.packets)[rows].tolist(),
        *(np.asarray(sizes)[rows].tolist() for sizes in columns.payload_bytes),
        [time_text(columns.started(row)) for row in rows],
        np.asarray(columns.duration_s)[rows].tolist(),
        strict=True,
    )
    made = list[tuple[Shape, list[Any]]]()
    for at, (one, two, named, stretch) in enumerate(zip(*vantages, packets, stretches, strict=True)):
        frames = _NO_FRAMES if named is None else named.frames
        values: list[Any] = [] if places is None else [places[at]]
        has_frames = []
        for seen in (one, two):
            if seen is None:
                continue
            capture, client, server, transport = seen
            span = frames.get(capture)
            has_frames.append(span is not None)
            shown = connection_filter(client, server, transport, span)
            values += (*seen, *(span or ()), shown)
        values += next(first)
        if stretch is not None:
            values += stretch
        values += next(last)
        made.append((Shape(tuple(has_frames), stretch is not None, places is not None), values))
    return made


_NO_FRAMES: Mapping[str, tuple[int, int]] = {}


class PairDocuments:
    """The pairs of a table as documents."""

    def __init__(self, table: PairTable) -> None:
        self._table = table
        self._evidence = EvidenceReader(table.columns.evidence, piece_documents)

    def of(self, row: int) -> dict[str, Any]:
        """The document of one pair; texts and numbers may be of any type that an encoder knows."""
        table, evidence = self._table, self._evidence.on(row)
        packets, item = table.packets_of_row(row), table.columns.reason_item[row]
        leading = "" if item == OWN else evidence[item]["summary"]
        ((shape, values),) = _values(table, [row], [leading], [packets], None)
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
        places, rows = [place for place, _ in batch], [row for _, row in batch]
        found = [*map(self._evidence.on, rows)]
        packets = [*map(self._table.packets_of_row, rows)]
        items = np.asarray(self._table.columns.reason_item)[rows].tolist()
        leading = ["" if item == OWN else pieces[item].summary for pieces, item in zip(found, items, strict=True)]
        heads = _values(self._table, rows, leading, packets, places if self._are_lines else None)
        evidence = [*map(self._evidence_text, found, packets)]
        texts = iter(json_texts([value for _, values in heads for value in values]))
        return [self._head(shape, texts) + each for (shape, _), each in zip(heads, evidence, strict=True)]

    def _evidence_text(self, pieces: Sequence[PieceText], packets: PairPackets | None) -> bytes:
        """The member with the evidence, and the last bracket of the pair."""
        if packets is None:
            return self._list([text + self._unnamed for _, text in pieces])
        named = [self._pieces.members(packets_document(shown)) for shown in packets.evidence]
        return self._list([text + members for (_, text), members in zip(pieces, named, strict=True)])

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
