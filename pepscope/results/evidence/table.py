"""The evidence on many connections, as columns: what repeats is held once, the rest is packed.

Sentences are made when they are read, but for those that came as words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from threading import RLock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from pepscope.captures.tables.texts import SlicedTexts, gathered
from pepscope.results.distinct import distinct, renumbered
from pepscope.results.evidence.columns import EvidenceColumns, Form, Int64Array, columns_of, listed_figures
from pepscope.results.evidence.growing import BytesColumn, Coded
from pepscope.results.evidence.packing import Kept, KeptColumn, packed, unpacked
from pepscope.results.evidence.pieces import Pieces
from pepscope.results.evidence.recent import RecentBlocks
from pepscope.results.verdicts import Evidence

#: Sentences without a figure that are held once; beyond so many different ones each is packed with its connection.
_MOST_SENTENCES = 4096

#: Connections that are added one by one and packed together: what they have in common is held once, and reading one of
#: them unpacks no more than so many.
_PACKED_TOGETHER = 32


#: What gives evidence in columns, in blocks of so many connections.
Later: TypeAlias = Callable[[], Iterable[tuple[int, Sequence[EvidenceColumns]]]]


class Part(NamedTuple):
    """Pieces of evidence of one form in a block: their places among its pieces, and what is kept of them as columns."""

    places: Int64Array
    form: Form
    strengths: Any  # an array, or a list
    columns: Sequence[Any]


class _Unpacked(NamedTuple):
    """What was packed together, and of each piece, counted from `first`, its part and its place in that."""

    first: int
    content: Sequence[Kept]
    part: Int64Array
    place: Int64Array

    @classmethod
    def of(cls, first: int, content: Sequence[Kept]) -> _Unpacked:
        """The content of a block whose first piece is so many pieces behind the first of all."""
        counts = [len(part.rows) for part in content]
        rows = np.concatenate([part.rows for part in content] or [np.zeros(0, np.int64)])
        order = np.argsort(rows, kind="stable")  # of each connection the pieces are in the order of the parts
        place = np.concatenate([np.arange(count) for count in counts] or [np.zeros(0, np.int64)])
        return cls(first, content, np.repeat(np.arange(len(content)), counts)[order], place[order])

    def kept_of(self, piece: int) -> list[Any]:
        """What is kept of a piece."""
        at = piece - self.first
        part: Kept = self.content[self.part[at]]
        return part.at(int(self.place[at]))


class EvidenceTable:
    """Evidence by connection; appended once, made again when it is asked for."""

    def __init__(self) -> None:
        self._forms: list[Form] = []
        self._form_of: dict[tuple[object, ...], int] = {}
        self._sentences = 0
        self._ends = array("q", [0])  # of each connection's rows
        self._form = array("I")
        self._strength = array("d")
        self._latest: list[Sequence[Evidence]] = []  # of connections that are not packed yet
        self._later = deque[Later]()  # what gives columns, which are asked for when any evidence is
        self._packing = RLock()  # results are read by several threads
        self._packed = BytesColumn()  # what is kept of connections that were added together
        self._numbers: dict[int, Sequence[Kept]] = {}  # blocks of numbers alone, which are not packed
        self._packed_until = array("q")  # the row after the last one of each of these
        self._unpacked = RecentBlocks[_Unpacked]()
        #: The block that was added last as it was: what was judged together is read before more is added.
        self._as_added: tuple[int, Sequence[Kept]] | None = None

    def __getstate__(self) -> dict[str, object]:
        self._pack()
        return {name: value for name, value in self.__dict__.items() if name != "_packing"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__ = {**state, "_packing": RLock()}

    def append(self, evidence: Sequence[Evidence]) -> None:
        """Add what was found on one more connection."""
        if self._later:
            self._pack()
        self._latest.append(evidence)
        if len(self._latest) == _PACKED_TOGETHER:
            self._pack()

    def append_columns(self, count: int, parts: Sequence[EvidenceColumns]) -> None:
        """Add what was found on so many more connections; of each the pieces are in the order of the parts."""
        self._pack()
        self._append_columns(count, parts)

    def append_later(self, found: Later) -> None:
        """Add what was found on more connections, in blocks of so many: `found` is called when any evidence is asked
        for, which a table of verdicts never does. What it raises is raised there, each time."""
        if self._latest:
            self._pack()
        self._later.append(found)

    def _append_columns(self, count: int, parts: Sequence[EvidenceColumns]) -> None:
        if not count:
            return
        kept = [self._kept(part) for part in parts]
        rows = np.concatenate([part.rows for part in parts] or [np.zeros(0, np.int64)])
        order = np.argsort(rows, kind="stable")
        forms = np.concatenate(
            [np.full(len(part), number, np.uint32) for part, (number, _) in zip(parts, kept, strict=True)]
            or [np.zeros(0, np.uint32)]
        )
        strengths = np.concatenate([part.strength for part in parts] or [np.zeros(0)])
        self._form.frombytes(forms[order].tobytes())
        self._strength.frombytes(strengths[order].astype(np.float64).tobytes())
        ends = self._ends[-1] + np.cumsum(np.bincount(rows, minlength=count))
        self._ends.frombytes(ends.astype(np.int64).tobytes())
        block = [
            Kept(part.rows, columns, _figures_until(self._forms[number]))
            for part, (number, columns) in zip(parts, kept, strict=True)
            if len(part)
        ]
        self._packed_until.append(len(self._ends) - 1)
        if all(part.is_of_numbers for part in block):
            self._numbers[len(self._packed)] = block
            self._packed.append(b"")
        else:
            self._as_added = len(self._packed), block
            self._packed.append(packed(block))

    def extend(self, other: EvidenceTable) -> None:
        """Add the connections of another table."""
        self._pack()
        other._pack()
        self._as_added = None
        row, base = len(self._ends) - 1, len(self._form)
        forms = np.array(
            [
                self._form_of[key] if key in self._form_of else self._add(key, other._forms[number])
                for key, number in other._form_of.items()
            ],
            np.uint32,
        )
        self._form.frombytes(forms[np.asarray(other._form)].tobytes() if len(other._form) else b"")
        self._strength.extend(other._strength)
        self._ends.frombytes((base + np.asarray(other._ends)[1:]).tobytes())
        self._numbers |= {len(self._packed) + block: numbers for block, numbers in other._numbers.items()}
        self._packed.extend(other._packed)
        self._packed_until.extend(row + end for end in other._packed_until)

    def _pack(self) -> None:
        if not (self._later or self._latest):
            return
        with self._packing:
            while self._later:
                # Nothing is forgotten that could not be made, and other threads wait for what is not there yet.
                for count, columns in list(self._later[0]()):
                    self._append_columns(count, columns)
                self._later.popleft()
            if latest := self._latest:
                parts = [part for placed in zip_longest(*latest) for part in columns_of(placed)]
                self._append_columns(len(latest), parts)
                self._latest = []

    def __getitem__(self, row: int) -> tuple[Evidence, ...]:
        """What was found on a connection."""
        return tuple(self.item(row, place) for place in range(len(self.forms(row))))

    def unworded(self, rows: Int64Array, names: frozenset[str]) -> list[list[Evidence]]:
        """What was found on some connections, without sentences and caveats, and of figures those of these names."""
        of_rows = self.blocks_of(rows)
        made: list[list[Evidence]] = [[] for _ in rows]
        for block in distinct(of_rows):
            number, added = self._as_added or (None, ())
            ends, parts = self._parts(block, added if number == block else self._content(block))
            owner = np.full(len(ends) - 1, -1)
            asked = np.flatnonzero(of_rows == block)
            owner[rows[asked] - self.begin(block)] = asked
            of_pieces = np.repeat(owner, np.diff(ends))
            for part in parts:  # in the order of the pieces of each connection
                figures = [
                    (name, listed_figures(column))
                    for name, column in zip(part.form.names, part.form.figures(part.columns), strict=True)
                    if name in names
                ]
                owners = of_pieces[part.places]
                for at in np.flatnonzero(owners >= 0).tolist():
                    numbers = {name: column[at] for name, column in figures}
                    made[owners[at]].append(part.form.unworded(float(part.strengths[at]), numbers))
        return made

    def item(self, row: int, place: int) -> Evidence:
        """One piece of what was found on a connection."""
        self._pack()
        piece = self._ends[row] + place
        return self._forms[self._form[piece]].evidence(self._strength[piece], self._unpacked_with(row).kept_of(piece))

    def summaries(self, rows: Int64Array, items: Int64Array) -> SlicedTexts:
        """What one piece of evidence says on each connection of some rows: of each its place among the connection's,
        or a negative number where nothing is asked for, which is an empty text."""
        of_rows, is_asked = self.blocks_of(rows), items >= 0
        said: list[tuple[Int64Array, SlicedTexts]] = []
        place_of = np.full(len(rows), -1)
        before = 0
        for block in distinct(of_rows[is_asked]):
            asked = np.flatnonzero(is_asked & (of_rows == block))
            begin, (ends, parts) = self.begin(block), self.parts(block, as_arrays=True)
            places = ends[rows[asked] - begin] + items[asked]
            place_of[asked] = before + places
            is_wanted = np.zeros(int(ends[-1]), np.bool_)
            is_wanted[places] = True
            for part in parts:
                wanted = np.flatnonzero(is_wanted[part.places])
                if len(wanted):
                    is_all = len(wanted) == len(part.places)
                    columns: Sequence[Any] = (
                        part.columns if is_all else [_chosen(each, wanted) for each in part.columns]
                    )
                    said.append((before + part.places[wanted], part.form.said(len(wanted), columns)[0]))
            before += int(ends[-1])
        return gathered(said, place_of)

    def block_of(self, row: int) -> int:
        """Which connections were packed together with that of a row."""
        self._pack()
        return bisect_right(self._packed_until, row)

    def blocks_of(self, rows: Int64Array) -> Int64Array:
        """`block_of` of some rows."""
        self._pack()
        return np.searchsorted(np.asarray(self._packed_until), rows, side="right")

    @property
    def blocks(self) -> int:
        """How many times connections were packed together."""
        self._pack()
        return len(self._packed_until)

    def begin(self, block: int) -> int:
        """The row of the first connection of a block."""
        return self._packed_until[block - 1] if block else 0

    def connections(self, block: int) -> int:
        """How many connections were packed together in a block."""
        return self._packed_until[block] - self.begin(block)

    def parts(self, block: int, *, as_arrays: bool = False) -> tuple[Int64Array, list[Part]]:
        """Where the pieces on each connection of a block begin, the first at 0, and where the last ones end; and the
        pieces, form by form. Columns may be arrays where they are asked for so: NaN is a figure that is not known."""
        ends, parts = self._parts(block, content := self._content(block))
        if as_arrays:
            return ends, parts
        listed = zip(parts, content, strict=True)
        return ends, [part._replace(strengths=part.strengths.tolist(), columns=kept.listed()) for part, kept in listed]

    def _parts(self, block: int, content: Sequence[Kept]) -> tuple[Int64Array, list[Part]]:
        """`parts` of a block whose content is known."""
        begin = self.begin(block)
        ends = np.array(self._ends[begin : self._packed_until[block] + 1])
        base = int(ends[0])
        ends -= base
        next_places = ends[:-1].copy()
        strengths, forms = (np.asarray(column[base : base + int(ends[-1])]) for column in (self._strength, self._form))
        made = []
        for rows, columns, _ in content:
            places = next_places[rows]
            next_places[rows] += 1
            form = self._forms[forms[places[0]]]
            made.append(Part(places, form, strengths[places], columns))
        return ends, made

    def forms(self, row: int) -> list[Form]:
        """What was found on a connection, without strength and figures."""
        self._pack()
        forms = self._forms
        return [forms[number] for number in self._form[self._ends[row] : self._ends[row + 1]]]

    def strengths(self, row: int) -> Sequence[float]:
        """How firmly each of `forms` was found."""
        self._pack()
        return self._strength[self._ends[row] : self._ends[row + 1]]

    def pieces(self, rows: Int64Array) -> Pieces:
        """What was found on some connections."""
        self._pack()
        begin, ends = (np.asarray(self._ends)[rows + more] for more in (0, 1))
        counts = ends - begin
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.repeat(begin, counts) + number
        codes, form = renumbered(np.asarray(self._form)[at])
        forms = [self._forms[code] for code in codes.tolist()]
        strength = np.asarray(self._strength)[at]
        return Pieces(forms, np.repeat(np.arange(len(rows)), counts), number, form, strength)

    def _unpacked_with(self, row: int) -> _Unpacked:
        """What was packed together with what was found on a connection."""
        block = bisect_right(self._packed_until, row)
        return self._unpacked.of(block, self.connections(block), self._unpack)

    def _unpack(self, block: int) -> _Unpacked:
        return _Unpacked.of(self._ends[self.begin(block)], self._content(block))

    def _content(self, block: int) -> Sequence[Kept]:
        """What was packed together, of which no part is empty."""
        numbers = self._numbers.get(block)
        return unpacked(self._packed[block]) if numbers is None else numbers

    def _kept(self, part: EvidenceColumns) -> tuple[int, Sequence[KeptColumn]]:
        """The number of the form of these pieces of evidence, and what must be kept of each."""
        form, key = part.form, _key(part.form)
        known = self._form_of.get(key)
        if known is not None:
            return known, part.values
        if form.summary is None:
            return self._add(key, form), part.values
        if self._sentences < _MOST_SENTENCES:
            self._sentences += 1
            return self._add(key, form), part.values
        own = replace(form, summary=None)
        key = _key(own)
        known = self._form_of.get(key)
        return self._add(key, own) if known is None else known, ([form.summary] * len(part), *part.values)

    def _add(self, key: tuple[object, ...], form: Form) -> int:
        number = self._form_of[key] = len(self._forms)
        self._forms.append(form)
        return number


def _key(form: Form) -> tuple[object, ...]:
    # A finding that a plug-in declares may have the text of another's.
    return (
        form.method, form.outcome, type(form.finding), form.finding, form.names, form.caveats, form.summary,
        form.wording, form.beside,
    )  # fmt: skip


def _chosen(column: KeptColumn, places: Int64Array) -> KeptColumn:
    if isinstance(column, np.ndarray):
        return column[places]
    return column.at(places) if isinstance(column, Coded) else [column[place] for place in places.tolist()]


def _figures_until(form: Form) -> int:
    """How many of the columns that are kept may be figures: beside these there is a sentence at the front, maybe."""
    return int(form.has_own_sentences) + len(form.names)
