"""The response to load by member, and on transfers whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from detector.one_capture.senders.load import FEWEST_SAMPLES, MemberLoad, member_load
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
        times_shut=[0, 3, 1], shut_ns=[0, 10**9, 10**9],
    )  # fmt: skip
    found = member_load(made, Direction.DOWN, np.asarray([0, 1, 1]), 2)
    assert found.transfers.tolist() == [1, 1]
    assert found.elasticity == pytest.approx([1.0, 0.0])
    assert found.growth_s == pytest.approx([300e-9, 0.0])
    assert (found.times_shut.tolist(), found.shut_s.tolist()) == ([0, 4], [0.0, 2.0])


def test_flights_that_hardly_grow_tell_nothing() -> None:
    made = load_responses(
        1, 1, samples=50, idle_ns=100, loaded_ns=300, idle_flight_bytes=1000, loaded_flight_bytes=1500
    )
    found = member_load(made, Direction.DOWN, np.zeros(1, np.int64), 1)
    assert np.isnan(found.elasticity[0])
    assert found.growth_s[0] == pytest.approx(200e-9)


@pytest.mark.parametrize("name", ["reg_dl_bloat_1M", "reg_dl_nat", "reg_dl_cubic_lte"])
def test_downloads_end_to_end_queue_on_the_path(name: str) -> None:
    found = at_server(name)
    assert found.growth_s[0] > 0.1
    assert found.elasticity[0] > 0.5
    assert found.times_shut[0] == 0


@pytest.mark.parametrize("name", ["spl_ha_dl_large_umts", "spl_ha_dl_small_umts", "spl_ha_ftp_dl"])
def test_downloads_behind_a_split_shut_its_window(name: str) -> None:
    found = at_server(name)
    assert found.growth_s[0] < 0.05
    assert found.elasticity[0] < 0.1
    assert found.times_shut[0] > 5
    assert found.shut_s[0] > 1.0
