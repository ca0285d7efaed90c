"""Statements that contradict their own paper (docs/papers/contradictions.md), from the values that the papers print."""

from __future__ import annotations

import pytest

from papers.published import published_table
from reference_sim.models.split_gain import slow_start_bytes
from reference_sim.models.window_parameters import check


def test_ren_and_lin_s_table_3_has_no_ten_percent_in_most_situations() -> None:
    rows = published_table("ren_lin", "table3_proxy_throughput")
    over_tcp = 100.0 * (rows["proxy_mean"] / rows["tcp_mean"] - 1.0)
    over_split = 100.0 * (rows["proxy_mean"] / rows["itcp_mean"] - 1.0)
    assert ((over_tcp >= 10.0).sum(), (over_split >= 10.0).sum(), len(rows)) == (4, 5, 12)
    assert over_tcp.mean() == pytest.approx(8.2, abs=0.1)


def test_ren_and_lin_s_table_2_has_no_order_of_magnitude() -> None:
    rows = published_table("ren_lin", "table2_throughput_model")
    varying = rows[~((rows["ue"] == "UE1") & rows["scheduler"].isin(["RR", "MCI"]))]
    ratios = varying["padhye_error"] / varying["model_error"]
    assert (ratios >= 10.0).sum() == 1
    assert ratios.mean() == pytest.approx(5.8, abs=0.1)
    nearer = rows[rows["padhye_error"] < rows["model_error"]]
    assert list(zip(nearer["ue"], nearer["scheduler"], strict=True)) == [("UE1", "MCI")]


def test_ren_and_lin_s_own_parameters_give_four_frames_not_forty() -> None:
    given = check(0.025, 35.0, 20.0, reference_frames=100.0, buffer_frames=200.0, mean_rate_frames_s=1160.0)
    assert given.deviation_frames == pytest.approx(4.0)


def test_wei_s_table_2_has_its_west_coast_peak_at_10_kb_and_small_files_gain_less_in_the_east() -> None:
    rows = published_table("wei", "table2_split_gain").set_index("file_kbytes")
    assert rows["west_gain_percent"].idxmax() == 10
    assert rows["east_gain_percent"].idxmax() == 50
    is_less = rows["east_gain_percent"] < rows["west_gain_percent"]
    assert list(rows.index[is_less]) == [1, 5, 10]


def test_wei_s_figure_3_is_slower_than_its_own_tables() -> None:
    rows = published_table("wei", "table2_split_gain").set_index("file_kbytes")
    figure_kbit_s, object_kbit_s = 17e3 * 1.0 / 200.0, 1.5e6 * 8.0 / 109.0 / 1e3
    assert figure_kbit_s == pytest.approx(85.0)
    assert figure_kbit_s < 0.75 * rows["west_split_kbps"][1000]
    assert object_kbit_s == pytest.approx(110.0, abs=0.5)


def test_wei_s_delayed_acknowledgements_do_not_double_the_data_of_slow_start() -> None:
    plain = slow_start_bytes(128e3, 1500.0, 0.83)
    delayed = slow_start_bytes(128e3, 1500.0, 0.83, segments_an_acknowledgement=2.0)
    assert plain == pytest.approx(25_000, rel=0.02)
    assert delayed < 0.75 * 50_000
