"""Keys in TLS handshakes that take machines as long to compute as a leg would take, end to end and behind a leg."""

from __future__ import annotations

import numpy as np

from detector.one_capture.hypotheses.natures import Paths, by_nature, end_nats
from detector.one_capture.hypotheses.sums import log, sum_nats
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.timing_tables import LEG_NATS, Floats


def keys_nats(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods by member and time of libraries that compute keys for so long before TLS handshake flights, as
    steadily as a leg would take, wherever they stand, and longer as often: times that legs take are no rarer than of
    these, so that many members prove nothing by that alone."""
    nats_by_time: Floats = sum_nats(by_nature(nats.handshake) + paths.natures[:, None]) + np.maximum(LEG_NATS, 0.0)
    return nats_by_time


def others_behind_keys(nats: ExchangeNats, late: Floats, priors: Priors, paths: Paths) -> Floats:
    """Log-likelihoods by member of applications behind such libraries, which answer as others: at once, or `late`."""
    at_once = log(1 - priors.late_application) + end_nats(nats.application + nats.closes, paths)
    found: Floats = np.logaddexp(at_once, late)[:, None]
    return found


def keys_behind_legs(keys: Floats, said: Floats, paths: Paths) -> Floats:
    """Log-likelihoods by member and leg of such libraries behind it: what handshakes take (`keys`) is no less than the
    leg, each time as probable as end to end, so that what else is `said`, and closes, tell the leg."""
    beyond = np.logaddexp.accumulate(keys[:, ::-1], axis=1)[:, ::-1] - np.log(keys.shape[1])
    found: Floats = beyond + sum_nats(said + paths.natures[:, None]) + LEG_NATS
    return found
