"""Times as results write them."""

from __future__ import annotations

import numpy as np


def time_text(time_ns: int | None) -> str | None:
    """A Unix time as RFC 3339 has it, in UTC and to the nanosecond."""
    return None if time_ns is None else f"{np.datetime64(time_ns, 'ns')}Z"
