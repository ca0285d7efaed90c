"""What handshakes say beside data where nothing tells how a path varies."""

from __future__ import annotations

import numpy as np

from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.likelihoods.waiting_handshakes import waiting_nats


def test_data_a_little_later_than_the_handshake_are_no_timers_doing_where_the_path_may_vary() -> None:
    one = np.ones(1)
    unknown = waiting_nats(0.083 * one, 0.089 * one, np.nan * one, np.ones(1, np.int64))
    steady = waiting_nats(0.083 * one, 0.089 * one, 0.0 * one, np.ones(1, np.int64))
    assert unknown.known.all()
    shows = (HIDDEN_S >= 0.01) & (HIDDEN_S < 0.083)
    assert (unknown.legs[:, shows] < steady.legs[:, shows] - 1).all()
    assert (unknown.legs[:, HIDDEN_S > 0.02] < 0).all()
