"""The packets that show many findings as text, which the core fills in from columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from pepscope.captures.files.named_packets import EvidencePacket, Locator, reading_line
from pepscope.captures.packets import Int64Array
from pepscope.captures.tables.texts import SlicedTexts, joined, times
from pepscope.results.encoding.packets import find_documents, packet_documents
from pepscope.results.encoding.templates import VALUE, Column, Layout, Octets, Template, filled
from pepscope.results.evidence.growing import Coded

#: A gap of a document that `json` wrote.
_GAP = json.dumps(VALUE).encode()


class _Packets(Struct, frozen=True):
    """The packets of many findings, one finding behind the other, and how many each finding has."""

    counts: Int64Array
    capture: Coded[str]
    frame: Int64Array
    time_ns: Int64Array
    shows: list[str]

    @classmethod
    def of(cls, named: Sequence[Sequence[EvidencePacket]]) -> _Packets:
        packets = [*chain.from_iterable(named)]
        return cls(
            np.array([len(each) for each in named], np.int64),
            Coded.of([packet.capture for packet in packets]),
            np.array([packet.frame for packet in packets], np.int64),
            np.array([packet.time_ns for packet in packets], np.int64),
            [packet.shows for packet in packets],
        )

    @property
    def columns(self) -> list[Column]:
        """What fills the gaps of each packet."""
        return [(self.capture.codes, [*self.capture.values]), self.frame, times(self.time_ns), self.shows]

    def locators(self) -> tuple[Int64Array, list[Column]]:
        """How many captures each finding has packets in, and what fills the gaps of what finds them again in one."""
        captures = self.capture.values
        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        # Of each finding captures come in the order of their first packets.
        _, first, which = np.unique(owner * len(captures) + self.capture.codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        codes = self.capture.codes[first[order]]
        filters = _frame_filters(place[which], self.frame, len(order))
        readings = [reading_line(capture) for capture in captures]
        lines = joined(len(order), ["", " -Y '", "'"], [(codes, [each or "" for each in readings]), filters])
        commands: Column = lines
        if None in readings:
            commands = [None if readings[code] is None else line for code, line in zip(codes, lines, strict=True)]
        counts = np.bincount(owner[first], minlength=len(self.counts))
        return counts, [(codes, [*captures]), filters, commands]


def _frame_filters(owner: Int64Array, frames: Int64Array, count: int) -> SlicedTexts:
    """The display filters of so many owners that select the frames of each, as `frames_filter` gives them."""
    order = np.lexsort((frames, owner))
    owner, frames = owner[order], frames[order]
    is_first = np.ones(len(frames), np.bool_)
    is_first[1:] = (owner[1:] != owner[:-1]) | (frames[1:] != frames[:-1])
    counts = np.bincount(owner[is_first], minlength=count)
    number = _Lists(counts, Template.of_text(b"", b""), [frames[is_first]], b", ", b"}")
    text, ends = _texts_of(b"frame.number in {", [number], b"")
    return SlicedTexts.behind_each_other(np.frombuffer(text, np.uint8), np.append(0, ends))


class _Lists(Struct, frozen=True):
    """A list in each of many texts: how many items each has, their template and columns, and what stands between items
    and behind the last one."""

    counts: Int64Array
    item: Template
    columns: Sequence[Column]
    between: bytes
    behind: bytes


def _texts_of(begin: bytes, lists: Sequence[_Lists], empty: bytes) -> tuple[Octets, Int64Array]:
    """Texts one behind the other, and where each ends: `begin` and the lists, none of which is empty, or `empty` where
    all are."""
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
    return filled(order, ends, shapes)


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

    def of(self, named: Sequence[Sequence[EvidencePacket]]) -> list[bytes]:
        """The members of each of many pieces of evidence, and its last bracket."""
        packets = _Packets.of(named)
        counts, columns = packets.locators()
        pieces = self._pieces
        lists = [
            _Lists(packets.counts, Template.of_text(b"", *pieces[:3], b""), packets.columns, pieces[3], pieces[7]),
            _Lists(counts, Template.of_text(b"", *pieces[8:10], b""), columns, pieces[10], pieces[13]),
        ]
        text, ends = _texts_of(self._begin, lists, self._empty)
        return [bytes(text[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]


def packets_in_ascii(named: Sequence[Sequence[EvidencePacket]]) -> list[str]:
    """The `packet_documents` of many findings, each as `json.dumps` writes them."""
    packets = _Packets.of(named)
    said = "".join({*packets.capture.values, *packets.shows})
    if not (said.isascii() and said.isprintable()):
        return [json.dumps(packet_documents(each)) for each in named]  # which escapes what is no printable ASCII
    opening, *pieces = json.dumps(_two_packets()).encode().split(_GAP)
    item = Template.of_text(b"", *pieces[:3], b"")
    text, ends = _texts_of(opening, [_Lists(packets.counts, item, packets.columns, pieces[3], pieces[7])], b"[]")
    whole = str(text, "ascii")
    return [whole[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
