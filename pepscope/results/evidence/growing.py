"""Columns that grow row by row and take little more memory than what they hold."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from pepscope.captures.tables.texts import SlicedTexts

Value = TypeVar("Value", bound=Hashable)


class Repeated(Sequence[Value]):
    """One value in so many rows, which columns add at once."""

    def __init__(self, value: Value, count: int) -> None:
        self.value = value
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> Value: ...
    @overload
    def __getitem__(self, row: slice) -> Repeated[Value]: ...
    def __getitem__(self, row: int | slice) -> Value | Repeated[Value]:
        rows = range(self._count)[row]
        return self.value if isinstance(rows, int) else Repeated(self.value, len(rows))


class Coded(Sequence[Value]):
    """Values of which many rows have the same one: each row is a place in a list."""

    def __init__(self, codes: npt.NDArray[np.uint32], values: Sequence[Value]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, values: Sequence[Value]) -> Coded[Value]:
        """The values, of which each that occurs is listed once."""
        distinct = [*dict.fromkeys(values)]
        code_of = dict(zip(distinct, range(len(distinct)), strict=True))
        return cls(np.fromiter(map(code_of.__getitem__, values), np.uint32, len(values)), distinct)

    def at(self, rows: npt.NDArray[np.integer]) -> Coded[Value]:
        """The values of some rows."""
        return Coded(self.codes[rows], self.values)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> Value: ...
    @overload
    def __getitem__(self, row: slice) -> Coded[Value]: ...
    def __getitem__(self, row: int | slice) -> Value | Coded[Value]:
        return Coded(self.codes[row], self.values) if isinstance(row, slice) else self.values[int(self.codes[row])]

    def __iter__(self) -> Iterator[Value]:
        return map([*self.values].__getitem__, self.codes.tolist())


class TextColumn:
    """Texts as one run of UTF-8: eight bytes a row beside the text, where a `str` of its own takes 57."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, text: str) -> None:
        """Add a row; paths that are no Unicode keep their surrogates."""
        self._content += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._content))

    def append_all(self, texts: Sequence[str]) -> None:
        """Add a row for each text."""
        if isinstance(texts, Repeated):
            self._append_repeated(texts.value.encode("utf-8", "surrogatepass"), len(texts))
            return
        if isinstance(texts, SlicedTexts):
            content, ends = texts.run()
            self._ends.frombytes((ends + len(self._content)).tobytes())
            self._content += content.data
            return
        together = "".join(texts)
        if together.isascii():
            _append_ends(self._ends, texts, len(self._content))
            self._content += together.encode()
            return
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        _append_ends(self._ends, encoded, len(self._content))
        self._content += b"".join(encoded)

    def _append_repeated(self, encoded: bytes, count: int) -> None:
        ends = len(self._content) + len(encoded) * np.arange(1, count + 1, dtype=np.int64)
        self._ends.frombytes(ends.tobytes())
        self._content += encoded * count

    def extend(self, other: TextColumn) -> None:
        """Add the rows of another column."""
        _append_ends_of(self._ends, other._ends, len(self._content))
        self._content += other._content

    def __getitem__(self, row: int) -> str:
        return self._content[self._ends[row] : self._ends[row + 1]].decode("utf-8", "surrogatepass")

    def sliced(self, rows: npt.NDArray[np.int64]) -> SlicedTexts:
        """The texts of some rows."""
        ends = np.asarray(self._ends)
        begins, stops = ends[rows], ends[rows + 1]
        first, last = (int(begins.min()), int(stops.max())) if len(rows) else (0, 0)
        content = np.frombuffer(self._content[first:last], np.uint8)
        return SlicedTexts(content, begins - first, stops - first)


class BytesColumn:
    """Byte strings as one run."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, content: bytes) -> None:
        """Add a row."""
        self._content += content
        self._ends.append(len(self._content))

    def append_all(self, contents: Sequence[bytes]) -> None:
        """Add a row for each of these."""
        _append_ends(self._ends, contents, len(self._content))
        self._content += b"".join(contents)

    def extend(self, other: BytesColumn) -> None:
        """Add the rows of another column."""
        _append_ends_of(self._ends, other._ends, len(self._content))
        self._content += other._content

    def __getitem__(self, row: int) -> bytes:
        return bytes(self._content[self._ends[row] : self._ends[row + 1]])


class CodedColumn(Generic[Value]):
    """Values of which many rows have the same one: four bytes a row."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.codes = array("I")
        self._code_of: dict[Value, int] = {}

    def append(self, value: Value) -> None:
        """Add a row."""
        self.codes.append(self._code(value))

    def extend(self, other: CodedColumn[Value]) -> None:
        """Add the rows of another column."""
        self.append_all(other.values, np.asarray(other.codes, np.int64))

    def append_each(self, values: Sequence[Value]) -> None:
        """Add a row for each value."""
        if isinstance(values, Repeated):
            if len(values):
                self.append_all([values.value], np.zeros(len(values), np.int64))
            return
        codes = {value: self._code(value) for value in dict.fromkeys(values)}
        self.codes.extend(map(codes.__getitem__, values))

    def append_all(self, values: Sequence[Value], places: npt.NDArray[np.int64]) -> None:
        """Add a row for each place: the value there."""
        codes = np.asarray([self._code(value) for value in values], np.uint32)
        self.codes.frombytes(codes[places].tobytes())

    def __getitem__(self, row: int) -> Value:
        return self.values[self.codes[row]]

    def __setitem__(self, row: int, value: Value) -> None:
        self.codes[row] = self._code(value)

    def change(self, rows: npt.NDArray[np.int64], change: Callable[[Value], Value]) -> None:
        """Replace the values of some rows by what is made of each."""
        distinct, which = np.unique(self.codes_of(rows), return_inverse=True)
        changed = np.asarray([self._code(change(self.values[code])) for code in distinct.tolist()], np.uint32)
        np.asarray(self.codes)[rows] = changed[which]

    def of(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> list[Value]:
        """The values of some rows."""
        values = self.values
        return [values[code] for code in self.codes_of(rows).tolist()]

    def codes_of(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Of some rows, where the value stands in `values`."""
        return np.asarray(self.codes, np.uint32)[row_numbers(rows)]

    def coded(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint32], list[Value]]:
        """The values of some rows, as places in a list."""
        return self.codes_of(rows), self.values

    def code(self, value: Value) -> int:
        """Where a value stands in `values`; -1 where no row has it."""
        return self._code_of.get(value, -1)

    def _code(self, value: Value) -> int:
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code


def row_numbers(rows: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows as an array: NumPy makes an object of each number of a range."""
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, rows.step, dtype=np.int64)
    return np.asarray(rows, np.int64)


def _append_ends_of(ends: array[int], others: array[int], base: int) -> None:
    ends.frombytes((np.asarray(others, np.int64)[1:] + base).tobytes())


def _append_ends(ends: array[int], contents: Sequence[bytes] | Sequence[str], base: int) -> None:
    ends.extend(islice(accumulate(map(len, contents), initial=base), 1, None))
