"""Throughput of a split connection: Padhye for each half, joined by the split point's finite buffer.

Hu's future work (seed 000, section 6) asks for a split connection's throughput "as a function of packet loss rate,
average round trip time, and the receiver's advertised window", built on Padhye.

**One half.** Padhye gives the mean rate over cycles between losses. Within a cycle the window climbs in a line from a
half to the whole, so the momentary rate lies anywhere between 2/3 and 4/3 of its mean, and is 0 while a timeout is
waited for. What the link carries, and a window a round trip, cut the momentary rate, not the mean: a link that is wide
enough on average still cuts the upper half of a cycle.

**Joined.** The buffer between the halves fills and empties as their rates differ. It is taken for a Brownian motion
between two reflecting barriers (Harrison, "Brownian Motion and Stochastic Flow Systems", 1985, section 5.6): its drift
is the difference of the mean rates, its variance what losses make of them over time. A cycle has 1/p segments in the
mean, geometrically spread, and lasts as the root of their number, so half of an excess of segments is made up by its
longer time: (1 / 2p)^2 segments^2 in 1 / (p r) seconds, r / 4p a second. Over times shorter than a cycle this
overstates how far the rates stray; but even without a buffer the smaller of the two momentary rates gets through, which
bounds the result from below.

Slow start is left out, and Padhye's limits hold (`reference_sim.models.padhye`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from reference_sim.models.domain import (
    OutsideDomainError,
    computable,
    require_at_least_one,
    require_positive,
    require_probability,
)
from reference_sim.models.padhye import send_rate_segments_s

#: Ends of the momentary rate within a cycle, in mean rates, and the steps in which it is averaged.
_LOW, _HIGH = 2.0 / 3.0, 4.0 / 3.0
_STEPS = 48

#: Share of a round trip that stands for no timeout at all where the time lost to timeouts is separated.
_NO_TIMEOUT = 1e-9


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a split connection, or a whole connection that is not split."""

    #: Of a segment; 0 for a half that loses none.
    loss_probability: float
    #: Without waiting in its own queue, which the link's rate stands for.
    round_trip_s: float
    #: The first retransmission timeout.
    timeout_s: float
    #: What may be unacknowledged, in segments: what the receiver advertises, or what the sender's buffer holds.
    window_limit_segments: float = math.inf
    #: What the link carries, in segments a second.
    link_segments_s: float = math.inf
    segments_an_acknowledgement: float = 2.0

    def rate_segments_s(self) -> float:
        """Segments a second of this half alone. Raises OutsideDomainError."""
        return sum(share * rate for share, rate in self.momentary_rates())

    def momentary_rates(self) -> Iterator[tuple[float, float]]:
        """Shares of time and segments a second in them. Raises OutsideDomainError."""
        mean, waiting = self._cycle()
        ceiling = self._ceiling_segments_s()
        if math.isinf(mean):
            if math.isinf(ceiling):
                raise OutsideDomainError("a half without losses must have a window or a link that limits its rate")
            yield 1.0, ceiling
            return
        yield waiting, 0.0
        for step in range(_STEPS):
            place = _LOW + (_HIGH - _LOW) * (step + 0.5) / _STEPS
            yield (1.0 - waiting) / _STEPS, min(place * mean, ceiling)

    def variance_segments2_s(self) -> float:
        """Variance of the segments carried, a second; falls to 0 as the link or the window decides."""
        mean, waiting = self._cycle()
        if math.isinf(mean):
            return 0.0
        free = min(1.0, max(0.0, (self._ceiling_segments_s() / mean - _LOW) / (_HIGH - _LOW)))
        return mean * (1.0 - waiting) / (4.0 * self.loss_probability) * free * free

    def _ceiling_segments_s(self) -> float:
        return min(self.link_segments_s, self.window_limit_segments / self.round_trip_s)

    def _cycle(self) -> tuple[float, float]:
        """Mean rate while no timeout is waited for, and the share of time in which one is."""
        require_positive("round_trip_s", self.round_trip_s)
        require_positive("timeout_s", self.timeout_s)
        require_at_least_one("window_limit_segments", self.window_limit_segments)
        if not math.isinf(self.link_segments_s):
            require_positive("link_segments_s", self.link_segments_s)
        if self.loss_probability == 0.0:
            return math.inf, 0.0
        require_probability("loss_probability", self.loss_probability)
        mean = self._padhye(self.timeout_s)
        active = self._padhye(_NO_TIMEOUT * self.round_trip_s)
        return active, 1.0 - mean / active

    def _padhye(self, timeout_s: float) -> float:
        return send_rate_segments_s(
            self.loss_probability,
            self.round_trip_s,
            timeout_s,
            window_limit_segments=self.window_limit_segments,
            segments_an_acknowledgement=self.segments_an_acknowledgement,
        )


@computable
def split_rate_segments_s(upstream: Half, downstream: Half, buffer_segments: float) -> float:
    """Segments a second through a split point that holds at most `buffer_segments` between its halves.

    The buffer is all that has arrived and is not acknowledged by the far end: the upstream half's receive buffer and
    the downstream half's send buffer. Segments are of one size.
    Raises OutsideDomainError unless `buffer_segments` is above 0 and both halves are within Padhye's domain and limited
    by something.
    """
    require_positive("buffer_segments", buffer_segments)
    unbuffered = sum(
        first * second * min(one, other)
        for (first, one), (second, other) in itertools.product(
            tuple(upstream.momentary_rates()), tuple(downstream.momentary_rates())
        )
    )
    filling, emptying = upstream.rate_segments_s(), downstream.rate_segments_s()
    variance = upstream.variance_segments2_s() + downstream.variance_segments2_s()
    if variance == 0.0:
        return min(filling, emptying)
    buffered = emptying - _idle_rate(filling - emptying, variance, buffer_segments)
    return max(unbuffered, buffered)


@computable
def whole_rate_segments_s(upstream: Half, downstream: Half) -> float:
    """Segments a second of one connection over both halves, without a split point: round trips add, losses combine.

    The larger timeout, the smaller link, and the window and acknowledgements of the downstream half hold for it.
    Raises OutsideDomainError.
    """
    return Half(
        loss_probability=1.0 - (1.0 - upstream.loss_probability) * (1.0 - downstream.loss_probability),
        round_trip_s=upstream.round_trip_s + downstream.round_trip_s,
        timeout_s=max(upstream.timeout_s, downstream.timeout_s),
        window_limit_segments=downstream.window_limit_segments,
        link_segments_s=min(upstream.link_segments_s, downstream.link_segments_s),
        segments_an_acknowledgement=downstream.segments_an_acknowledgement,
    ).rate_segments_s()


def _idle_rate(drift: float, variance: float, buffer_segments: float) -> float:
    """Segments a second that the emptying half could have carried while the buffer was empty."""
    exponent = 2.0 * drift * buffer_segments / variance
    if abs(exponent) < 1e-9:
        return variance / (2.0 * buffer_segments)
    if exponent > 700.0:
        return 0.0
    return drift / math.expm1(exponent)
