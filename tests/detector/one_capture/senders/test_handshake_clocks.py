"""Timestamps that lag behind the handshake's, where a box in the path made the handshake."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.members import Floats
from detector.one_capture.senders.clocks import COUNTER
from detector.one_capture.senders.handshake_clocks import lagging_share
from pepscope.captures.direction import Direction
from tests.detector.one_capture.senders.made_senders import senders

MS = 1_000_000


def share(
    lag_ms: float, handshake_ms: float = 40.0, *, began: int = 7, rate_hz: int = 1000, ticked: int = 9, later: int = 9
) -> float:
    """Of one connection whose later packets, 60 and 460 ms behind the SYN-ACK, lag by so much."""
    ticks = [began + round((after_ms - lag_ms) * rate_hz / 1000) for after_ms in (60, 460)]
    made = senders(
        1, int(Direction.DOWN), syn_ns=[100 * MS], syn_tsval=[began % COUNTER], later_packets=[later],
        ticked_packets=[ticked], first_tick_ns=[160 * MS], first_tsval=[ticks[0] % COUNTER],
        last_tick_ns=[560 * MS], last_tsval=[ticks[1] % COUNTER],
    )  # fmt: skip
    handshake_s: Floats = np.asarray([handshake_ms / 1e3])
    return float(lagging_share(made, handshake_s, Direction.DOWN, np.zeros(1, np.int64), 1)[0])


@given(st.floats(-300.0, 15.0), st.integers(0, COUNTER - 1), st.sampled_from([250, 1000]))
def test_one_hosts_packets_do_not_lag(lag_ms: float, began: int, rate_hz: int) -> None:
    """What held the SYN-ACK up, and a SYN cookie, let what follows seem early."""
    assert share(lag_ms, began=began, rate_hz=rate_hz) == 0


@given(st.floats(5.0, 300.0), st.floats(0.0, 300.0), st.integers(0, COUNTER - 1))
def test_a_proxys_server_lags_by_the_handshake_and_the_path_behind(near_ms: float, path_ms: float, began: int) -> None:
    assert share(near_ms + path_ms, near_ms, began=began) == 1


def test_a_host_without_timestamps_never_offered_them() -> None:
    assert share(0.0, ticked=0) == 1
    assert np.isnan(share(0.0, ticked=0, later=1))


def test_a_lag_within_ticks_does_not_show() -> None:
    assert np.isnan(share(3.0, 3.0))
    assert np.isnan(share(30.0, 30.0, rate_hz=100))


def test_without_a_timestamp_in_the_handshake_nothing_is_known() -> None:
    made = senders(1, int(Direction.DOWN), syn_ns=[0], ticked_packets=[5], later_packets=[5], first_tick_ns=[60 * MS])
    assert np.isnan(lagging_share(made, np.asarray([0.04]), Direction.DOWN, np.zeros(1, np.int64), 1)[0])
