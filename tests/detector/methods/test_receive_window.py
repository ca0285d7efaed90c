from __future__ import annotations

from dataclasses import replace

import pytest

from detector.methods.receive_window import examine, transfer_spans
from pepscope.packets import Direction
from pepscope.results import Outcome
from tests.detector.corpus import RUNS, end_points, pairs, truth


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_false_alarm_where_the_window_closes_end_to_end(run_id):
    for pair in pairs(run_id):
        assert examine(pair, None).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize(
    ("run_id", "finding"),
    [
        ("spl_ha_dl_small_umts", "window-alternates"),
        ("spl_ha_dl_large_umts", "window-alternates"),
        ("spl_ha_ul_slowwire", "window-alternates"),
        ("prx_ngx_2M_umts", "window-open-receiver-behind"),
        ("prx_ngx_2M_umts__mid", "window-open-receiver-behind"),
    ],
)
def test_tells_a_filling_buffer_from_a_store(run_id, finding):
    (pair,) = pairs(run_id)
    assert examine(pair, None).finding == finding


def test_never_takes_split_for_store():
    for run_id, run in RUNS.items():
        if run["class"] != "split":
            continue
        flows = truth(run_id)
        for pair in pairs(run_id):
            if flows[end_points(pair)]["acceptable_kinds"] == ["split"]:
                assert examine(pair, None).finding != "window-open-receiver-behind", run_id


def test_a_split_with_a_slow_reader_is_left_alone():
    (pair,) = pairs("spl_ha_dl_small_umts")
    same = replace(pair.client_side, packets=pair.server_side.packets)
    assert examine(replace(pair, client_side=same), None).finding == "slow-reader"


def test_alternation_alone_does_not_accuse():
    (pair,) = pairs("spl_ha_dl_small_umts")
    assert examine(replace(pair, client_side=None), None).finding == "alternation-unexplained"
    assert examine(replace(pair, server_side=None), None).finding == "needs-sender-capture"


def test_end_to_end_the_sender_is_never_done_in_less_time_than_the_receiver():
    (pair,) = pairs("reg_dl_cubic_lte")
    sender_s, receiver_s, span_bytes = transfer_spans(pair, Direction.DOWN, pair.server_side, pair.client_side)
    assert sender_s >= receiver_s
    assert span_bytes == 6_000_000
