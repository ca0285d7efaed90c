"""The properties of a payload sample in NumPy and Python: what the compiled sample is compared with."""

from __future__ import annotations

import numpy as np

from pepscope.captures.packets import PayloadSample


def opening(sample: PayloadSample) -> bytes | None:
    """The longest piece at the stream's first byte."""
    at_start = np.flatnonzero(sample.offsets == 0)
    return max((sample.pieces[int(place)] for place in at_start), key=len, default=None)


def varies(sample: PayloadSample, distinct: int) -> bool:
    """Whether any piece has so many different bytes."""
    return any(len(set(piece)) >= distinct for piece in sample.pieces)


def is_blanked(sample: PayloadSample) -> bool:
    """Whether all captured bytes are one byte repeated."""
    if any(piece.count(piece[:1]) < len(piece) for piece in sample.pieces):
        return False
    return len({piece[:1] for piece in sample.pieces if piece}) < 2
