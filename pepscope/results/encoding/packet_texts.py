"""The packets that show many findings as text, which the core fills in from columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pepscope.captures.files.named_packets import EvidencePacket, Locator, reading_line
from pepscope.captures.packets import Int64Array
from pepscope.captures.tables.texts import SlicedTexts, joined, times
from pepscope.results.encoding.packets import find_documents, packet_documents
from pepscope.results.encoding.pieces import UNNAMED
from pepscope.results.encoding.templates import VALUE, Column, Layout, Template, filled
from pepscope.results.evidence.named import PacketColumns

#: A gap of a document that `json` wrote.
_GAP = json.dumps(VALUE).encode()


def _columns(packets: PacketColumns) -> list[Column]:
    """What fills the gaps of each packet."""
    captures = packets.capture
    return [(captures.codes, [*captures.values]), packets.frame, times(packets.time_ns), packets.shows]


def _locators(packets: PacketColumns) -> tuple[Int64Array, list[Column]]:
    """How many captures each finding has packets in, and what fills the gaps of what finds them again in one."""
    captures, counts = packets.capture.values, packets.counts
    owner = np.repeat(np.arange(len(counts)), counts)
    # Of each finding captures come in the order of their first packets.
    _, first, which = np.unique(owner * len(captures) + packets.capture.codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    codes = packets.capture.codes[first[order]]
    filters = _frame_filters(place[which], packets.frame, len(order))
    readings = [reading_line(capture) for capture in captures]
    lines = joined(len(order), ["", " -Y '", "'"], [(codes, [each or "" for each in readings]), filters])
    commands: Column = lines
    if None in readings:
        commands = [None if readings[code] is None else line for code, line in zip(codes, lines, strict=True)]
    return np.bincount(owner[first], minlength=len(counts)), [(codes, [*captures]), filters, commands]


def _frame_filters(owner: Int64Array, frames: Int64Array, count: int) -> SlicedTexts:
    """The display filters of so many owners that select the frames of each, as `frames_filter` gives them."""
    order = np.lexsort((frames, owner))
    owner, frames = owner[order], frames[order]
    is_first = np.ones(len(frames), np.bool_)
    is_first[1:] = (owner[1:] != owner[:-1]) | (frames[1:] != frames[:-1])
    counts = np.bincount(owner[is_first], minlength=count)
    number = _Lists(counts, Template.of_text(b"", b""), [frames[is_first]], b", ", b"}")
    return _texts_of(b"frame.number in {", [number], b"")


class _Lists(Struct, frozen=True):
    """A list in each of many texts: how many items each has, their template and columns, and what stands between items
    and behind the last one."""

    counts: Int64Array
    item: Template
    columns: Sequence[Column]
    between: bytes
    behind: bytes


def _texts_of(begin: bytes, lists: Sequence[_Lists], empty: bytes, *ahead: bytes) -> SlicedTexts:
    """Texts one behind the other: those that come `ahead`, then of each place `begin` and the lists, none of which is
    empty, or `empty` where all are."""
    is_empty = lists[0].counts == 0
    lengths = 1 + 2 * np.sum([each.counts for each in lists], axis=0)
    ends = np.cumsum(lengths)
    at = ends - lengths
    order = np.zeros(int(lengths.sum()), np.uint32)
    order[at[is_empty]] = 1
    shapes: list[tuple[Template, Sequence[Column]]] = [(Template.of_text(begin), []), (Template.of_text(empty), [])]
    at += 1
    for each in lists:
        shape, counts = len(shapes), each.counts
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        items = np.repeat(at, counts) + 2 * number
        order[items], order[items + 1] = shape, shape + 1
        at = at + 2 * counts
        order[at[~is_empty] - 1] = shape + 2
        shapes += [
            (each.item, each.columns),
            (Template.of_text(each.between), []),
            (Template.of_text(each.behind), []),
        ]
    first = len(shapes) + np.arange(len(ahead))
    shapes += [(Template.of_text(each), []) for each in ahead]
    order = np.concatenate([first.astype(np.uint32), order])
    text, places = filled(order, np.concatenate([1 + np.arange(len(ahead)), len(ahead) + ends]), shapes)
    return SlicedTexts.behind_each_other(np.frombuffer(text, np.uint8), np.append(0, places))


def _two_packets() -> list[dict[str, Any]]:
    """Two packets whose values are gaps: the text between these two stands between any two."""
    return [dict.fromkeys(each, VALUE) for each in packet_documents([EvidencePacket("", 0, 0, "")] * 2)]


class PacketTexts:
    """Makes the members that name packets, of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        document = {"packets": _two_packets(), "find": find_documents([Locator(VALUE, VALUE, VALUE)] * 2)}
        begin, *self._pieces = Template(document, layout, level).pieces
        self._begin = b"," + begin[1:]
        self._empty = b"," + layout.text({"packets": [], "find": []}, level)[1:]
        self._unnamed = b"," + layout.text(UNNAMED, level)[1:]

    def of(self, named: Sequence[Sequence[EvidencePacket]]) -> SlicedTexts:
        """The members of a piece of evidence for which no packets were looked for, then those of each of many that name
        some: JSON with the last bracket of the piece."""
        packets = PacketColumns.of(named)
        counts, columns = _locators(packets)
        pieces = self._pieces
        lists = [
            _Lists(packets.counts, Template.of_text(b"", *pieces[:3], b""), _columns(packets), pieces[3], pieces[7]),
            _Lists(counts, Template.of_text(b"", *pieces[8:10], b""), columns, pieces[10], pieces[13]),
        ]
        return _texts_of(self._begin, lists, self._empty, self._unnamed)


def packets_in_ascii(named: Sequence[Sequence[EvidencePacket]]) -> Sequence[str]:
    """`null`, then the `packet_documents` of many findings, each as `json.dumps` writes them."""
    packets = PacketColumns.of(named)
    said = "".join({*packets.capture.values, *packets.shows})
    if not (said.isascii() and said.isprintable()):
        # which escapes what is no printable ASCII
        return ["null", *(json.dumps(packet_documents(each)) for each in named)]
    opening, *pieces = json.dumps(_two_packets()).encode().split(_GAP)
    item = Template.of_text(b"", *pieces[:3], b"")
    return _texts_of(opening, [_Lists(packets.counts, item, _columns(packets), pieces[3], pieces[7])], b"[]", b"null")
