"""Members whose exchanges are equal to the bins of the tables: what they say is looked up once for all of them.

Most connections of web traffic hold one or two exchanges, and tables have some hundred bins.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.members import Ints, numbered

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
    few = count <= MOST_EXCHANGES
    of_few = few[member]
    member, code = member[of_few], code[of_few]
    order = np.argsort(member * (int(code.max(initial=0)) + 1) + code)
    member, code = member[order], code[order]
    number = np.arange(len(member)) - np.searchsorted(member, member)  # of each exchange among its member's
    found = [np.where(few, -1, np.arange(len(label))), label]
    for place in range(int(number.max(initial=-1)) + 1):
        at = np.full(len(label), -1)
        at[member[number == place]] = code[number == place]
        found.append(at)
    return EqualMembers(*numbered(found))
