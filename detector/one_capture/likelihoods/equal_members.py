"""Members whose exchanges are equal to the bins of the tables: what they say is looked up once for all of them.

Most connections of web traffic hold one or two exchanges, and tables have some hundred bins.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.members import Ints

#: Members with more exchanges than this are seldom equal, and looked up one by one.
MOST_EXCHANGES = 4


class EqualMembers(Struct, frozen=True):
    """`kind` of each member counts kinds from 0; `first` is a member of each kind."""

    kind: Ints
    first: Ints


def equal_members(member: Ints, code: Ints, label: Ints) -> EqualMembers:
    """Find members with the same label and the same exchanges, in any order.

    `member` and `code` are of exchanges, by member; `label` of members. Labels and codes are small and not negative.
    """
    count = np.bincount(member, minlength=len(label))
    order = np.lexsort((code, member))
    start = np.cumsum(count) - count
    few = count <= MOST_EXCHANGES
    kind = label.astype(np.int64)
    base = int(code.max()) + 2 if len(code) else 1
    for place in range(MOST_EXCHANGES):
        there = few & (place < count)
        at = np.zeros(len(label), np.int64)
        at[there] = 1 + code[order[start[there] + place]]
        _, kind = np.unique(kind * base + at, return_inverse=True)
    kind = np.where(few, kind, len(label) + np.arange(len(label)))
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return EqualMembers(kind, first)
