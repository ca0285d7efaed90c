"""Columns as Arrow arrays, made of their bytes: Arrow's own conversion of lists and arrays imports pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.tables.arrow_bits import validity
from pepscope.captures.tables.texts import KnownTexts, SlicedTexts
from pepscope.results.evidence.growing import Coded

if TYPE_CHECKING:
    import pyarrow as pa

#: Offsets of Arrow's texts have 32 bits.
_MOST_BYTES = 2**31 - 1

_LAST_ASCII = 127


def text_array(texts: Sequence[str | None] | npt.NDArray[Any]) -> pa.Array:
    """Texts; null where there is None. Raises UnicodeError for what is no Unicode."""
    import pyarrow as pa

    known, is_known = _known_texts(texts)
    content, ends = known.run()
    if len(content) > _MOST_BYTES:
        return pa.array(list(texts), pa.string())
    if content.max(initial=0) > _LAST_ASCII:
        content.tobytes().decode()  # Arrow takes any bytes, and its readers then fail
    offsets = np.append(0, ends).astype(np.int32)
    buffers = [validity(is_known), pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _known_texts(texts: Sequence[str | None] | npt.NDArray[Any]) -> tuple[SlicedTexts, npt.NDArray[np.bool_]]:
    """The texts, those that are None as empty ones, and which of them are texts."""
    if isinstance(texts, SlicedTexts):
        return texts, np.ones(len(texts), np.bool_)
    if isinstance(texts, KnownTexts):
        return texts.texts, texts.is_known
    if isinstance(texts, Coded):
        different, is_known = _known_texts(texts.values)
        return different.at(texts.codes), is_known[texts.codes]
    return SlicedTexts.of([text or "" for text in texts]), np.array([text is not None for text in texts], np.bool_)


def number_array(numbers: Sequence[float | None] | npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Whole or real numbers of 64 bits; null where a list has None or NaN."""
    import pyarrow as pa

    stored = np.float64 if kind == pa.float64() else np.int64
    if isinstance(numbers, np.ndarray):
        values, is_known = numbers.astype(stored), np.ones(len(numbers), np.bool_)
    else:
        is_known = np.array([number is not None and number == number for number in numbers], np.bool_)
        values = np.array([number if known else 0 for number, known in zip(numbers, is_known, strict=True)], stored)
    return pa.Array.from_buffers(kind, len(values), [validity(is_known), pa.py_buffer(values)])
