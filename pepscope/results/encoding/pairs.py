"""One pair as `detect-2` writes it: as a document, and as text of many pairs at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pepscope.captures.files.named_packets import connection_filters
from pepscope.captures.tables.texts import SlicedTexts, gathered, times
from pepscope.results.distinct import distinct
from pepscope.results.encoding.packet_texts import PacketTexts
from pepscope.results.encoding.packets import packets_document
from pepscope.results.encoding.pieces import PieceTexts, piece_documents
from pepscope.results.encoding.reordered import reordered
from pepscope.results.encoding.shared_writing import made_in_order
from pepscope.results.encoding.templates import VALUE, Column, Layout, Octets, Template, filled, listed
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.evidence.growing import row_numbers
from pepscope.results.evidence.named import PairPackets, shown_on
from pepscope.results.evidence.reading import EvidenceReader
from pepscope.results.evidence.recent import RecentBlocks
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN, UNKNOWN_TIME
from pepscope.results.pairs.stretch import NO_STRETCH, STRETCH

#: Pairs that are written at once: some hundred kilobytes.
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


def _shapes(
    table: PairTable, rows: Int64Array, packets: Mapping[int, PairPackets], *, are_lines: bool
) -> dict[Shape, Int64Array]:
    """Which members the pairs in some rows have: of each shape the places of its pairs."""
    columns = table.columns
    codes = np.where(np.asarray(columns.stretch.place)[rows] == NO_STRETCH, 0, 1)
    for vantage in columns.vantages:
        codes = codes * 2 + (vantage.capture.codes_of(rows) != vantage.capture.code(None))
    by_shape: dict[Shape, list[Int64Array]] = defaultdict(list)
    is_named = np.zeros(len(rows), np.bool_)
    is_named[list(packets)] = True
    for code in distinct(codes):
        present, has_stretch = (bool(code & 2), bool(code & 1)), bool(code & 4)
        alike = codes == code
        unnamed = np.flatnonzero(alike & ~is_named)
        if len(unnamed):
            by_shape[Shape((False,) * sum(present), has_stretch, are_lines)].append(unnamed)
        for place in np.flatnonzero(alike & is_named).tolist():
            captures = [each.capture[int(rows[place])] for each in columns.vantages]
            has_frames = tuple(each in packets[place].frames for each in captures if each is not None)
            by_shape[Shape(has_frames, has_stretch, are_lines)].append(np.array([place]))
    return {shape: np.sort(np.concatenate(places)) for shape, places in by_shape.items()}


def _columns(
    table: PairTable,
    rows: Int64Array,
    shape: Shape,
    leading: Sequence[str],
    packets: Sequence[PairPackets | None],
    places: Sequence[int],
) -> list[Column]:
    """What `_head` asks for of pairs of one shape, a column a gap; `leading` is what the piece of evidence says that
    gives the reason, `places` those of lines."""
    columns = table.columns
    found: list[Column] = [list(places)] if shape.is_line else []
    has_frames = iter(shape.has_frames)
    for vantage in columns.vantages:
        captures = vantage.capture.of(rows)
        if captures[0] is None:
            continue
        clients, servers, transports = vantage.client.sliced(rows), vantage.server.sliced(rows), vantage.transport
        frames: Int64Array | None = None
        if next(has_frames):
            known = [named.frames[name] for named, name in zip(packets, captures, strict=True) if named and name]
            frames = np.array(known, np.int64)
        found += [vantage.capture.coded(rows), clients, servers, transports.coded(rows)]
        found += [] if frames is None else [np.ascontiguousarray(frame) for frame in frames.T]
        found.append(connection_filters(clients, servers, transports.coded(rows), frames))
    for shares in (np.asarray(column)[rows] for column in columns.probability):
        found.append(np.where(np.isnan(shares), 0.0, shares))
    found[-len(JUDGED) : -len(JUDGED)] = [columns.verdict.coded(rows), columns.mechanism.coded(rows)]
    found += [
        columns.reasons_with(rows, leading),
        np.asarray(columns.pairing_confidence)[rows],
        _coded_or_none(*columns.pairing_ground.coded(rows)),
    ]
    if shape.has_stretch:
        found += columns.stretch.of(rows)
    started_ns = np.asarray(columns.started_ns)[rows]
    unknown, started = np.flatnonzero(started_ns == UNKNOWN_TIME), times(started_ns)
    return [
        *found,
        np.asarray(columns.packets)[rows],
        *(np.asarray(sizes)[rows] for sizes in columns.payload_bytes),
        _without(started, unknown) if len(unknown) else started,
        np.asarray(columns.duration_s)[rows],
    ]


def _without(texts: SlicedTexts, places: Int64Array) -> list[str | None]:
    """The texts, but None at some places."""
    values: list[str | None] = [*texts]
    for place in places.tolist():
        values[place] = None
    return values


def _coded_or_none(codes: npt.NDArray[np.uint32], values: list[str]) -> Column:
    """Places in a list, with None in place of an empty text."""
    return codes, [value or None for value in values]


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
        rows = np.array([row])
        (shape,) = _shapes(table, rows, {} if packets is None else {0: packets}, are_lines=False)
        values = [listed(column)[0] for column in _columns(table, rows, shape, [leading], [packets], [0])]
        if packets is not None:
            named = map(packets_document, packets.evidence)
            evidence = [{**document, **shown} for document, shown in zip(evidence, named, strict=True)]
        return {**_head(shape, iter(values).__next__), "evidence": evidence}


class PairTexts:
    """The pairs of a table as text, laid out so many levels deep; each stands between `before` and `behind`."""

    def __init__(
        self,
        table: PairTable,
        layout: Layout,
        level: int,
        *,
        before: bytes = b"",
        behind: bytes = b"",
        are_lines: bool = False,
    ) -> None:
        self._table = table
        self._layout = layout
        self._level = level
        self._before = before
        self._are_lines = are_lines
        self._place_of_row = _places_of_rows(table.rows) if are_lines else None
        self._pieces = PieceTexts(layout, level + 2)
        self._packets = PacketTexts(layout, level + 2)
        self._heads: dict[Shape, Template] = {}
        self._recent = RecentBlocks[tuple[memoryview, list[int]]]()
        within, inside = layout.line(level + 1), layout.line(level + 2)
        self._closing = layout.line(level) + b"}"
        name = b"," + within + b'"evidence"' + layout.after_name
        #: Without evidence; before, between and behind the pieces of evidence of a pair.
        self._around = [
            Template.of_text(text)
            for text in (
                name + b"[]" + self._closing + behind,
                name + b"[" + inside,
                b"," + inside,
                within + b"]" + self._closing + behind,
            )
        ]

    def chunks(self, jobs: int = 1) -> Iterator[Octets]:
        """The texts of all pairs, some at a time, made by up to so many processes."""
        table = self._table
        if table.is_in_order:
            yield from made_in_order(lambda block: self._of_block(block)[0], table.columns.evidence.blocks, jobs)
            return
        if _are_scattered(table):
            blocks = map(self._of_block, range(table.columns.evidence.blocks))
            yield from reordered(blocks, row_numbers(table.rows), _BATCH)
            return
        rows = iter(table.rows)
        while batch := list(islice(rows, _BATCH)):
            yield b"".join(map(self._text, batch))

    def _text(self, row: int) -> Octets:
        evidence = self._table.columns.evidence
        block = evidence.block_of(row)
        text, places = self._recent.of(block, evidence.connections(block), self._begun)
        place = row - evidence.begin(block)
        return text[places[place] : places[place + 1]]

    def _begun(self, block: int) -> tuple[memoryview, list[int]]:
        """The pairs of a block one after the other, and where the text of each begins."""
        text, ends = self._of_block(block)
        return text, [0, *ends.tolist()]

    def _of_block(self, block: int) -> tuple[memoryview, Int64Array]:
        """The pairs whose evidence is packed together, one after the other, and where the text of each ends."""
        table = self._table
        begin, (ends, parts) = table.columns.evidence.begin(block), table.columns.evidence.parts(block, as_arrays=True)
        rows = np.arange(begin, begin + len(ends) - 1)
        packets = table.packets_of_rows(rows)
        shapes: list[tuple[Template, Sequence[Column]]] = [(each, []) for each in self._around]
        piece_shapes = np.zeros(int(ends[-1]), np.uint32)
        said: list[tuple[Int64Array, SlicedTexts]] = []
        pointing, shown = shown_on(packets, ends[:-1], len(piece_shapes))
        members = self._packets.of(shown)
        for part in parts:
            summaries, caveats = part.form.said(len(part.places), part.columns)
            said.append((part.places, summaries))
            piece_shapes[part.places] = len(shapes)
            shapes.append(self._pieces.shape(part, summaries, caveats, (pointing[part.places], members)))
        items = np.asarray(table.columns.reason_item)[rows]
        leading = gathered(said, np.where(items == OWN, -1, ends[:-1] + items))
        head_shapes = np.zeros(len(rows), np.uint32)
        for shape, chosen in _shapes(table, rows, packets, are_lines=self._are_lines).items():
            head_shapes[chosen] = len(shapes)
            columns = _columns(
                table, rows[chosen], shape, leading.at(chosen),
                [packets.get(place) for place in chosen.tolist()] if packets else [],
                [] if self._place_of_row is None else self._place_of_row[rows[chosen]].tolist(),
            )  # fmt: skip
            shapes.append((self._head(shape), columns))
        return filled(*_order(ends, head_shapes, piece_shapes), shapes)

    def _head(self, shape: Shape) -> Template:
        if shape not in self._heads:
            document = _head(shape, lambda: VALUE)
            head = Template(document, self._layout, self._level, end=self._closing)
            self._heads[shape] = Template.of_text(self._before + head.pieces[0], *head.pieces[1:])
        return self._heads[shape]


def _are_scattered(table: PairTable) -> bool:
    """Whether pairs in their order go from block to block so often that those that were asked for last would be made
    again and again: pairs of captures in temporary files stand in the order of their partitions."""
    evidence = table.columns.evidence
    block_of_place = evidence.blocks_of(row_numbers(table.rows))
    recent, made = RecentBlocks[None](), list[int]()
    for block in block_of_place[np.flatnonzero(np.diff(block_of_place, prepend=-1))].tolist():
        recent.of(block, evidence.connections(block), made.append)
    return len(made) > 2 * evidence.blocks


def _places_of_rows(rows: Sequence[int]) -> Int64Array:
    places = np.zeros(len(rows), np.int64)
    places[row_numbers(rows)] = np.arange(len(rows))
    return places


def _order(
    ends: Int64Array, head_shapes: npt.NDArray[np.uint32], piece_shapes: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint32], Int64Array]:
    """The shapes of pairs with their evidence one after the other, and behind how many of them each pair ends.

    A pair is its head, what stands before evidence (or none), pieces with what stands between them, what stands behind.
    """
    without, before, between, behind = range(4)
    counts = np.diff(ends)
    last = np.cumsum(2 * counts + 2)
    first = last - (2 * counts + 2)
    order = np.full(int(last[-1]), between, np.uint32)
    order[first] = head_shapes
    order[first + 1] = np.where(counts == 0, without, before)
    number = np.arange(len(piece_shapes)) - np.repeat(ends[:-1], counts)
    order[np.repeat(first, counts) + 2 + 2 * number] = piece_shapes
    order[last[counts > 0] - 1] = behind
    return order, last
