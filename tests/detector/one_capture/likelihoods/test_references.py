"""What round trips outside TCP to the same hosts say of a hidden leg."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.likelihoods.references.reference_nats import reference_nats
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.networks import NetworkTable, places
from tests.detector.one_capture.made_vantages import Talk, vantage

HOST = "192.0.2.1"


def said(ping_ms: float, times: int, *, at_client: bool = True) -> np.ndarray:
    """Nats of each leg against none of so many echoes beside as many connections of 20 ms and, but for every fourth
    one, more."""
    talks = [Talk(HOST, (), 20.0, handshake_ms=20.0 + 10.0 * (number % 4)) for number in range(times)]
    pings = [(HOST, ping_ms)] * times
    made = vantage(talks, at_client=True, pings=pings)
    where = places(made.columns, at_client=True, table=NetworkTable())
    timing = exchange_timing(made.exchanges, where, at_client=True)
    nats = reference_nats(made.references, where, timing, at_client=at_client).nats[0]
    return np.asarray(nats[1:] - nats[0])


@pytest.mark.parametrize("at_client", [True, False])
def test_echoes_that_take_longer_tell_the_leg(*, at_client: bool) -> None:
    found = said(80.0, 6, at_client=at_client)
    assert HIDDEN_S[found.argmax()] == pytest.approx(0.06, rel=0.05)
    assert found.max() > 2
    assert said(20.0, 6, at_client=at_client)[HIDDEN_S > 0.04].max() < -2


def test_many_echoes_say_more_than_few_at_the_client_most() -> None:
    assert said(50.0, 12).max() > said(50.0, 4).max()
    assert said(50.0, 12).max() > said(50.0, 12, at_client=False).max()
