"""Handshakes that pass a box which acknowledges data in the clients' names, at the server's side.

Such a box lets handshakes through, and so seems no end of the transport: they take the whole path, and so do answers.
But what acknowledges the server's data stands nearer, by the leg that answers take beyond. End to end a handshake is
later than data where something held up every one that was seen (a radio that wakes up), or data took a faster path.
What is known of the path's variation says how much of that to expect: little is known where few round trips were
measured, and nothing of the leg behind the box.
"""

from __future__ import annotations

import numpy as np

from detector.one_capture.hypotheses.passing.path_variation import PathVariation
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, Floats
from detector.one_capture.likelihoods.waiting_handshakes import LATER_S, WaitingNats

#: How often something held up the only handshake of a member, and the least of n one n-th as often: fitted with the
#: numbers of `path_variation`.
_HELD_UP = 0.17

#: Where one end makes both, how often data are acknowledged later than the handshake, by anything; and behind a box, by
#: anything that is no longer than the leg.
_DELAYED, _DELAYED_BEHIND = 0.1, 0.2

#: Times that hold a handshake or an acknowledgement up (s), log-uniform; density (per second) of what nothing explains.
_LEAST_S, _MOST_S = 0.001, 1.0
_NEVER = 1e-6


def passed_nats(timing: ExchangeTiming) -> WaitingNats:
    """Compare by member the least handshake with the least of its data that packets without payload acknowledged: the
    ratio of a box that lets handshakes pass and one end that makes both."""
    later_s = timing.handshake_s - timing.plain_s
    known = later_s > -LATER_S  # otherwise data were acknowledged by a timer
    later_s = np.nan_to_num(later_s)
    held_up = _HELD_UP / np.maximum(timing.handshakes, 1)
    path = PathVariation.measured(timing.variation_s, timing.round_trips)
    alike = path.density(later_s, timing.acknowledgements, timing.handshakes)
    end = (1 - _DELAYED) * _held_up(alike, later_s, held_up) + _DELAYED * _anything(-later_s) + _NEVER
    beyond_s = later_s[:, None] - HIDDEN_S
    leg = PathVariation.unknown(len(later_s))
    alike = leg.density(beyond_s, timing.acknowledgements, timing.handshakes)
    delayed = np.where((beyond_s < 0) & (later_s[:, None] > 0), 1 / HIDDEN_S, 0.0)
    legs = (1 - _DELAYED_BEHIND) * _held_up(alike, beyond_s, held_up[:, None]) + _DELAYED_BEHIND * delayed + _NEVER
    fits = np.where(timing.handshake_s[:, None] < HIDDEN_S, np.log(_NEVER), 0.0)
    return WaitingNats(known, np.where(known[:, None], np.log(legs) - np.log(end)[:, None], fits))


def _held_up(alike: Floats, later_s: Floats, held_up: Floats) -> Floats:
    """The densities `alike` where something may hold the handshake up."""
    density: Floats = (1 - held_up) * alike + held_up * _anything(later_s)
    return density


def _anything(later_s: Floats) -> Floats:
    taken_s = np.maximum(later_s, _LEAST_S)
    return np.where(later_s > _LEAST_S, 1 / (taken_s * np.log(_MOST_S / _LEAST_S)), 0.0)
