"""What is true or not as the bits that Arrow keeps of it, made without Arrow's own conversion, which imports pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa


def flag_array(flags: Sequence[bool] | npt.NDArray[np.bool_]) -> pa.Array:
    """What is true or not, all of it known."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, _bits(np.array(flags, np.bool_))])


def validity(is_known: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """The bits that say which values are known; None where all are."""
    return None if is_known.all() else _bits(is_known)


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))
