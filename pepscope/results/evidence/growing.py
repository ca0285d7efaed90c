"""Columns that grow row by row and take little more memory than what they hold."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from itertools import accumulate, islice
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value", bound=Hashable)


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
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        _append_ends(self._ends, encoded, len(self._content))
        self._content += b"".join(encoded)

    def extend(self, other: TextColumn) -> None:
        """Add the rows of another column."""
        base = len(self._content)
        self._content += other._content
        self._ends.extend(base + end for end in other._ends[1:])

    def __getitem__(self, row: int) -> str:
        return self._content[self._ends[row] : self._ends[row + 1]].decode("utf-8", "surrogatepass")


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
        base = len(self._content)
        self._content += other._content
        self._ends.extend(base + end for end in other._ends[1:])

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
        codes = [self._code(value) for value in other.values]
        self.codes.extend(codes[code] for code in other.codes)

    def append_each(self, values: Sequence[Value]) -> None:
        """Add a row for each value."""
        self.codes.extend(map(self._code, values))

    def append_all(self, values: Sequence[Value], places: npt.NDArray[np.int64]) -> None:
        """Add a row for each place: the value there."""
        codes = np.asarray([self._code(value) for value in values], np.uint32)
        self.codes.frombytes(codes[places].tobytes())

    def __getitem__(self, row: int) -> Value:
        return self.values[self.codes[row]]

    def __setitem__(self, row: int, value: Value) -> None:
        self.codes[row] = self._code(value)

    def of(self, rows: Sequence[int]) -> list[Value]:
        """The values of some rows."""
        return [self.values[self.codes[row]] for row in rows]

    def _code(self, value: Value) -> int:
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code


def _append_ends(ends: array[int], contents: Sequence[bytes], base: int) -> None:
    ends.extend(islice(accumulate(map(len, contents), initial=base), 1, None))
