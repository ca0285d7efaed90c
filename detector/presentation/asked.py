"""What results are to carry beside verdicts: the packets that show findings, and what a page draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from pepscope.errors import UsageError

if TYPE_CHECKING:
    from pepscope.results.attention import EndPoints
    from pepscope.results.pair_table import PairTable

#: More than a capture has.
_MOST_MOMENTS = 10**12


class AskedPackets(Struct, frozen=True):
    """How many packets to name: moments for a finding, each of which may take a packet at either vantage point, and
    connections; those that deserve attention come first, unless `choose` picks them by their places."""

    moments: int
    connections: int = 1000
    choose: Callable[[PairTable], Sequence[int]] | None = None

    def places(self, results: PairTable) -> Sequence[int]:
        """The connections whose packets are to be named."""
        if self.choose is not None:
            return self.choose(results)
        from pepscope.results.attention import ATTENTION  # what is asked is known before results are imported

        ranked: list[int] = results.ranked(ATTENTION)[: self.connections].tolist()
        return ranked

    @classmethod
    def of(cls, packets: int | AskedPackets) -> AskedPackets:
        """What `packets` asks for. Raises UsageError for a number below 0 or beyond what the core counts with."""
        asked = packets if isinstance(packets, AskedPackets) else cls(packets)
        if not 0 <= asked.moments <= _MOST_MOMENTS:
            raise UsageError(f"the packets to name must be between 0 and {_MOST_MOMENTS}, got {asked.moments}")
        return asked


class Asked(Struct, frozen=True):
    """What results carry: packets, and with `series` what a page draws, of `connections` where some are given."""

    series: bool
    connections: Sequence[EndPoints]
    packets: AskedPackets
