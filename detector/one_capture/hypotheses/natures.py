"""Natures of paths: how much answers vary that cross them. Exchanges of one member share a path, and so its nature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.one_capture.hypotheses.sums import sum_nats
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, NATURES, Floats, TimingTables
from detector.one_capture.members import Ints

#: Natures of legs that are wires, as between a balancer or front end and what stands behind it: so many of the
#: steadiest.
WIRED = 2


class Paths(Struct, frozen=True):
    """What is known of members' paths beforehand, as log probabilities by member: of each nature of a hidden leg, of
    each nature end to end, and of answers that are shifted end to end (by nothing, then by each of `HIDDEN_S` in each
    nature)."""

    natures: Floats
    end_natures: Floats
    shifts: Floats

    def of(self, members: Ints) -> Paths:
        """Those of some members."""
        return Paths(self.natures[members], self.end_natures[members], self.shifts[members])


class Crossing(Struct, frozen=True):
    """Log-likelihoods of exchanges that cross a leg, by member, leg and nature. Where split points have habits, habits
    are the axis before these, and all else that members say is the same by each."""

    handshake: Floats
    application: Floats

    @classmethod
    def of(cls, habits: Sequence[ExchangeNats]) -> Crossing:
        """By each habit, or of the one that there is where habits are not told apart."""
        handshake, application = ([by_nature(getattr(each, name)) for each in habits] for name in cls.__struct_fields__)
        if len(habits) == 1:
            return cls(handshake[0], application[0])
        return cls(np.stack(handshake), np.stack(application))

    @property
    def all(self) -> Floats:
        """Of all exchanges."""
        return self.handshake + self.application


def by_nature(rows: Floats) -> Floats:
    """Of the columns of hypotheses the legs, by member, leg and nature."""
    return rows[:, TimingTables.HIDDEN].reshape(-1, len(HIDDEN_S), NATURES)


def end_nats(rows: Floats, paths: Paths) -> Floats:
    """Log-likelihoods of being end to end, in any nature."""
    return sum_nats(rows[:, TimingTables.END_BY_NATURE] + paths.end_natures)
