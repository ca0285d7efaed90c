"""One pair as `detect-2` writes it: as a document, and as text of many pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np

from pepscope import _core
from pepscope.captures.files.named_packets import connection_filter
from pepscope.captures.provenance import time_text
from pepscope.results.encoding.listed import Block, EvidenceTexts
from pepscope.results.encoding.packets import PacketTexts, packets_document
from pepscope.results.encoding.pieces import PieceTexts, piece_documents
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


class Heads(NamedTuple):
    """What `_head` asks for of the pairs of one shape, as columns; `places` are theirs among those that were given."""

    shape: Shape
    places: Sequence[int]
    columns: Sequence[Sequence[Any] | _core.JsonTexts]


class Making(NamedTuple):
    """How columns are made of what is no value yet: display filters, of each client, server, transport, first and last
    frame; and times."""

    filters: Callable[[Sequence[tuple[str, str, str, tuple[int, int] | None]]], Sequence[str] | _core.JsonTexts]
    times: Callable[[Sequence[int | None]], Sequence[str | None] | _core.JsonTexts]


def _heads(
    table: PairTable,
    rows: Sequence[int],
    leading: Sequence[str],
    packets: Sequence[PairPackets | None],
    lines: Sequence[int] | None,
    making: Making,
) -> list[Heads]:
    """What `_head` asks for of some pairs; `leading` is what the piece of evidence says that gives the reason, `lines`
    are the places of pairs that are lines."""
    columns = table.columns
    vantages = [column.of(rows) for column in columns.vantages]
    frames = [_NO_FRAMES if named is None else named.frames for named in packets]
    stretches = columns.stretch.of(rows)
    probability = (np.asarray(column)[rows] for column in columns.probability)
    first: list[Sequence[Any]] = [
        columns.verdict.of(rows),
        columns.mechanism.of(rows),
        *(np.where(np.isnan(shares), 0.0, shares).tolist() for shares in probability),
        [*map(columns.reason_with, rows, leading)],
        np.asarray(columns.pairing_confidence)[rows].tolist(),
        [ground or None for ground in columns.pairing_ground.of(rows)],
    ]
    last: list[Sequence[Any]] = [
        np.asarray(columns.packets)[rows].tolist(),
        *(np.asarray(sizes)[rows].tolist() for sizes in columns.payload_bytes),
    ]
    started, lasted = [columns.started(row) for row in rows], np.asarray(columns.duration_s)[rows].tolist()
    alike: dict[Shape, list[int]] = {}
    for at, (one, two, spans, stretch) in enumerate(zip(*vantages, frames, stretches, strict=True)):
        has_frames = [seen[0] in spans for seen in (one, two) if seen is not None]
        alike.setdefault(Shape(tuple(has_frames), stretch is not None, lines is not None), []).append(at)
    made = []
    for shape, places in alike.items():
        values: list[Sequence[Any] | _core.JsonTexts] = []
        if lines is not None:
            values.append([lines[at] for at in places])
        held = [column for column in vantages if column[places[0]] is not None]
        for seen, is_framed in zip(held, shape.has_frames, strict=True):
            values += _of_vantage([(each, frames[at]) for at in places if (each := seen[at])], is_framed, making)
        values += ([column[at] for at in places] for column in first)
        if shape.has_stretch:
            values += zip(*(stretch for at in places if (stretch := stretches[at])), strict=True)
        values += ([column[at] for at in places] for column in last)
        values += (making.times([started[at] for at in places]), [lasted[at] for at in places])
        made.append(Heads(shape, places, values))
    return made


def _of_vantage(
    seen: Sequence[tuple[tuple[str, str, str, str], Mapping[str, tuple[int, int]]]], has_frames: bool, making: Making
) -> Iterator[Sequence[Any] | _core.JsonTexts]:
    """One vantage point of pairs: capture, client, server, transport; the frames; the display filter."""
    yield from zip(*(each for each, _ in seen), strict=True)
    spans = [frames.get(capture) for (capture, *_), frames in seen]
    if has_frames:
        yield from zip(*(span for span in spans if span), strict=True)
    yield making.filters([(*each[1:], span) for (each, _), span in zip(seen, spans, strict=True)])


_OF_DOCUMENTS = Making(
    lambda connections: [connection_filter(*each) for each in connections],
    lambda times_ns: [time_text(time_ns) for time_ns in times_ns],
)
_OF_TEXTS = Making(_core.JsonTexts.connection_filters, _core.JsonTexts.times)


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
        (heads,) = _heads(table, [row], [leading], [packets], None, _OF_DOCUMENTS)
        values = (column[0] for column in heads.columns)
        if packets is not None:
            named = map(packets_document, packets.evidence)
            evidence = [{**document, **shown} for document, shown in zip(evidence, named, strict=True)]
        return {**_head(heads.shape, values.__next__), "evidence": evidence}


class PairTexts:
    """The pairs of a table as text, laid out as members of a list that stand so many levels deep."""

    def __init__(self, table: PairTable, layout: Layout, level: int, *, are_lines: bool = False) -> None:
        self._table = table
        self._layout = layout
        self._level = level
        self._are_lines = are_lines
        self._pieces = PieceTexts(layout, level + 2)
        self._evidence = EvidenceTexts(table.columns.evidence, self._pieces)
        self._templates: dict[Shape, Template] = {}
        self._packets = PacketTexts(layout, level + 2)
        self._unnamed = self._packets.unnamed
        within, inside = layout.line(level + 1), layout.line(level + 2)
        self._closing = layout.line(level) + b"}"
        #: Before, between and behind the pieces of evidence of a pair; where there is none.
        name = b"," + within + b'"evidence"' + layout.after_name
        self._around = (
            name + b"[" + inside, b"," + inside, within + b"]" + self._closing, name + b"[]" + self._closing,
        )  # fmt: skip

    def batches(self, between: bytes) -> Iterator[bytes]:
        """The texts of all pairs, some at a time; `between` stands between those of a batch."""
        places = iter(enumerate(self._table.rows))
        while batch := list(islice(places, _BATCH)):
            # Pairs that were judged together mostly stand together.
            runs = groupby(batch, lambda each: self._evidence.block(each[1]))
            yield between.join([self._of(block, list(run), between) for block, run in runs])

    def _of(self, block: Block, run: Sequence[tuple[int, int]], between: bytes) -> bytes:
        """The texts of the pairs at some places, in these rows of one block."""
        rows = [row for _, row in run]
        packets = [*map(self._table.packets_of_row, rows)]
        items = np.asarray(self._table.columns.reason_item)[rows].tolist()
        leading = ["" if item == OWN else block.summary(row, item) for row, item in zip(rows, items, strict=True)]
        lines = [place for place, _ in run] if self._are_lines else None
        heads = [b""] * len(rows)
        for shape, places, columns in _heads(self._table, rows, leading, packets, lines, _OF_TEXTS):
            texts = [column if isinstance(column, _core.JsonTexts) else json_texts(column) for column in columns]
            filled = self._template(shape).filled(texts, len(places))
            for number, at in enumerate(places):
                heads[at] = filled[number]
        endings = self._packets.of(packets)
        documents = [row - block.begin for row in rows]
        return block.listed.joined(documents, heads, endings, self._unnamed, self._around, between)

    def _template(self, shape: Shape) -> Template:
        if shape not in self._templates:
            document = _head(shape, lambda: VALUE)
            self._templates[shape] = Template(document, self._layout, self._level, self._closing)
        return self._templates[shape]
