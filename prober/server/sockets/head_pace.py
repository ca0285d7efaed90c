"""How often a head is looked at that comes in many pieces.

A request comes in one piece, or in a few. Whoever sends single bytes would have the server wake up for each, a thousand
such clients all the time; the more pieces there were, the longer the next ones are left to gather.
"""

from __future__ import annotations

import time

#: Taken at once; a head of the greatest length has about as many segments.
_FREE_PIECES = 16
_STEP_S = 0.005
_LONGEST_S = 0.2


class HeadPace:
    """The pace of one head."""

    def __init__(self) -> None:
        self._pieces = 0

    def wait(self) -> None:
        """Let more gather, after a piece that did not end the head."""
        self._pieces += 1
        if self._pieces > _FREE_PIECES:
            time.sleep(min(_LONGEST_S, (self._pieces - _FREE_PIECES) * _STEP_S))
