"""How applications answer that are late: by one delay, as steadily as a leg, or irregularly; and so behind a leg."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.hypotheses.habits.close_habits import close_as_late, close_irregularly
from detector.one_capture.hypotheses.natures import Crossing, Paths, end_nats
from detector.one_capture.hypotheses.sums import any_delay, any_irregular, any_irregular_behind, any_leg, log, sum_nats
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.timing_tables import Floats

#: Of late applications, those that answer irregularly: a person does, or what there is to do varies.
_IRREGULAR = 0.5

#: Of clients that are late, those that close at once, as nothing is left to think about. All programs of three
#: laboratories do, unless their device delays all. With 4 in 5 (rule of succession) too little was said where closes
#: take as long as a leg: chosen on simulated seeds 5961, 5962, 5971 and 5972 (docs/decisions/101).
CLOSES_AT_ONCE = 0.9


class LateApplication(Struct, frozen=True):
    """Log-likelihoods by member of applications that are late: by one delay (`by_delay`), or irregularly; and of closes
    at once (`closes_at_once`)."""

    by_delay: Floats
    irregular: Floats
    closes_at_once: Floats

    @classmethod
    def of(cls, nats: ExchangeNats, paths: Paths) -> LateApplication:
        """Of the applications that answer these exchanges."""
        return cls(
            any_delay(nats.application, late_close(nats, paths)),
            any_irregular(nats.application) + close_irregularly(nats.closes, paths),
            end_nats(nats.closes, paths),
        )

    @property
    def any(self) -> Floats:
        """By one delay, or irregularly."""
        return self._or_irregularly(self.by_delay)

    def some_steady(self, crossing: Crossing, paths: Paths, share: float) -> Floats:
        """The same where a share of those that have one delay are as steady as a leg, which answers are `crossing`."""
        if not share:
            return self.any
        as_leg = any_leg(sum_nats(crossing.application + paths.natures[:, None])) + self.closes_at_once
        return self._or_irregularly(np.logaddexp(log(1 - share) + self.by_delay, log(share) + as_leg))

    def _or_irregularly(self, by_delay: Floats) -> Floats:
        either: Floats = np.logaddexp(log(1 - _IRREGULAR) + by_delay, log(_IRREGULAR) + self.irregular)
        return either


def late_or_irregular(nats: ExchangeNats) -> Floats:
    """Log-likelihoods by member of what applications answer late by any delay, or irregularly."""
    by_delay, irregular = any_delay(nats.application), any_irregular(nats.application)
    either: Floats = np.logaddexp(log(1 - _IRREGULAR) + by_delay, log(_IRREGULAR) + irregular)
    return either


def late_behind(nats: ExchangeNats, close: Floats, by_delay: Floats) -> Floats:
    """Log-likelihoods by member, leg and nature of answers and closes of applications that are late behind it: by any
    one delay (`by_delay`), or irregularly, where closes take as long as the leg (`close`)."""
    irregular = any_irregular_behind(nats.application)[:, :, None] + close
    either: Floats = np.logaddexp(log(1 - _IRREGULAR) + by_delay, log(_IRREGULAR) + irregular)
    return either


def late_close(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods by member and delay of the closes of hosts that are late: late by the same, or at once."""
    return close_as_late(nats.closes, CLOSES_AT_ONCE, paths)
