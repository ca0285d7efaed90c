"""What is kept of pieces of evidence on connections that were judged together, as columns and in few bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pepscope._core import packed_columns, unpacked_columns
from pepscope.results.evidence.columns import Int64Array, figure_at, listed_figures, listed_values, value_at
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
    """The parts in few bytes: numbers as the core packs them, lists as MessagePack that is compressed."""
    columns = (column for part in parts for column in (part.rows, *part.columns))
    numbers = packed_columns([column for column in columns if isinstance(column, np.ndarray)])
    others = [
        (part.figures, [None if isinstance(column, np.ndarray) else column for column in part.columns])
        for part in parts
    ]
    return len(numbers).to_bytes(_LENGTH_BYTES, "little") + numbers + zlib.compress(_PACKER.encode(others), 1)


def unpacked(content: bytes) -> list[Kept]:
    """What `packed` packed."""
    end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    numbers: Iterator[npt.NDArray[Any]] = iter(unpacked_columns(content[_LENGTH_BYTES:end]))
    others: list[tuple[int, list[Any]]] = msgspec.msgpack.decode(zlib.decompress(content[end:]))
    return [
        Kept(next(numbers), [next(numbers) if column is None else column for column in columns], figures)
        for figures, columns in others
    ]


def plain_number(value: object) -> Number:
    """A scalar of NumPy, which encoders do not know, as Python's; TypeError for what is no figure."""
    if isinstance(value, np.generic):
        number: Number = value.item()
        return number
    raise TypeError(f"a figure must be a number, a text or None, got {value!r}")


_PACKER = msgspec.msgpack.Encoder(enc_hook=plain_number)
