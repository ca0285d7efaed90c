"""How much the near leg's round trips vary: wires speak for a split, access links against it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.senders.near_variation import near_variation_nats


def test_a_steady_near_leg_speaks_for_a_split_and_one_that_varies_against_it() -> None:
    wire, busy, access = near_variation_nats(np.array([1e-4, 0.002, 0.008]))
    assert wire > 0.5
    assert abs(busy) < 0.5
    assert access < -1.5


@given(st.floats(0.0, 10.0) | st.just(float("nan")))
def test_what_it_says_is_bounded(variation_s: float) -> None:
    (found,) = near_variation_nats(np.array([variation_s]))
    assert -4.0 <= found <= 1.2
    assert not np.isnan(variation_s) or found == 0.0
