"""Tables as comma-separated values (RFC 4180), written column by column as pandas writes frames."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np

if TYPE_CHECKING:
    from pepscope.results.frames import Column


def write_rows(stream: TextIO | IO[bytes], pieces: Iterable[Mapping[str, Column]]) -> None:
    """Write a table that comes in pieces, each as columns by their names; an empty field is a value that is missing.

    Texts are UTF-8 where the stream takes bytes. Raises OSError.
    """
    for number, columns in enumerate(pieces):
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator=os.linesep)
        if number == 0:
            writer.writerow(columns)
        writer.writerows(zip(*map(_fields, columns.values()), strict=True))
        if isinstance(stream, io.TextIOBase):
            stream.write(text.getvalue())
        else:
            stream.write(text.getvalue().encode())  # type: ignore[arg-type]


def _fields(column: Column) -> Sequence[Any]:
    """The values of a column; None for NaN in an array."""
    if not isinstance(column, np.ndarray):
        return column
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        for place in np.flatnonzero(np.isnan(column)).tolist():
            values[place] = None
    return values
