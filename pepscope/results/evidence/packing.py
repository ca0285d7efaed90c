"""What is kept of pieces of evidence on connections that were judged together, as columns and in few bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pepscope._core import packed_columns, unpacked_columns
from pepscope.results.evidence.columns import Int64Array, figure_at, listed_figures, listed_values, value_at
from pepscope.results.evidence.growing import Coded
from pepscope.results.verdicts import Number

#: Numbers, or a list of what else is kept.
KeptColumn = npt.NDArray[Any] | Sequence[Any]

#: Bytes that say how many the packed numbers take.
_LENGTH_BYTES = 8


class Kept(NamedTuple):
    """What is kept of pieces of evidence of one form: their rows, and columns, of which the first so many may be
    `figures`: NaN in an array of these is a figure that is not known."""

    rows: Int64Array
    columns: Sequence[KeptColumn]
    figures: int

    @property
    def is_of_numbers(self) -> bool:
        """Whether all columns are arrays."""
        return all(isinstance(column, np.ndarray) for column in self.columns)

    def listed(self) -> list[Sequence[Any]]:
        """The columns as lists."""
        figures, beside = self.columns[: self.figures], self.columns[self.figures :]
        return [*map(listed_figures, figures), *map(listed_values, beside)]

    def at(self, place: int) -> list[Any]:
        """What is kept of one piece: one of each of `listed`."""
        figures, beside = self.columns[: self.figures], self.columns[self.figures :]
        return [*(figure_at(column, place) for column in figures), *(value_at(column, place) for column in beside)]


def packed(parts: Sequence[Kept]) -> bytes:
    """The parts in few bytes: numbers as the core packs them, what else there is as MessagePack that is compressed.

    Texts of which few are different are places in a list, and lists of numbers of one type are arrays from now on.
    """
    arrays = list[npt.NDArray[Any]]()
    others = list[tuple[int, list[Any]]]()
    for part in parts:
        arrays.append(part.rows)
        kept = list[Any]()
        for column in map(_compact, part.columns):
            if isinstance(column, np.ndarray):
                arrays.append(column)
                kept.append(None)
            elif isinstance(column, Coded):
                arrays.append(column.codes.astype(np.int64))
                kept.append({"values": column.values})
            else:
                kept.append(column)
        others.append((part.figures, kept))
    numbers = packed_columns(arrays)
    return len(numbers).to_bytes(_LENGTH_BYTES, "little") + numbers + zlib.compress(_PACKER.encode(others), 1)


def _compact(column: KeptColumn) -> KeptColumn:
    """A column in a form that takes fewer bytes, where its values are the same in that form."""
    if isinstance(column, np.ndarray | Coded) or not column:
        return column
    first, kind = column[0], type(column[0])
    # Most columns hold one value, which is looked for before others are told apart.
    is_constant = column.count(first) == len(column)
    if kind is str:
        if is_constant:
            return Coded(np.zeros(len(column), np.uint32), [first])
        is_of_few = {*map(type, column)} <= _TEXTS and len({*column}) <= len(column) // _ROWS_A_TEXT
        return Coded.of(column) if is_of_few else column
    if kind not in _ARRAYS or {*map(type, column)} != {kind}:
        return column
    if kind is float and not (is_constant and first == first):
        return column  # which compression takes to fewer bytes than eight each
    try:
        return np.array(column, _ARRAYS[kind])
    except OverflowError:
        return column


#: The types of arrays that hold all numbers of a type, or most.
_ARRAYS: Mapping[type, type[np.generic]] = {float: np.float64, int: np.int64, bool: np.bool_}
_TEXTS = {str, type(None)}

#: Texts are numbered where each is that of so many rows on average.
_ROWS_A_TEXT = 4


def unpacked(content: bytes) -> list[Kept]:
    """What `packed` packed."""
    end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    numbers: Iterator[npt.NDArray[Any]] = iter(unpacked_columns(content[_LENGTH_BYTES:end]))
    others: list[tuple[int, list[Any]]] = msgspec.msgpack.decode(zlib.decompress(content[end:]))
    return [Kept(next(numbers), [_column(each, numbers) for each in columns], figures) for figures, columns in others]


def _column(packed: Any, numbers: Iterator[npt.NDArray[Any]]) -> KeptColumn:
    """A column of which arrays are the next of the `numbers`."""
    if packed is None:
        return next(numbers)
    if isinstance(packed, dict):
        return Coded(next(numbers).astype(np.uint32), packed["values"])
    column: KeptColumn = packed
    return column


def plain_number(value: object) -> Number:
    """A scalar of NumPy, which encoders do not know, as Python's; TypeError for what is no figure."""
    if isinstance(value, np.generic):
        number: Number = value.item()
        return number
    raise TypeError(f"a figure must be a number, a text or None, got {value!r}")


_PACKER = msgspec.msgpack.Encoder(enc_hook=plain_number)
