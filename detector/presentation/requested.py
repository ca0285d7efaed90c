"""What a user requests beside verdicts: the packets that show findings, and the series that a page draws."""

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


class RequestedPackets(Struct, frozen=True):
    """How many packets to name: moments for a finding, each of which may take a packet at either vantage point, and
    connections; those that deserve attention come first, unless `choose` picks them by their places."""

    moments: int
    connections: int = 1000
    choose: Callable[[PairTable], Sequence[int]] | None = None

    def places(self, results: PairTable) -> Sequence[int]:
        """The connections whose packets are to be named."""
        if self.choose is not None:
            return self.choose(results)
        from pepscope.results.attention import ATTENTION  # requests are checked before results are imported

        ranked: list[int] = results.ranked(ATTENTION)[: self.connections].tolist()
        return ranked

    @classmethod
    def of(cls, packets: int | RequestedPackets) -> RequestedPackets:
        """The request that `packets` stands for. Raises UsageError for a number below 0, or too large for the core."""
        requested = packets if isinstance(packets, RequestedPackets) else cls(packets)
        if not 0 <= requested.moments <= _MOST_MOMENTS:
            raise UsageError(f"the packets to name must be between 0 and {_MOST_MOMENTS}, got {requested.moments}")
        return requested


class RequestedDetails(Struct, frozen=True):
    """What results carry beside verdicts: packets and, with `series`, what a page draws of `connections` (if none are
    given, of those that deserve most attention)."""

    series: bool
    connections: Sequence[EndPoints]
    packets: RequestedPackets
