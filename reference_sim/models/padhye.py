"""Reno with timeouts: Padhye, Firoiu, Towsley and Kurose, "Modeling TCP Reno performance", ToN 8(2), 2000.

A loss takes all further segments of its round with it, rounds are independent, a loss is found by three duplicates or
by a timeout of T0 that doubles up to 64 T0, the time of a round does not depend on the window, and the sender always
has something to send. `loss_probability` is thus that of a segment whose predecessors in the round arrived: the rate of
loss indications, at most the rate of losses. Slow start is left out, and a timer resets its backoff at once, so
rates are too high where timeouts are most of what happens: from a loss probability of about 0.1 on
(docs/models/tcp_throughput.md).
"""

from __future__ import annotations

import math

from reference_sim.models.domain import computable, require_at_least_one, require_positive, require_probability


@computable
def send_rate_segments_s(
    loss_probability: float,
    round_trip_s: float,
    timeout_s: float,
    *,
    window_limit_segments: float = math.inf,
    segments_an_acknowledgement: float = 2.0,
) -> float:
    """Segments sent a second, the lost ones included (equation 32, the full model).

    `timeout_s` is the first timeout T0, `window_limit_segments` what the receiver allows.
    Raises OutsideDomainError unless 0 < `loss_probability` < 1, times and delayed ACKs are above 0, and the limit is at
    least one segment.
    """
    p, b = loss_probability, segments_an_acknowledgement
    _check(p, round_trip_s, timeout_s, window_limit_segments, b)
    window = _unconstrained_window(p, b)
    if window < window_limit_segments:
        rounds = b / 2.0 * window + 1.0
    else:
        window = window_limit_segments
        rounds = b / 8.0 * window + (1.0 - p) / (p * window) + 2.0
    by_timeout = timeout_share(p, window)
    segments = (1.0 - p) / p + window + by_timeout / (1.0 - p)
    duration_s = round_trip_s * rounds + by_timeout * _backed_off(p) * timeout_s / (1.0 - p)
    return segments / duration_s


@computable
def approximate_send_rate_segments_s(
    loss_probability: float,
    round_trip_s: float,
    timeout_s: float,
    *,
    window_limit_segments: float = math.inf,
    segments_an_acknowledgement: float = 2.0,
) -> float:
    """Segments sent a second by the well-known short form (equation 33).

    Raises OutsideDomainError as `send_rate_segments_s`.
    """
    p, b = loss_probability, segments_an_acknowledgement
    _check(p, round_trip_s, timeout_s, window_limit_segments, b)
    waiting_s = timeout_s * min(1.0, 3.0 * math.sqrt(3.0 * b * p / 8.0)) * p * (1.0 + 32.0 * p * p)
    return min(window_limit_segments / round_trip_s, 1.0 / (round_trip_s * math.sqrt(2.0 * b * p / 3.0) + waiting_s))


@computable
def timeout_share(loss_probability: float, window_segments: float) -> float:
    """Share of loss indications that are timeouts at a window of so many segments (equation 24).

    Raises OutsideDomainError unless 0 < `loss_probability` < 1 and the window is at least one segment.
    """
    p, window = loss_probability, window_segments
    require_probability("loss_probability", p)
    require_at_least_one("window_segments", window)
    if window <= 3.0:
        return 1.0
    three_arrive = math.pow(1.0 - p, 3.0)
    later_arrive = math.pow(1.0 - p, window - 3.0)
    share = (1.0 - three_arrive) * (1.0 + three_arrive * (1.0 - later_arrive)) / (1.0 - three_arrive * later_arrive)
    return min(1.0, share)


def _unconstrained_window(p: float, b: float) -> float:
    """Mean window at a loss (equation 13)."""
    offset = (2.0 + b) / (3.0 * b)
    return offset + math.sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + offset * offset)


def _backed_off(p: float) -> float:
    """f(p): the mean of a sequence of timeouts in T0, times 1 - p (equation 29)."""
    return 1.0 + p + 2.0 * p**2 + 4.0 * p**3 + 8.0 * p**4 + 16.0 * p**5 + 32.0 * p**6


def _check(p: float, round_trip_s: float, timeout_s: float, window_limit_segments: float, b: float) -> None:
    require_probability("loss_probability", p)
    require_positive("round_trip_s", round_trip_s)
    require_positive("timeout_s", timeout_s)
    require_positive("segments_an_acknowledgement", b)
    require_at_least_one("window_limit_segments", window_limit_segments)
