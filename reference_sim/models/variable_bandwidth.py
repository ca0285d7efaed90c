"""TCP over a link whose rate varies: Ren and Lin, "Modeling and improving TCP performance over cellular link with
variable bandwidth", IEEE TMC 2011, equations (5) to (16).

All in packets and seconds. A flow alone on a link with a drop-tail buffer of B packets and a round trip of tau beside
the queue: windows go from half of `largest_window_packets` to it and back, as in Lakshman and Madhow's closed form for
a fixed rate; with probability p1 a loss ends in a timeout, and a slow start comes first.

Where the paper gives no value, or one that cannot be:
* p1 divides spurious timeouts by drops, which no bandwidth profile has: without `drops` each decrease of the rate
  counts as one, since in the paper each abrupt decrease overflows the buffer. p1 is at most 1.
* A half window may exceed what the pipe holds without a queue; (6) and (7) would then be negative. The pipe is full
  from the start: epoch A takes no time, and epoch B begins at the half window.

Domain: one rate a change, each lasting several round trips, and a buffer of at least the pipe (B >= b tau). With a
smaller one the pipe runs dry after each loss and each rise of the rate, for which there is no term: rates are too high,
by 6 to 49 % at a delay of 100 ms and a buffer of 15 packets. `Throughput.pipe_runs_dry` reports that case. On the other
side slow start (10, 11) outruns the link where the pipe holds less than w_0 / log2(w_0) packets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from reference_sim.models.domain import OutsideDomainError, computable, require_at_least_one, require_positive


@dataclass(frozen=True, slots=True)
class Throughput:
    """The model's result for a flow, with its terms."""

    #: T_h, equation (15).
    rate_packets_s: float
    #: p1, equation (4): share of losses that end in a timeout and a slow start.
    timeout_share: float
    #: N_to: changes of rate that fulfil condition (5).
    spurious_timeouts: int
    #: b, equation (12).
    mean_rate_packets_s: float
    #: w_max, equation (14).
    largest_window_packets: float
    #: Whether half a window leaves the pipe unfilled (epoch A takes time): outside what the model was made for.
    pipe_runs_dry: bool


@computable
def throughput(
    rates_packets_s: Sequence[float],
    round_trip_s: float,
    buffer_packets: float,
    *,
    drops: int | None = None,
) -> Throughput:
    """Throughput over a bandwidth profile (equation 15).

    `rates_packets_s` has the rate of each cycle of the variation, `round_trip_s` is tau: everything but queue and
    service. `drops` is N_d where it was measured. A cycle in which nothing is served enters the means, and its
    beginning is a decrease beyond all bounds.
    Raises OutsideDomainError for no rate, a negative one, or only zeros, and unless `round_trip_s` is above 0 and
    `buffer_packets` at least 1.
    """
    _check(rates_packets_s, round_trip_s, buffer_packets)
    if drops is not None and drops < 0:
        raise OutsideDomainError(f"drops must be at least 0, got {drops}")
    cycles = len(rates_packets_s)
    mean = math.fsum(rates_packets_s) / cycles
    full = [rate * round_trip_s + buffer_packets + 1.0 for rate in rates_packets_s]
    largest = math.sqrt(math.fsum(window * window for window in full) / cycles)
    half = largest / 2.0
    round_s = round_trip_s + 1.0 / mean
    pipe = mean * round_s

    a_s = round_s * max(0.0, pipe - half)
    a_packets = (half * a_s + a_s * a_s / (2.0 * round_s)) / round_s
    b_s = (largest**2 - max(pipe, half) ** 2) / (2.0 * mean)
    b_packets = mean * b_s
    c_s = math.ceil(math.log2(half + 1.0)) * round_s
    c_packets = half

    spurious = spurious_timeouts(rates_packets_s, round_trip_s, buffer_packets)
    losses = drops if drops is not None else decreases(rates_packets_s)
    share = min(1.0, spurious / losses) if losses else 0.0
    packets = share * c_packets + a_packets + b_packets
    return Throughput(
        rate_packets_s=packets / (share * c_s + a_s + b_s),
        timeout_share=share,
        spurious_timeouts=spurious,
        mean_rate_packets_s=mean,
        largest_window_packets=largest,
        pipe_runs_dry=pipe > half,
    )


@computable
def spurious_timeouts(rates_packets_s: Sequence[float], round_trip_s: float, buffer_packets: float) -> int:
    """N_to: how often the rate falls so far that a timer of two round trips runs out, the queue being half full before
    (condition 5: (b - b') / b' > 1 + 2 tau b / (B + 2)).

    Raises OutsideDomainError as `throughput`.
    """
    _check(rates_packets_s, round_trip_s, buffer_packets)
    bound = (
        (before, after, 1.0 + 2.0 * round_trip_s * before / (buffer_packets + 2.0))
        for before, after in pairwise(rates_packets_s)
    )
    return sum(before - after > limit * after for before, after, limit in bound)


def decreases(rates_packets_s: Sequence[float]) -> int:
    """How often the rate falls."""
    return sum(after < before for before, after in pairwise(rates_packets_s))


def relative_error(actual: float, estimated: float) -> float:
    """What the paper calls accuracy (equation 16). Raises OutsideDomainError unless `actual` is above 0."""
    require_positive("actual", actual)
    return abs(actual - estimated) / actual


def _check(rates_packets_s: Sequence[float], round_trip_s: float, buffer_packets: float) -> None:
    if not rates_packets_s or not any(rates_packets_s):
        raise OutsideDomainError("the bandwidth profile must have a rate above 0")
    for rate in rates_packets_s:
        if not (math.isfinite(rate) and rate >= 0.0):
            raise OutsideDomainError(f"rates of the bandwidth profile must be finite and 0 or above, got {rate:g}")
    require_positive("round_trip_s", round_trip_s)
    require_at_least_one("buffer_packets", buffer_packets)
