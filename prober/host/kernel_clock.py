"""Whether the kernel's clock is disciplined by NTP or PTP, by adjtimex(2), which needs no rights."""

from __future__ import annotations

import ctypes

#: `STA_UNSYNC` of sys/timex.h, and the state that means that the clock is not synchronised.
_UNSYNCHRONISED = 0x0040
_TIME_ERROR = 5
#: More than any `struct timex`; a `modes` of 0 asks and changes nothing.
_TIMEX_BYTES = 512


class _TimexStart(ctypes.Structure):
    """`struct timex` up to the field that is read."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("largest_error", ctypes.c_long),
        ("estimated_error", ctypes.c_long),
        ("status", ctypes.c_int),
    )


def is_synchronised() -> bool | None:
    """Whether the clock is disciplined; `None` where the kernel cannot be asked."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = adjtimex(buffer)
    if state < 0:
        return None
    start = _TimexStart.from_buffer(buffer)
    return bool(state != _TIME_ERROR and not start.status & _UNSYNCHRONISED)
