"""What points from a finding to packets: rows of a connection as one capture holds it, each with what it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope import _core
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Direction
from pepscope.results.distinct import distinct
from pepscope.results.verdicts import Evidence, FloatArray

if TYPE_CHECKING:
    from detector.clocks.clock_relation import ClockRelation
    from detector.pair import Pair, Vantage
    from detector.presentation.telling_packets.observing import Observed


class Telling(Struct, frozen=True):
    """A packet that shows a finding: its row in the packets of its vantage, and what it does, beginning with a verb."""

    vantage: Vantage
    row: int
    shows: str


#: The figures of a finding that pointers read.
READ_FIGURES = frozenset({"direction", "from_byte"})


class Scene(Struct, frozen=True):
    """A finding on a connection, with all that is known of the connection. Of its figures `READ_FIGURES` are there.

    `captures` are those of the detection by their paths; `most` is how many moments to point to, each of which may take
    a packet at either vantage point.
    """

    observed: Observed
    evidence: Evidence
    captures: dict[str, Capture]
    most: int

    @property
    def pair(self) -> Pair:
        """The connection, as methods examined it."""
        return self.observed.examined.pair

    @property
    def clock(self) -> ClockRelation:
        """How the clocks of its two captures are related."""
        return self.observed.clock()

    @property
    def direction(self) -> Direction | None:
        """The direction of data of which the finding speaks; None where it names none."""
        named = self.evidence.numbers.get("direction")
        return Direction[named.upper()] if isinstance(named, str) else None


#: What shows a finding on one connection, the most telling first.
Shown = Sequence[Telling | EvidencePacket] | Sequence[Telling]

#: Points to the packets that show a finding on each of some connections.
Pointer = Callable[[Sequence[Scene]], Sequence[Shown]]


def one_by_one(point: Callable[[Scene], Shown]) -> Pointer:
    """A pointer of what points to the packets of one connection: for findings that are seldom, or seldom small."""
    return lambda scenes: [point(scene) for scene in scenes]


def strongest(score: FloatArray, most: int, least: float = -np.inf) -> list[int]:
    """Places of high scores above `least`, the highest first: the highest of all, and of each part of the others, so
    that they do not all come from one moment. NaN never counts."""
    return _core.strongest(score, most, least)


def spread(rows: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """So many of these rows, evenly over all of them, the first and the last among them."""
    return rows if len(rows) <= most else rows[_evenly(len(rows), most)]


@lru_cache(maxsize=1024)
def _evenly(count: int, most: int) -> npt.NDArray[np.int64]:
    """The places of `spread`: small connections are often equally long."""
    return np.array(distinct(np.linspace(0, count - 1, most).round().astype(np.int64)), np.int64)


def duration(seconds: float) -> str:
    """A time for the eye."""
    return f"{seconds:.3g} s" if abs(seconds) >= 1 else f"{seconds * 1e3:.3g} ms"


def counted(number: int, noun: str) -> str:
    """`1 byte`, `2,000 bytes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
