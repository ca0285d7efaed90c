"""Columns as Arrow arrays, made of their bytes: Arrow's own conversion of lists and arrays imports pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

#: Offsets of Arrow's texts have 32 bits.
_MOST_BYTES = 2**31 - 1


def text_array(texts: Sequence[str | None] | npt.NDArray[Any]) -> pa.Array:
    """Texts; null where there is None. Raises UnicodeEncodeError for what is no Unicode."""
    import pyarrow as pa

    is_known = np.array([text is not None for text in texts], np.bool_)
    known: Sequence[str] | npt.NDArray[Any] = [text or "" for text in texts]
    content = "".join(known)
    encoded = content.encode()
    lengths = map(len, known if len(encoded) == len(content) else [text.encode() for text in known])
    if len(encoded) > _MOST_BYTES:
        return pa.array(list(texts), pa.string())
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=offsets[1:])
    buffers = [_validity(is_known), pa.py_buffer(offsets), pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def number_array(numbers: Sequence[float | None] | npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Whole or real numbers of 64 bits; null where a list has None or NaN."""
    import pyarrow as pa

    stored = np.float64 if kind == pa.float64() else np.int64
    if isinstance(numbers, np.ndarray):
        values, is_known = numbers.astype(stored), np.ones(len(numbers), np.bool_)
    else:
        is_known = np.array([number is not None and number == number for number in numbers], np.bool_)
        values = np.array([number if known else 0 for number, known in zip(numbers, is_known, strict=True)], stored)
    return pa.Array.from_buffers(kind, len(values), [_validity(is_known), pa.py_buffer(values)])


def _validity(is_known: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """The bits that say which values are known; None where all are."""
    import pyarrow as pa

    return None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
