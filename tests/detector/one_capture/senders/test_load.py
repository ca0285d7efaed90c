"""The response to load by member, and on transfers whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from detector.one_capture.senders.load import FEWEST_SAMPLES, MemberLoad, member_load, member_variation
from pepscope.captures.capture import open_capture
from pepscope.captures.direction import Direction
from tests.detector.one_capture.senders.made_senders import load_responses

CORPUS = Path(__file__).parents[3] / "corpus"


def at_server(name: str) -> MemberLoad:
    """Of the server's data, all connections together."""
    capture = open_capture(str(CORPUS / f"{name}.srv.pcap.gz"))
    member = np.zeros(len(capture.connections), np.int64)
    return member_load(capture.load_responses(), Direction.DOWN, member, 1)


def test_a_full_link_has_elasticity_one_and_a_flat_one_zero() -> None:
    made = load_responses(
        3, 1,
        samples=[FEWEST_SAMPLES, 100, FEWEST_SAMPLES - 1],
        idle_ns=[100, 100, 100], loaded_ns=[400, 100, 900],
        idle_flight_bytes=[1000, 1000, 1000], loaded_flight_bytes=[4000, 8000, 9000],
        data_packets=[10, 20, 10], window_filling_packets=[0, 5, 10], times_shut=[0, 3, 1], shut_ns=[0, 10**9, 10**9],
    )  # fmt: skip
    found = member_load(made, Direction.DOWN, np.asarray([0, 1, 1]), 2)
    assert found.transfers.tolist() == [1, 1]
    assert found.elasticity == pytest.approx([1.0, 0.0])
    assert found.growth_s == pytest.approx([300e-9, 0.0])
    assert found.filled_share == pytest.approx([0.0, 0.25])
    assert (found.times_shut.tolist(), found.shut_s.tolist()) == ([0, 4], [0.0, 2.0])


def test_flights_that_hardly_grow_tell_nothing() -> None:
    made = load_responses(
        1, 1, samples=50, idle_ns=100, loaded_ns=300, idle_flight_bytes=1000, loaded_flight_bytes=1500
    )
    found = member_load(made, Direction.DOWN, np.zeros(1, np.int64), 1)
    assert np.isnan(found.elasticity[0])
    assert found.growth_ratio[0] == 3.0


@pytest.mark.parametrize("name", ["reg_dl_bloat_1M", "reg_dl_nat", "reg_dl_cubic_lte"])
def test_downloads_end_to_end_queue_on_the_path(name: str) -> None:
    found = at_server(name)
    assert found.growth_s[0] > 0.1
    assert found.elasticity[0] > 0.5
    assert (found.filled_share[0], found.times_shut[0]) == (0.0, 0)


@pytest.mark.parametrize("name", ["spl_ha_dl_large_umts", "spl_ha_dl_small_umts", "spl_ha_ftp_dl"])
def test_downloads_behind_a_split_shut_its_window(name: str) -> None:
    found = at_server(name)
    assert found.growth_s[0] < 0.05
    assert found.elasticity[0] < 0.1
    assert found.times_shut[0] > 5
    assert found.shut_s[0] > 1.0


def test_a_slow_reader_fills_windows_end_to_end() -> None:
    found = at_server("reg_dl_slowreader_rate")
    assert found.filled_share[0] > 0.1, "which is why windows alone accuse nobody"


def test_variation_that_exchanges_have_and_the_transport_has_not() -> None:
    capture = open_capture(str(CORPUS.parent / "one_ended" / "lte-split.mobile.pcap.gz"))
    member = np.zeros(len(capture.connections), np.int64)
    found = member_variation(capture.exchanges(), capture.load_responses(), Direction.UP, member, 1)
    assert found.exchange_s[0] > 2 * found.transport_s[0] > 0
    none = member_variation(capture.exchanges(), capture.load_responses(), Direction.UP, member - 1, 1)
    assert np.isnan([none.exchange_s[0], none.transport_s[0], none.lost_share[0]]).all()
