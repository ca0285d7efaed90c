"""By how much a path varies, as far as so many round trips tell, and so how far the least of some may lie apart.

What a path adds to a round trip is taken as exponential with a scale b. A few round trips that happen to be equal do
not say that b is zero: b is uncertain, an inverse gamma, and each round trip makes it surer. The least of n lies above
what the path takes by b / sqrt(n), since round trips of one time are alike; of independent ones it would be b / n. With
b integrated over, two least times differ as a Lomax (Pareto II) distribution says on either side: as a Laplace
distribution where many round trips were measured, with far tails where few were.

    b ~ inverse gamma (a, a0 b0 + w n v),  a = a0 + w n;  v as `ExchangeTiming.variation_s` has it, n round trips

The numbers are fitted to regular clients of simulated seed 6001 and of kernels, 3929 to 3931 (docs/decisions/114).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.likelihoods.timing_tables import Floats

#: Beforehand: the shape a0 and scale b0 (s) of a path's variation, and what a round trip adds to the shape.
_SHAPE, _SCALE_S, _BY_ROUND_TRIP = 1.6, 0.0015, 0.4

#: What clocks and hosts blur a least time by (s), beside the path.
_BLUR_S = 0.0003


class PathVariation(Struct, frozen=True):
    """What is known of how paths vary, by member: the `shape` and `scale_s` of an inverse gamma distribution."""

    shape: Floats
    scale_s: Floats

    @classmethod
    def measured(cls, variation_s: Floats, round_trips: Floats) -> PathVariation:
        """Given the variation of so many round trips (s, NaN where nothing was measured)."""
        weight = _BY_ROUND_TRIP * np.where(np.isnan(variation_s), 0.0, round_trips)
        return cls(_SHAPE + weight, _SHAPE * _SCALE_S + weight * np.nan_to_num(variation_s))

    @classmethod
    def unknown(cls, members: int) -> PathVariation:
        """Where nothing was measured."""
        return cls.measured(np.full(members, np.nan), np.zeros(members))

    def density(self, later_s: Floats, sooner_of: Floats, later_of: Floats) -> Floats:
        """Densities (per second) of the least of `later_of` round trips being later by `later_s` than the least of
        `sooner_of`, where both take the same path; arrays of members, `later_s` with or without further axes."""
        more = (...,) + (None,) * (later_s.ndim - 1)
        shape, scale_s = self.shape[more], self.scale_s[more]
        blur = _BLUR_S * shape / scale_s
        above, below = (blur + 1 / np.sqrt(np.maximum(count, 1.0))[more] for count in (later_of, sooner_of))
        away = np.abs(later_s) / (scale_s * np.where(later_s > 0, above, below))
        found: Floats = shape / (scale_s * (above + below)) * (1 + away) ** (-shape - 1)
        return found
