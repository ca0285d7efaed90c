"""Tables as comma-separated values (RFC 4180), written as pandas writes frames."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, TextIO

import numpy as np
import numpy.typing as npt

from pepscope._core import comma_separated_rows
from pepscope.captures.tables.texts import CoreTexts, KnownTexts, SlicedTexts, given_texts
from pepscope.results.evidence.growing import Coded

if TYPE_CHECKING:
    from pepscope.results.frames import Column


_LAST_ASCII = 127


def write_rows(stream: TextIO | IO[bytes], pieces: Iterable[Mapping[str, Column]]) -> None:
    """Write a table that comes in pieces, each as columns by their names; an empty field is a value that is missing.

    Texts are UTF-8 where the stream takes bytes. Raises OSError.
    """
    for number, columns in enumerate(pieces):
        if number == 0:
            _write(stream, comma_separated_rows(1, [[name] for name in columns], os.linesep))
        rows = len(next(iter(columns.values())))
        _write(stream, comma_separated_rows(rows, [*map(_fields, columns.values())], os.linesep))


def _write(stream: TextIO | IO[bytes], text: npt.NDArray[np.uint8]) -> None:
    """Write what the core made; what is no Unicode (a path's surrogates) becomes a question mark."""
    if not isinstance(stream, io.TextIOBase) and text.max(initial=0) <= _LAST_ASCII:
        stream.write(text.data)  # type: ignore[arg-type]
        return
    content = text.tobytes().decode("utf-8", "surrogatepass").encode("utf-8", "replace")
    stream.write(content.decode() if isinstance(stream, io.TextIOBase) else content)  # type: ignore[arg-type]


def _fields(column: Column) -> CoreTexts | npt.NDArray[np.float64]:
    """A column as the core takes it, with an empty text for what is missing."""
    if isinstance(column, np.ndarray):
        is_real = column.dtype.kind == "f"
        return column.astype(np.float64, copy=False) if is_real else column.astype(np.int64, copy=False)
    if isinstance(column, Coded):
        return column.codes, [_field(value) for value in column.values]
    if isinstance(column, KnownTexts):
        return given_texts(column.texts)
    return given_texts(column) if isinstance(column, SlicedTexts) else [_field(value) for value in column]


def _field(value: object) -> str:
    return "" if value is None else str(value)
