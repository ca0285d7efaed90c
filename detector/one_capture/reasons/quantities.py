"""Numbers as the sentences of one capture write them."""

from __future__ import annotations

import math

import numpy as np

from pepscope.captures.tables.texts import durations


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time with three digits and a unit."""
    (text,) = durations(np.asarray([seconds], np.float64))
    return text


def percent(share: float) -> str:
    """A share as a percentage that is 0 % or 100 % only where it is exact; near what verdicts need with one digit more,
    never rounded up."""
    value = 100 * share
    if 0 < value < 1:
        return "<1 %"
    if 95 <= value <= 99:
        return f"{math.floor(10 * value + 1e-6) / 10:.1f} %"
    return ">99 %" if 99 < value < 100 else f"{value:.0f} %"
