"""How members close: at once, as late as they answer, as a leg makes them late, or by a habit of their own."""

from __future__ import annotations

import numpy as np

from detector.one_capture.hypotheses.natures import WIRED, Paths, by_nature, end_nats
from detector.one_capture.hypotheses.sums import any_delay, any_irregular, any_leg, log, sum_nats
from detector.one_capture.likelihoods.exchange_nats import are_none
from detector.one_capture.likelihoods.timing_tables import Floats, TimingTables

#: Of clients that answer irregularly, those that close by a habit of their own: a timer as steady as a wired leg, any
#: delay, or as they answer. Assumed; it bounds what closes say for a leg, and for a queue in it, however many.
_CLOSES_BY_HABIT = 0.05


def close_as_late(close: Floats, at_once: float, paths: Paths) -> Floats:
    """Log-likelihoods by member and delay of closes that take as long as answers, or `at_once`, a share of members."""
    late: Floats = np.logaddexp(
        log(1 - at_once) + close[:, TimingTables.LATE], log(at_once) + end_nats(close, paths)[:, None]
    )
    return late


def close_behind(close: Floats, at_once: float, paths: Paths) -> Floats:
    """Log-likelihoods by member, leg and nature of closes that take as long as the leg; a share of members close
    `at_once`, all of their connections alike. Where there are no closes one stands for all legs and natures."""
    fast = log(at_once) + end_nats(close, paths)[:, None, None]
    behind = by_nature(close)[:, :1, :1] if are_none(close) else by_nature(close)
    either: Floats = np.logaddexp(log(1 - at_once) + behind, fast)
    return either


def close_irregularly(closes: Floats, paths: Paths) -> Floats:
    """Log-likelihoods by member of closes of clients that answer irregularly: at once, or by a habit of theirs."""
    by_timer = any_leg(sum_nats(by_nature(closes)[..., :WIRED]) - np.log(WIRED))
    habits = np.stack([by_timer, any_delay(closes), any_irregular(closes)], axis=-1)
    by_habit = sum_nats(habits) - np.log(habits.shape[1])
    at_once = log(1 - _CLOSES_BY_HABIT) + end_nats(closes, paths)
    either: Floats = np.logaddexp(at_once, log(_CLOSES_BY_HABIT) + by_habit)
    return either
