"""A link's rate over time, as steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pepscope.errors import ScenarioError

#: What one delivery opportunity of mahimahi carries: an Ethernet frame's 1,500 bytes and 4 of its TUN device.
OPPORTUNITY_BYTES = 1504
_MOST_STEPS = 10_000_000


@dataclass(frozen=True, slots=True)
class RateTrace:
    """Steps of a rate: `rates_bit_s[n]` holds from `times_s[n]` to `times_s[n + 1]`; there is one time more than rates.

    Raises ScenarioError for times that do not increase, and for rates that are negative or not finite.
    """

    times_s: tuple[float, ...]
    rates_bit_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.rates_bit_s:
            raise ScenarioError("a trace must have at least one rate with a length, got none")
        if len(self.times_s) != len(self.rates_bit_s) + 1:
            raise ScenarioError(
                f"a trace of {len(self.rates_bit_s)} rates must have one time more, got {len(self.times_s)}"
            )
        for number, (earlier, later) in enumerate(pairwise(self.times_s), 2):
            if not (math.isfinite(later) and math.isfinite(earlier) and later > earlier):
                raise ScenarioError(f"times of a trace must increase, got {later:g} s after {earlier:g} s at {number}")
        for number, rate in enumerate(self.rates_bit_s, 1):
            if not (math.isfinite(rate) and rate >= 0):
                raise ScenarioError(f"rate {number} of a trace must be finite and at least 0, got {rate:g}")

    @property
    def duration_s(self) -> float:
        """From the first time to the last."""
        return self.times_s[-1] - self.times_s[0]

    @property
    def mean_bit_s(self) -> float:
        """Over the whole trace."""
        return self._bits() / self.duration_s

    def _bits(self) -> float:
        return math.fsum(
            rate * (later - earlier)
            for rate, (earlier, later) in zip(self.rates_bit_s, pairwise(self.times_s), strict=True)
        )

    def resampled(self, interval_s: float) -> RateTrace:
        """The means over intervals of one length, the last one shorter if it must be."""
        if not (math.isfinite(interval_s) and interval_s > 0):
            raise ScenarioError(f"an interval must be above 0 s, got {interval_s:g}")
        count = math.ceil(self.duration_s / interval_s - 1e-9)
        if count > _MOST_STEPS:
            raise ScenarioError(f"a trace must have at most {_MOST_STEPS} intervals, got {count}")
        start_s, end_s = self.times_s[0], self.times_s[-1]
        edges = [min(start_s + number * interval_s, end_s) for number in range(count)] + [end_s]
        bits = [0.0] * count
        for rate, (earlier, later) in zip(self.rates_bit_s, pairwise(self.times_s), strict=True):
            place = min(int((earlier - start_s) / interval_s), count - 1)
            while place > 0 and edges[place] > earlier:
                place -= 1
            while earlier < later and place < count:
                until = min(later, edges[place + 1])
                bits[place] += rate * max(0.0, until - earlier)
                earlier, place = max(earlier, until), place + 1
        rates = [each / (later - earlier) for each, (earlier, later) in zip(bits, pairwise(edges), strict=True)]
        return RateTrace(tuple(edges), tuple(rates))

    def opportunities_ms(self, opportunity_bytes: int = OPPORTUNITY_BYTES) -> list[int]:
        """When so many bytes could leave again, counted from the first time and rounded up to milliseconds."""
        times: list[int] = []
        left_bits, each_bits = 0.0, 8.0 * opportunity_bytes
        for rate, (earlier, later) in zip(self.rates_bit_s, pairwise(self.times_s), strict=True):
            at_s = earlier
            while rate > 0 and left_bits + rate * (later - at_s) >= each_bits * (1 - 1e-12):
                at_s = min(later, at_s + (each_bits - left_bits) / rate)
                left_bits = 0.0
                times.append(math.ceil((at_s - self.times_s[0]) * 1e3 - 1e-6))
                if len(times) > _MOST_STEPS:
                    raise ScenarioError(f"a trace must have at most {_MOST_STEPS} opportunities")
            left_bits += rate * max(0.0, later - at_s)
        return times


def trace_of_deliveries(
    deliveries: Iterable[tuple[float, int]], interval_s: float, *, skip_s: float = 0.0
) -> RateTrace:
    """The rate of a link that was kept full, from when (s) how many bytes came out of it, in the order of time.

    Time is cut into intervals of `interval_s` from the first delivery after `skip_s` on; the last, unfinished one is
    left out. Raises ScenarioError for deliveries over less than an interval.
    """
    given: Sequence[tuple[float, int]] = list(deliveries)
    if not (math.isfinite(interval_s) and interval_s > 0):
        raise ScenarioError(f"an interval must be above 0 s, got {interval_s:g}")
    kept = [(time, size) for time, size in given if time >= given[0][0] + skip_s] if given else []
    if not kept or (count := int((kept[-1][0] - kept[0][0]) / interval_s)) < 1:
        raise ScenarioError(f"deliveries must last at least one interval of {interval_s:g} s, got fewer")
    start_s = kept[0][0]
    sizes = [0] * count
    for time, size in kept:
        place = int((time - start_s) / interval_s)
        if place < count:
            sizes[place] += size
    times = tuple(number * interval_s for number in range(count + 1))
    return RateTrace(times, tuple(8.0 * size / interval_s for size in sizes))
