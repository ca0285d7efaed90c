"""Evidence on many connections as columns, put into words for those that are read.

A method says of each connection what it found, how firmly, and by which figures. A sentence follows from these, so it
is made when it is read: the finding has a `Wording`, a function of the figures of one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope._core import row_codes
from pepscope.captures.packets import BoolArray as BoolArray
from pepscope.captures.packets import Int64Array as Int64Array
from pepscope.captures.tables.texts import SlicedTexts
from pepscope.results.evidence.growing import Coded
from pepscope.results.verdicts import Evidence, FloatArray, Number, Outcome


class Words(NamedTuple):
    """What is said of one piece of evidence: one sentence, and what could have misled the method."""

    summary: str
    caveats: tuple[str, ...] = ()


#: Makes words of figures. A function of a module, so that tables of evidence can be sent to another process.
Wording = Callable[[Mapping[str, Any]], Words]


#: Makes words of the figures of many connections, each figure a column: sentences, and the caveats of each.
Sentences = Callable[[Mapping[str, Any]], tuple[Sequence[str], Coded[tuple[str, ...]]]]


class _Figures(Mapping[str, Any]):
    """The figures of one connection after the other, and what is kept `beside` these; only the columns that a wording
    reads are gone through."""

    def __init__(self, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], beside: Sequence[str]) -> None:
        self._columns = columns
        self._beside = beside
        self._listed: dict[str, Sequence[Any]] = {}
        self._row = 0
        self.read: set[str] = set()

    def of(self, row: int) -> _Figures:
        """Itself, with the figures of this row."""
        self._row = row
        return self

    def alike(self, name: str) -> Int64Array:
        """A number for each row, equal only where the column has the same value."""
        return alike(self._columns[name])

    def __getitem__(self, name: str) -> Any:
        listed = self._listed.get(name)
        if listed is None:
            column = self._columns[name]
            listed = self._listed[name] = listed_values(column) if name in self._beside else listed_figures(column)
        self.read.add(name)
        return listed[self._row]

    def __iter__(self) -> Iterator[str]:
        self.read.update(self._columns)
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def alike(column: Sequence[Any] | npt.NDArray[Any]) -> Int64Array:
    """A number for each row of a column, equal only where it has the same value."""
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return column.astype(np.float64 if column.dtype.kind == "f" else np.int64, copy=False).view(np.int64)
    if isinstance(column, Coded):
        return column.codes.astype(np.int64)
    return Coded.of([*map(repr, listed_values(column))]).codes.astype(np.int64)


def _worded(wording: Wording, figures: _Figures, count: int) -> Coded[Words]:
    """The words of so many connections, made once for equal figures, as far as the wording reads these: what it reads
    next depends on nothing but what it has read."""
    codes, words = np.zeros(count, np.uint32), list[Words]()
    left = np.arange(count)
    while len(left):
        figures.read.clear()
        wording(figures.of(int(left[0])))
        read = {*figures.read}
        alike, first = row_codes([np.zeros(len(left), np.int64), *(figures.alike(name)[left] for name in sorted(read))])
        is_said = np.zeros(len(first), np.bool_)
        for number, row in enumerate(left[first].tolist()):
            figures.read.clear()
            words.append(wording(figures.of(row)))
            is_said[number] = figures.read <= read
        codes[left] = len(words) - len(first) + alike
        left = left[~is_said[alike]]
    return Coded(codes, words)


class Form(Struct, frozen=True):
    """What pieces of evidence of one finding have in common, whichever connection they are on.

    The sentence is `summary` where all have the same, or what `wording` makes; without either each has one of its own.
    `beside` names figures that only the wording reads; `sentences` makes the words of many connections at once that
    `wording` makes of each.
    """

    method: str
    outcome: Outcome
    finding: str
    names: tuple[str, ...]  # of the numbers
    caveats: tuple[str, ...]
    summary: str | None
    wording: Wording | None = None
    beside: tuple[str, ...] = ()
    sentences: Sentences | None = None

    @property
    def has_own_sentences(self) -> bool:
        """Whether each connection has a sentence of its own, before its figures."""
        return self.summary is None and self.wording is None

    def words(self, values: Sequence[Any], numbers: Mapping[str, Any] | None = None) -> Words:
        """The words of one connection, by what is kept of it; `numbers` are its figures, where they are known."""
        wording = self.wording
        if wording is None:
            return Words(values[0] if self.summary is None else self.summary, self.caveats)
        if numbers is None or self.beside:
            numbers = dict(zip(self.names + self.beside, values, strict=True))
        return wording(numbers)

    def numbers(self, values: Sequence[Any]) -> dict[str, Number]:
        """The figures of one connection, by what is kept of it."""
        if not self.names:
            return {}
        # Sentences of their own stand first, and what is beside the figures last.
        return dict(zip(self.names, values[1:] if self.has_own_sentences else values))  # noqa: B905

    def figures(self, columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The columns of figures among what is kept of many connections."""
        own = int(self.has_own_sentences)
        return columns[own : own + len(self.names)]

    def said(self, count: int, columns: Sequence[Sequence[Any]]) -> tuple[SlicedTexts, Coded[tuple[str, ...]]]:
        """The sentence and the caveats of each of so many connections, by what is kept of them."""
        wording = self.wording
        if wording is None:
            own = SlicedTexts.of(columns[0]) if self.summary is None else SlicedTexts.repeated(self.summary, count)
            return own, Coded(np.zeros(count, np.uint32), [self.caveats])
        read = (*self.names, *self.beside)
        if self.sentences is not None:
            said, caveats = self.sentences(dict(zip(read, columns, strict=True)))
            return SlicedTexts.of(said), caveats
        words = _worded(wording, _Figures(dict(zip(read, columns, strict=True)), self.beside), count)
        summaries = SlicedTexts.of([each.summary for each in words.values])
        return summaries.at(words.codes), Coded.of([each.caveats for each in words.values]).at(words.codes)

    def unworded(self, strength: float, numbers: Mapping[str, Number]) -> Evidence:
        """The piece of evidence on one connection with these figures, without what is said of it."""
        return Evidence(self.method, self.outcome, self.finding, strength, "", numbers)

    def evidence(self, strength: float, values: Sequence[Any]) -> Evidence:
        """The piece of evidence on one connection."""
        numbers = self.numbers(values)
        words = self.words(values, numbers)
        return Evidence(self.method, self.outcome, self.finding, strength, words.summary, numbers, words.caveats)


class EvidenceColumns(Struct, frozen=True):
    """Evidence of one form: rows are connections by their place among those that were examined together, ascending.

    `values` are columns: sentences where each has its own, figures in the order of the form's names, and what is kept
    beside them. Numbers may be arrays (float64, int64, bool), in which NaN is a figure that is not known.
    """

    form: Form
    rows: Int64Array
    strength: FloatArray
    values: tuple[Sequence[Any] | npt.NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def evidence(self, place: int) -> Evidence:
        """The piece of evidence on one connection; `place` counts the rows."""
        return self.form.evidence(float(self.strength[place]), self._kept_of(place))

    def words(self, place: int) -> Words:
        """What is said of one connection; `place` counts the rows."""
        return self.form.words(self._kept_of(place))

    def _kept_of(self, place: int) -> list[Any]:
        """What is kept of one connection."""
        figures = len(self.form.names)
        own, beside = self.values[:figures], self.values[figures:]
        return [*(figure_at(column, place) for column in own), *(value_at(column, place) for column in beside)]

    def of(self, kept: BoolArray) -> EvidenceColumns:
        """The evidence on some of the rows."""
        places = np.flatnonzero(kept)
        values = tuple(
            column[places] if isinstance(column, np.ndarray) else [column[place] for place in places.tolist()]
            for column in self.values
        )
        return EvidenceColumns(self.form, self.rows[places], self.strength[places], values)

    def between(self, first: int, last: int) -> EvidenceColumns:
        """The evidence on the connections from one place up to another, counted from the first."""
        inside = slice(*np.searchsorted(self.rows, [first, last]))
        values = tuple(column[inside] for column in self.values)
        return EvidenceColumns(self.form, self.rows[inside] - first, self.strength[inside], values)

    def at(self, rows: Int64Array) -> EvidenceColumns:
        """The same where the examined connections have other places: connection i that of `rows[i]`."""
        return EvidenceColumns(self.form, rows[self.rows], self.strength, self.values)


def value_at(column: Sequence[Any] | npt.NDArray[Any], place: int) -> Any:
    """One of `listed_values`."""
    return column.item(place) if isinstance(column, np.ndarray) and column.ndim == 1 else listed_values(column)[place]


def listed_values(column: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any]:
    """A column as a list."""
    return column.tolist() if isinstance(column, np.ndarray) else column


def listed_figures(column: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any]:
    """A column of figures as a list: None for NaN in an array."""
    if not isinstance(column, np.ndarray):
        return column
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        for place in np.flatnonzero(np.isnan(column)).tolist():
            values[place] = None
    return values


def figure_at(column: Sequence[Any] | npt.NDArray[Any], place: int) -> Any:
    """One of `listed_figures`."""
    value = value_at(column, place)
    is_unknown = isinstance(column, np.ndarray) and value != value
    return None if is_unknown else value


class Figure(NamedTuple):
    """A number of many connections; `is_known` says of which (None: of all)."""

    name: str
    values: npt.NDArray[Any] | Sequence[Any]
    is_known: BoolArray | None = None

    def at(self, rows: Int64Array) -> Figure:
        """The number of some of them."""
        return Figure(self.name, _column(self.values, rows), None if self.is_known is None else self.is_known[rows])


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Numbers rounded as `round` rounds each: to the decimal that is nearest, which scaling does not always give."""
    scale = 10.0**digits
    scaled = values * scale
    near = np.rint(scaled) / scale
    halfway = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-6
    for place in np.flatnonzero(halfway).tolist():
        near.flat[place] = round(float(values.flat[place]), digits)
    return np.asarray(near)


def evidence_columns(
    method: str,
    finding: Any,
    rows: Int64Array,
    strength: FloatArray,
    figures: Sequence[Figure],
    wording: Wording | Words,
    beside: Sequence[Figure] = (),
    sentences: Sentences | None = None,
) -> list[EvidenceColumns]:
    """Evidence of a `pepscope.results.finding.Finding` on the connections `rows`: a form for each set of known figures.

    Figures have a value for each of the rows. `wording` may be the words themselves where all have the same;
    `sentences` makes the words of many connections at once.
    """
    said = wording if isinstance(wording, Words) else None
    made = None if isinstance(wording, Words) else wording
    kept: list[EvidenceColumns] = []
    for names, places in _by_known_figures(figures, len(rows)):
        chosen = [figure for figure in figures if figure.name in names]
        form = Form(
            method, finding.row.outcome, finding, tuple(figure.name for figure in chosen), said.caveats if said else (),
            said.summary if said else None, made, tuple(figure.name for figure in beside), sentences,
        )  # fmt: skip
        values = tuple(_column(figure.values, places) for figure in (*chosen, *beside))
        kept.append(EvidenceColumns(form, rows[places], strength[places], values))
    return kept


def evidence_where(
    found: BoolArray,
    method: str,
    finding: Any,
    figures: Sequence[Figure],
    wording: Wording | Words,
    beside: Sequence[Figure] = (),
    strength: FloatArray | None = None,
) -> list[EvidenceColumns]:
    """Evidence of a finding on those of the examined connections of which it was `found`.

    Figures and `strength` (without it 0, as of what is undecided) have a value for each examined connection.
    """
    rows = np.flatnonzero(found)
    if not len(rows):
        return []
    firm = np.zeros(len(rows)) if strength is None else strength[rows]
    some, others = ([figure.at(rows) for figure in kept] for kept in (figures, beside))
    return evidence_columns(method, finding, rows, firm, some, wording, others)


def _by_known_figures(figures: Sequence[Figure], count: int) -> list[tuple[frozenset[str], Int64Array]]:
    """The rows that have the same figures, and the names of these."""
    if not count:
        return []
    always = [figure.name for figure in figures if figure.is_known is None]
    sometimes = [figure for figure in figures if figure.is_known is not None]
    if not sometimes:
        return [(frozenset(always), np.arange(count))]
    known = np.array([figure.is_known for figure in sometimes])
    places, first = row_codes([*known.astype(np.int64)])
    return [
        (
            frozenset(
                [*always, *(figure.name for figure, is_known in zip(sometimes, known[:, at], strict=True) if is_known)]
            ),
            np.flatnonzero(places == number),
        )
        for number, at in enumerate(first.tolist())
    ]


def _column(values: npt.NDArray[Any] | Sequence[Any], places: Int64Array) -> npt.NDArray[Any] | Sequence[Any]:
    if not isinstance(values, np.ndarray):
        return [values[place] for place in places.tolist()]
    chosen, kind = values[places], _KEPT_AS.get(values.dtype.kind)
    return chosen.tolist() if kind is None else chosen.astype(kind, copy=False)


#: The types of arrays that columns of evidence are, by the kinds of what methods give.
_KEPT_AS: Mapping[str, type[np.generic]] = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}


def columns_of(evidence: Sequence[Evidence | None]) -> list[EvidenceColumns]:
    """Evidence that is already in words as columns: an item for each connection, None where there is none."""
    rows: dict[tuple[object, ...], list[int]] = {}
    alike: dict[int, list[int]] = {}  # by object: what is the same on many connections is often one
    for row, item in enumerate(evidence):
        if item is None:
            continue
        places = alike.get(id(item))
        if places is None:
            places = alike[id(item)] = rows.setdefault(form_key(item), [])
        places.append(row)
    return [_in_words(evidence, places) for places in rows.values()]


def form_key(item: Evidence) -> tuple[object, ...]:
    """What pieces of evidence have in common that share a form."""
    names = tuple(item.numbers)
    # A finding that a plug-in declares may have the text of another's.
    common = (item.method, item.outcome, type(item.finding), item.finding, names, item.caveats)
    return common if names else (*common, item.summary)


def _in_words(evidence: Sequence[Evidence | None], rows: Sequence[int]) -> EvidenceColumns:
    items = [item for row in rows if (item := evidence[row]) is not None]
    first = items[0]
    names = tuple(first.numbers)
    form = Form(first.method, first.outcome, first.finding, names, first.caveats, None if names else first.summary)
    values = [[item.numbers[name] for item in items] for name in names]
    if names:
        values.insert(0, [item.summary for item in items])
    return EvidenceColumns(form, np.array(rows, np.int64), np.array([item.strength for item in items]), tuple(values))
