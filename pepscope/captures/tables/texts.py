"""Columns of texts that are kept as one run of UTF-8; strings are made of those that are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from pepscope import _core
from pepscope.captures.packets import Int64Array

Slices: TypeAlias = tuple[npt.NDArray[np.uint8], Int64Array, Int64Array]

#: The same as the core takes it.
CoreTexts: TypeAlias = Slices | list[str] | Int64Array | tuple[npt.NDArray[np.uint32], list[str]]

#: What texts are joined from: texts, whole numbers, or places in a list of texts.
GivenTexts: TypeAlias = "SlicedTexts | list[str] | Int64Array | tuple[npt.NDArray[np.uint32], list[str]]"


class SlicedTexts(Sequence[str]):
    """Texts as slices of one run of UTF-8, in which what is no Unicode (a path's surrogates) stays as it is."""

    def __init__(self, content: npt.NDArray[np.uint8], begins: Int64Array, ends: Int64Array) -> None:
        self._content = content
        self._begins = begins
        self._ends = ends

    @classmethod
    def behind_each_other(cls, content: npt.NDArray[np.uint8], ends: Int64Array) -> SlicedTexts:
        """Texts of which each begins where the one before it ends; `ends` begins with that of the first."""
        return cls(content, ends[:-1], ends[1:])

    @classmethod
    def repeated(cls, text: str, count: int) -> SlicedTexts:
        """One text in so many rows."""
        content = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        return cls(content, np.zeros(count, np.int64), np.full(count, len(content)))

    @classmethod
    def of(cls, texts: Sequence[str]) -> SlicedTexts:
        """The texts, if they are not sliced yet."""
        return texts if isinstance(texts, SlicedTexts) else joined(len(texts), ["", ""], [list(texts)])

    @property
    def slices(self) -> Slices:
        """The run, and where each text begins and ends in it, as the core takes them."""
        return self._content, self._begins, self._ends

    @property
    def lengths(self) -> Int64Array:
        """How many bytes each text has."""
        return np.asarray(self._ends - self._begins)

    def at(self, rows: npt.NDArray[np.integer]) -> SlicedTexts:
        """The texts of some rows."""
        return SlicedTexts(self._content, self._begins[rows], self._ends[rows])

    def run(self) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """The texts one behind the other, and where each ends."""
        begins, ends = self._begins, self._ends
        if len(begins) and not np.array_equal(begins[1:], ends[:-1]):
            return joined(len(self), ["", ""], [self]).run()
        first, last = (int(begins[0]), int(ends[-1])) if len(begins) else (0, 0)
        return self._content[first:last], ends - first

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> SlicedTexts: ...
    def __getitem__(self, row: int | slice) -> str | SlicedTexts:
        if isinstance(row, slice):
            return SlicedTexts(self._content, self._begins[row], self._ends[row])
        return self._content[self._begins[row] : self._ends[row]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        content = self._content.tobytes()
        for begin, end in zip(self._begins.tolist(), self._ends.tolist(), strict=True):
            yield content[begin:end].decode("utf-8", "surrogatepass")


class KnownTexts(Sequence[str | None]):
    """Texts of which some are not known: None, which are empty ones in `texts`."""

    def __init__(self, texts: SlicedTexts, is_known: npt.NDArray[np.bool_]) -> None:
        content, begins, ends = texts.slices
        self.texts = SlicedTexts(content, begins, np.where(is_known, ends, begins))
        self.is_known = is_known

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> KnownTexts: ...
    def __getitem__(self, row: int | slice) -> str | KnownTexts | None:
        if isinstance(row, slice):
            return KnownTexts(self.texts[row], self.is_known[row])
        return self.texts[row] if self.is_known[row] else None

    def __iter__(self) -> Iterator[str | None]:
        for text, is_known in zip(self.texts, self.is_known.tolist(), strict=True):
            yield text if is_known else None


def joined(rows: int, pieces: list[str], columns: Sequence[GivenTexts]) -> SlicedTexts:
    """Of so many rows the first piece, then the row's text in the first column, the second piece and so on."""
    return SlicedTexts.behind_each_other(*_core.joined_texts(rows, pieces, [given_texts(each) for each in columns]))


def gathered(parts: Sequence[tuple[Int64Array, SlicedTexts]], places: Int64Array) -> SlicedTexts:
    """The texts at some places, an empty one where a place is negative; each of the parts has texts and where they
    stand."""
    begins, ends = np.zeros((2, 1 + max((int(at.max(initial=-1)) for at, _ in parts), default=-1) + 1), np.int64)
    runs, before = [], 0
    for at, texts in parts:
        content, first, last = texts.slices
        begins[at], ends[at] = before + first, before + last
        runs.append(content)
        before += len(content)
    content = runs[0] if len(runs) == 1 else np.concatenate([*runs, np.zeros(0, np.uint8)])
    return SlicedTexts(content, begins[places], ends[places])  # that of -1 is the last one, which is empty


def are_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two columns have the same text in each row."""
    if not (isinstance(one, SlicedTexts) and isinstance(other, SlicedTexts)):
        return [*one] == [*other]
    (content, ends), (other_content, other_ends) = one.run(), other.run()
    return np.array_equal(ends, other_ends) and np.array_equal(content, other_content)


def coded_addresses(end_points: Sequence[str]) -> tuple[Int64Array, list[str]]:
    """The addresses of end points (`ip:port`, IPv6 in brackets) as places in the list of those that differ."""
    column = end_points.slices if isinstance(end_points, SlicedTexts) else [*end_points]
    return _core.coded_addresses(len(end_points), column)


def durations(seconds: npt.NDArray[np.float64]) -> SlicedTexts:
    """Times with three digits and a unit."""
    return SlicedTexts.behind_each_other(*_core.duration_texts(seconds))


def times(times_ns: Int64Array) -> SlicedTexts:
    """Unix times (ns) as RFC 3339 has them, in UTC and to the nanosecond."""
    return SlicedTexts.behind_each_other(*_core.time_texts(times_ns))


def filters(clients: GivenTexts, servers: GivenTexts, transports: GivenTexts, frames: Int64Array | None) -> SlicedTexts:
    """Display filters of connections between end points (`ip:port`, IPv6 in brackets); `frames` are rows of the first
    and the last frame of each: between them no other connection of the file has the same end points."""
    rows = len(clients[0]) if isinstance(clients, tuple) else len(clients)
    found = _core.filter_texts(rows, given_texts(clients), given_texts(servers), given_texts(transports), frames)
    return SlicedTexts.behind_each_other(*found)


def given_texts(column: GivenTexts) -> CoreTexts:
    """A column as the core takes it."""
    return column.slices if isinstance(column, SlicedTexts) else column
