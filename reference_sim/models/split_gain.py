"""How much sooner a split connection fills a cellular link: Wei et al., section IV.

"Inference and Evaluation of Split-Connection Approaches in Cellular Data Networks", UMass technical report 2005-59. The
time until a slow start that begins with one packet reaches the rate v of the mobile, end to end and with a split point.
Windows double each round trip, so there are no delayed acknowledgements, no losses, and no shorter rounds while the
window is small: logarithms are to base 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from reference_sim.models.domain import OutsideDomainError, computable, require_at_least_one, require_positive


@dataclass(frozen=True, slots=True)
class SplitGain:
    """Times in seconds until the mobile's rate is reached."""

    #: (r1 + r2) log2((r1 + r2) v / s)
    regular_s: float
    #: r1 log2(r2 v / s) where the split point fills the downstream half at once, r2 log2(r2 v / s) otherwise.
    split_s: float
    #: The paper's short form of the difference: r1 + r2 log2(r2 v / s), or r1 (log2(r2 v / s) + 1).
    approximate_gain_s: float

    @property
    def gain_s(self) -> float:
        """The difference, not approximated."""
        return self.regular_s - self.split_s


@computable
def split_gain(
    rate_bit_s: float,
    packet_bytes: float,
    upstream_round_trip_s: float,
    downstream_round_trip_s: float,
    *,
    downstream_slow_start: bool,
) -> SplitGain:
    """Both times for a mobile's rate v, packets of s bytes, and round trips r1 (wired) and r2 (cellular).

    `downstream_slow_start`: whether the split point begins with one packet or with r2 v.
    Raises OutsideDomainError unless all are above 0 and r2 v holds more than one packet: otherwise the first packet
    fills the link, and there is nothing to gain.
    """
    for name, value in (
        ("rate_bit_s", rate_bit_s),
        ("packet_bytes", packet_bytes),
        ("upstream_round_trip_s", upstream_round_trip_s),
        ("downstream_round_trip_s", downstream_round_trip_s),
    ):
        require_positive(name, value)
    r1, r2 = upstream_round_trip_s, downstream_round_trip_s
    packets_s = rate_bit_s / 8.0 / packet_bytes
    if r2 * packets_s <= 1.0:
        raise OutsideDomainError(
            f"downstream_round_trip_s * rate_bit_s must be above 1 packet, got {r2 * packets_s:g}: below, one packet "
            "fills the link"
        )
    doublings = math.log2(r2 * packets_s)
    regular_s = (r1 + r2) * math.log2((r1 + r2) * packets_s)
    if downstream_slow_start:
        return SplitGain(regular_s, r2 * doublings, r1 * (doublings + 1.0))
    return SplitGain(regular_s, r1 * doublings, r1 + r2 * doublings)


@computable
def slow_start_bytes(
    rate_bit_s: float, packet_bytes: float, round_trip_s: float, *, segments_an_acknowledgement: float = 1.0
) -> float:
    """Bytes sent until a slow start from one packet reaches the rate: all windows from s to r v.

    A window grows by the factor g = 1 + 1 / b a round trip, with an acknowledgement for every b segments, so the
    windows sum to (g r v - s) / (g - 1): 2 r v - s without delayed acknowledgements.
    Raises OutsideDomainError unless all are above 0, b is at least 1, and r v holds more than one packet.
    """
    for name, value in (("rate_bit_s", rate_bit_s), ("packet_bytes", packet_bytes), ("round_trip_s", round_trip_s)):
        require_positive(name, value)
    require_at_least_one("segments_an_acknowledgement", segments_an_acknowledgement)
    require_at_least_one("packets in round_trip_s * rate_bit_s", round_trip_s * rate_bit_s / 8.0 / packet_bytes)
    growth = 1.0 + 1.0 / segments_an_acknowledgement
    return (growth * round_trip_s * rate_bit_s / 8.0 - packet_bytes) / (growth - 1.0)
