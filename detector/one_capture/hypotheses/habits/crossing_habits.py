"""How often first answers cross a hidden leg: a habit of the program that connects, and so of all that it splits.

Where a split point connects to the server once the client has connected, or has asked, what is asked as a connection
opens waits for that handshake and crosses the leg twice; where it has connected before, once. One program does this for
all servers and connections, while hosts that are late have no reason to be twice as late in their first answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.one_capture.likelihoods.timing_tables import CROSSINGS, Floats
from detector.one_capture.members import Ints

#: Of split points, those of which each connection is as it is.
_EACH_BY_ITSELF = 0.2

#: Of the members of a group, those that look as if their split point had a habit of its own: first answers take other
#: times than later ones do. It bounds what one member says against the habit of all.
_OWN_HABIT = 0.2

#: Log probabilities of the habits in the order of `TimingTables.by_habit`: each first answer by itself, then all as
#: often as each of `CROSSINGS`.
HABIT_NATS: Floats = np.log([_EACH_BY_ITSELF, *((1 - _EACH_BY_ITSELF) * share for share in CROSSINGS.values())])

#: The habit of split points that have connected before anything is asked.
CONNECTED = 1 + list(CROSSINGS).index(1)


class HabitLegNats(Struct, frozen=True):
    """Log-likelihoods by habit, member and each of `HIDDEN_S`: where everything crosses the leg, and where TLS ends at
    the split point."""

    all: Floats
    behind_tls: Floats

    def or_else(self, legs: Floats, behind_tls: Floats) -> HabitLegNats:
        """The same of members of which some have a habit of their own: `legs` and `behind_tls` are those of any one."""
        own = [
            np.logaddexp(np.log(1 - _OWN_HABIT) + common, np.log(_OWN_HABIT) + any_one)
            for common, any_one in ((self.all, legs), (self.behind_tls, behind_tls))
        ]
        return HabitLegNats(*own)

    def of(self, members: Ints) -> HabitLegNats:
        """Those of some members."""
        return HabitLegNats(self.all[:, members], self.behind_tls[:, members])


def joined_habits(every: Sequence[HabitLegNats]) -> HabitLegNats | None:
    """Those of members one after the other; None of none."""
    if not every:
        return None
    return HabitLegNats(
        *(np.concatenate([getattr(each, name) for each in every], axis=1) for name in HabitLegNats.__struct_fields__)
    )


def any_habit(every: Floats) -> Floats:
    """Log-likelihoods of any one habit, given those of each, which the first axis counts."""
    either: Floats = np.logaddexp.reduce(every + HABIT_NATS.reshape(-1, *[1] * (every.ndim - 1)))
    return either
