"""What connections of one machine have in common: a timestamp clock and a counter of IP identifications."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks.one_ended_simulated.habits import Identification

_TICKS_PER_S = 1000.0


@dataclass(slots=True)
class Machine:
    """One machine; a connection that shares nothing has one of its own."""

    identification: int  # of the last packet
    ticks_per_s: float = _TICKS_PER_S  # of the timestamp clock, in true time
    timestamp_base: int | None = None  # of all connections; None where each has its own

    @classmethod
    def drawn(cls, random: Random) -> Machine:
        """A machine whose clock is off by up to 50 ppm, as quartzes are; all connections of every second one count
        timestamps from one number, as those to one server do on most versions of Linux.
        """
        ticks_per_s = _TICKS_PER_S * (1 + 1e-6 * random.uniform(-50.0, 50.0))
        base = random.getrandbits(32)
        return cls(random.randrange(65_536), ticks_per_s, base if random.random() < 0.5 else None)

    def ticks(self, time_s: float) -> int:
        """Of the timestamp clock, since the simulation began."""
        return int(time_s * self.ticks_per_s)

    def identify(self, kind: Identification, random: Random) -> int:
        """The identification of the next packet."""
        if kind is Identification.COUNTER:
            self.identification = (self.identification + 1) % 65_536
        elif kind is Identification.RANDOM:
            self.identification = random.randrange(65_536)
        else:
            self.identification = 0
        return self.identification
