"""What handshakes and references say beside data where a path varies, or nothing tells how much."""

from __future__ import annotations

import numpy as np

from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.likelihoods.waiting_handshakes import waiting_nats
from tests.detector.one_capture.made_vantages import Talk, judged


def test_data_a_little_later_than_the_handshake_are_no_timers_doing_where_the_path_may_vary() -> None:
    one = np.ones(1)
    unknown = waiting_nats(0.083 * one, 0.089 * one, np.nan * one, np.ones(1, np.int64))
    steady = waiting_nats(0.083 * one, 0.089 * one, 0.0 * one, np.ones(1, np.int64))
    assert unknown.known.all()
    shows = (HIDDEN_S >= 0.01) & (HIDDEN_S < 0.083)
    assert (unknown.legs[:, shows] < steady.legs[:, shows] - 1).all()
    assert (unknown.legs[:, HIDDEN_S > 0.02] < 0).all()


def test_radio_that_sleeps_holds_handshakes_up_more_often_the_more_round_trips_vary() -> None:
    varies_s = np.array([0.0, 0.003, 0.01, 0.05])
    leg = 90
    found = waiting_nats(np.full(4, 0.18 + HIDDEN_S[leg]), np.full(4, 0.18), varies_s, np.full(4, 2))
    assert (np.diff(found.legs[:, leg]) < 0).all()


def test_late_pings_tell_less_where_nothing_tells_how_a_path_varies() -> None:
    """Four round trips and more tell, and fewer do not."""
    hosts = ("192.0.2.1", "198.51.100.1", "203.0.113.1")
    pings = [(host, 112.0) for host in hosts]
    known, unknown = (
        judged([Talk(host, round_trip_ms=100.0, round_trips=count) for host in hosts], at_client=True, pings=pings)
        for count in (8, 1)
    )
    assert np.isnan(unknown.timing.variation_s).all()
    assert (known.timing.variation_s == 0).all()
    assert unknown.groups.split[0] < known.groups.split[0]
