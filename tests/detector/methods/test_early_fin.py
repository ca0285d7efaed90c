"""A FIN that arrives before it was sent: found behind proxies that close first, never end to end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.early_fin import METHOD
from detector.pair import Pair
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, Variation, pairs
from tests.detector.methods.alone import alone


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_false_alarm(run_id):
    assert all(examined(pair).outcome is Outcome.INAPPLICABLE for pair in pairs(run_id))


@pytest.mark.parametrize("run_id", ["prx_ngx_2M_umts", "prx_ngx_par6"])
def test_a_proxy_that_closes_first(run_id):
    for pair in pairs(run_id):
        found = examined(pair)
        assert found.finding == "fin-before-forwarded"
        assert found.numbers["fin_lead_s"] > 1.0


@pytest.mark.parametrize("run_id", ["spl_ha_dl_large_umts", "spl_ha_dl_srcip", "spl_ha_chat"])
def test_a_relay_passes_it_on(run_id):
    assert all(examined(pair).outcome is Outcome.INAPPLICABLE for pair in pairs(run_id))


@settings(max_examples=20, deadline=None)
@given(st.floats(-1e4, 1e4), st.floats(-400, 400))
def test_the_clock_does_not_matter(offset_s, drift_ppm):
    changed = Variation(offset_s=offset_s, drift_ppm=drift_ppm)
    assert all(examined(pair).outcome is Outcome.INAPPLICABLE for pair in pairs("reg_dl_cdma1x", changed))
    assert all(examined(pair).finding == "fin-before-forwarded" for pair in pairs("prx_ngx_2M_umts", changed))


def test_a_fin_that_was_sent_before_is_no_finding():
    (pair,) = pairs("prx_ngx_2M_umts")
    packets = pair.client_side.packets
    fins = (packets.direction == Direction.UP) & ((packets.flags & TcpFlag.FIN) != 0)
    again = packets.replaced(marks=np.where(fins, packets.marks | np.uint16(1), packets.marks))
    assert examined(replace(pair, client_side=replace(pair.client_side, packets=again))).outcome is Outcome.INAPPLICABLE
