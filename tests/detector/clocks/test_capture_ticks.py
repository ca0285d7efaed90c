"""Captures whose clocks tick coarsely, or that hold no times: what the order of times may say of them."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.clocks.capture_ticks import ticks_of_accused_s, ticks_s
from detector.clocks.untimed import FEWEST_COUNTED, are_untimed
from detector.method import Observation
from detector.methods.ack_timing import METHOD as ACK_TIMING
from detector.methods.early_fin import METHOD as EARLY_FIN
from detector.methods.progress import METHOD as PROGRESS
from pepscope.captures.packets import PacketColumns
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone

SECOND_NS = 10**9
REGULAR = [name for name, run in RUNS.items() if run["class"] == "regular" and run.get("variant") is None]


def one_time(time_ns):
    """Simple packet blocks of pcapng: no packet has a time."""
    return np.zeros_like(time_ns)


def counted(time_ns):
    """A capture made of text: every packet comes a microsecond behind the one before."""
    return np.arange(len(time_ns), dtype=np.int64) * 1000


def in_seconds(time_ns):
    return time_ns // SECOND_NS * SECOND_NS


def changed(vantage, change):
    return replace(vantage, packets=vantage.packets.replaced(time_ns=change(vantage.packets.time_ns)))


@pytest.mark.parametrize("side", ["client_side", "server_side"])
@pytest.mark.parametrize("change", [one_time, counted, in_seconds])
@pytest.mark.parametrize("run_id", REGULAR)
def test_times_that_are_none_accuse_no_regular_connection(run_id, change, side):
    for pair in pairs(run_id):
        odd = replace(pair, **{side: changed(getattr(pair, side), change)})
        for method in (ACK_TIMING, PROGRESS, EARLY_FIN):
            found = alone(method, Observation(odd))
            assert found.outcome is not Outcome.SPLIT, (method.name, found.summary)


def test_a_contradiction_beyond_the_ticks_is_found_all_the_same():
    for pair in pairs("prx_ngx_2M_umts"):
        odd = replace(pair, server_side=changed(pair.server_side, in_seconds))
        assert alone(ACK_TIMING, Observation(odd)).finding == "acks-before-data"
        assert alone(PROGRESS, Observation(odd)).outcome is Outcome.SPLIT


def test_a_capture_without_times_shows_no_order():
    for pair in pairs("prx_ngx_2M_umts"):
        for change in (one_time, counted):
            odd = replace(pair, server_side=changed(pair.server_side, change))
            found = alone(ACK_TIMING, Observation(odd))
            assert found.finding == "ack-timing-unknown"
            assert "holds no times that can be compared" in found.summary


def test_ticks_of_both_captures_add_up():
    (pair,) = pairs("reg_dl_cubic_lte")
    fine = ticks_s([pair])
    ten_ms = {
        side: changed(getattr(pair, side), lambda time_ns: time_ns // 10**7 * 10**7)
        for side in ("client_side", "server_side")
    }
    assert fine[0] < 1e-3
    assert ticks_s([replace(pair, server_side=ten_ms["server_side"])])[0] == pytest.approx(0.01, abs=1e-3)
    assert ticks_s([replace(pair, **ten_ms)])[0] == pytest.approx(0.02)


def test_few_packets_are_no_proof_that_there_are_no_times():
    (pair,) = pairs("reg_dl_cubic_lte")
    for packets, expected in ((FEWEST_COUNTED, 0.0), (FEWEST_COUNTED + 1, np.inf)):
        few = PacketColumns(
            **{name: getattr(pair.server_side.packets, name)[:packets] for name in PacketColumns.COLUMNS}
        )
        odd = replace(pair, server_side=changed(replace(pair.server_side, packets=few), counted))
        assert ticks_of_accused_s([odd])[0] == expected
        assert are_untimed([odd])[0] == (expected > 0)
