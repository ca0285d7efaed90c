"""Series as compact text: 32-bit steps between lowest and highest value, in base64."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

_STEPS = 0xFFFFFFFF

Packed = dict[str, str | float]


def pack(values: npt.NDArray[np.float64]) -> Packed:
    """Pack finite or NaN values, shape (n,), for the page: `value = base + step * integer`.

    The integers are little-endian uint32 in base64, so the error is below 2^-32 of the range, which is finer than a
    capture's clock over any transfer. NaN becomes the greatest integer, which the page draws as a gap.
    """
    finite = values[np.isfinite(values)]
    base = float(finite.min()) if len(finite) else 0.0
    spread = float(finite.max()) - base if len(finite) else 0.0
    step = spread / (_STEPS - 1)
    if step < np.finfo(np.float64).tiny:  # nothing that a figure could show
        step = 1.0
    steps = np.where(np.isfinite(values), np.rint((values - base) / step), _STEPS)
    return {"base": base, "step": step, "data": base64.b64encode(steps.astype("<u4").tobytes()).decode("ascii")}


def unpack(packed: Packed) -> npt.NDArray[np.float64]:
    """The values as the page gets them."""
    steps = np.frombuffer(base64.b64decode(str(packed["data"])), dtype="<u4").astype(np.float64)
    values = float(packed["base"]) + float(packed["step"]) * steps
    return np.where(steps == _STEPS, np.nan, values)
