"""How applications answer that are late: by one delay, as steadily as a leg, or irregularly; and so behind a leg."""

from __future__ import annotations

import numpy as np

from detector.one_capture.hypotheses.habits.close_habits import close_as_late, close_irregularly
from detector.one_capture.hypotheses.natures import Paths, by_nature, end_nats
from detector.one_capture.hypotheses.sums import any_delay, any_irregular, any_irregular_behind, any_leg, log, sum_nats
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.timing_tables import Floats

#: Of late applications, those that answer irregularly: a person does, or what there is to do varies.
_IRREGULAR = 0.5

#: Of clients that are late, those that close at once, as nothing is left to think about. All programs of three
#: laboratories do, unless their device delays all. With 4 in 5 (rule of succession) too little was said where closes
#: take as long as a leg: chosen on simulated seeds 5961, 5962, 5971 and 5972 (docs/decisions/101).
CLOSES_AT_ONCE = 0.9


def late_application(nats: ExchangeNats, paths: Paths, steady: float) -> Floats:
    """Log-likelihoods of applications that are late by one delay, a share of them as `steady` as a leg, or
    irregularly."""
    by_delay = any_delay(nats.application, late_close(nats, paths))
    if steady:
        as_leg = any_leg(sum_nats(by_nature(nats.application) + paths.natures[:, None]))
        as_leg += end_nats(nats.closes, paths)
        by_delay = np.logaddexp(log(1 - steady) + by_delay, log(steady) + as_leg)
    irregular = any_irregular(nats.application) + close_irregularly(nats.closes, paths)
    return np.logaddexp(log(1 - _IRREGULAR) + by_delay, log(_IRREGULAR) + irregular)


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
