"""Which connections may still be among the first by attention, by what all judging processes have found so far."""

from __future__ import annotations

import mmap

import numpy as np

from pepscope.captures.packets import Int64Array
from pepscope.results.attention import ATTENTION
from pepscope.results.evidence.columns import BoolArray

#: The rank of what deserves least attention.
_LAST = max(ATTENTION.values())


class FirstByAttention:
    """The first `wanted` of `count` connections by rank of attention and place, as far as their ranks are known.

    Processes that are forked later know the ranks that each of them finds. What they miss of each other can only make
    more connections come first.
    """

    def __init__(self, wanted: int, count: int) -> None:
        self._wanted = wanted
        # A byte a connection, 1 above its rank: each is written once, so that no process waits for another.
        self._known = np.frombuffer(mmap.mmap(-1, max(count, 1)), np.uint8)[:count]

    def among(self, places: Int64Array, ranks: Int64Array) -> BoolArray:
        """Which of the connections in these places, of ranks that are known now, may be among the first.

        Of those that deserve least attention so many may be as will be left over, if the others are as frequent among
        all connections as they were so far.
        """
        self._known[places] = ranks + 1
        known = self._known.copy()
        judged, more_deserving = int((known > 0).sum()), int(((known > 0) & (known <= _LAST)).sum())
        are_first = np.zeros(len(places), np.bool_)
        left = self._wanted
        for rank in range(_LAST + 1):
            if rank == _LAST:
                left = min(left, self._wanted - more_deserving * len(known) // max(judged, 1))
            alike = np.flatnonzero(known == rank + 1)
            behind = alike[left] if 0 < left < len(alike) else len(known)
            if left > 0:
                are_first |= (ranks == rank) & (places < behind)
            left -= len(alike)
        # So many come before any connection behind the first places, whatever their ranks.
        return are_first & ((ranks < _LAST) | (places < self._wanted))
