"""The datagram in which a Node-B reports its queue to a window-adaptation proxy (seed 003, section 4.1).

Five unsigned 32-bit numbers, big endian, 20 bytes and nothing else:

    step | queued_frames | served_frames | dropped_frames | offered_frames

`step` counts the sampling periods Ts and may wrap; `queued_frames` is sampled at the end of the period, the others
count radio frames in it. The simulator's Node-B makes the same numbers (`crates/path`, `QueueReport`).
"""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass

from reference_proxy.errors import MalformedError

_FORM = struct.Struct("!5I")
REPORT_BYTES = _FORM.size

_STEPS = 1 << 32


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What happened at the Node-B in one period."""

    step: int
    #: Radio frames that wait at the end of the period.
    queued_frames: int
    #: Radio frames that the link served.
    served_frames: int
    #: Radio frames refused by a full queue.
    dropped_frames: int
    #: Radio frames that the link could have served.
    offered_frames: int

    def encode(self) -> bytes:
        """As it travels."""
        return _FORM.pack(*astuple(self))

    @classmethod
    def decode(cls, datagram: bytes) -> QueueReport:
        """Raises MalformedError."""
        if len(datagram) != REPORT_BYTES:
            raise MalformedError(f"a queue report must have {REPORT_BYTES} bytes, got {len(datagram)}")
        return cls(*_FORM.unpack(datagram))

    def is_after(self, step: int) -> bool:
        """Whether it is newer than `step`, as serial numbers are compared (RFC 1982)."""
        return 0 < (self.step - step) % _STEPS < _STEPS // 2
