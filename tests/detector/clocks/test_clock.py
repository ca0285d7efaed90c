import numpy as np
import pytest

from detector.clocks.clouds import loss_share, spared_points
from detector.clocks.relating import relate
from tests.detector.corpus import RUNS, Variation, end_points, pairs, truth

REGULAR = [
    "reg_dl_cubic_lte",
    "reg_dl_reno_loss1",
    "reg_dl_bloat_1M__mid",
    "reg_dl_slowreader_rate",
    "reg_ul_slowreader_srv",
    "reg_dl_iperf_P4",
    "reg_dl_quickack",
    "reg_bidir",
    "act_reg_ul_T2",
]
SPLIT = ["spl_ha_dl_srcip", "spl_ha_dl_large_umts", "spl_ha_ul_slowwire", "prx_ngx_2M_umts", "act_ha_dl_T4"]
VARIATIONS = {
    "fast": (Variation(drift_ppm=480), None),
    "slow": (None, Variation(drift_ppm=480)),
    "off": (Variation(offset_s=-37.0, drift_ppm=-200), None),
    "step": (Variation(step_s=0.6), None),
    "step back": (Variation(step_s=-0.6), None),
    "server step": (None, Variation(step_s=0.6)),
    "server step back": (None, Variation(step_s=-0.6)),
    "lossy mobile": (Variation(lost_share=0.05, seed=1), None),
    "lossy server": (None, Variation(lost_share=0.05, seed=2)),
    "all": (Variation(3.0, 200, 0.6, 0.02, timestamps=False, seed=3), Variation(lost_share=0.03, seed=4)),
}


@pytest.mark.parametrize("run_id", sorted(RUNS))
def test_clocks_of_the_corpus(run_id):
    flows = truth(run_id)
    for pair in pairs(run_id):
        flow, clock = flows[end_points(pair)], relate(pair)
        if flow["class"] == "regular":
            assert clock.separable
            assert len(clock.pieces) == 1
        elif flow["passive_detectable"]:
            assert not clock.separable


@pytest.mark.parametrize("how", sorted(VARIATIONS))
@pytest.mark.parametrize("run_id", REGULAR)
def test_no_clock_or_capture_fault_makes_a_regular_connection_split(run_id, how):
    for pair in pairs(run_id, *VARIATIONS[how]):
        assert relate(pair).separable


@pytest.mark.parametrize("how", sorted(VARIATIONS))
@pytest.mark.parametrize("run_id", SPLIT)
def test_no_clock_or_capture_fault_hides_a_split(run_id, how):
    for pair in pairs(run_id, *VARIATIONS[how]):
        assert not relate(pair).separable


@pytest.mark.parametrize("offset_s", [-1.408637, 0.0, 37.0])
def test_the_offset_is_found_between_the_bounds_of_two_way_data(offset_s):
    (pair,) = pairs("reg_dl_quickack", Variation(offset_s=offset_s))
    clock = relate(pair)
    assert clock.data_low_s <= -offset_s <= clock.data_high_s
    assert clock.pieces[0].offset_ns / 1e9 == pytest.approx(-offset_s, abs=clock.round_trip_min_s / 2)


def test_a_step_is_found_and_measured():
    (pair,) = pairs("reg_dl_cubic_lte", Variation(step_s=0.6))
    clock = relate(pair)
    assert clock.separable
    assert len(clock.steps_s) == 1
    assert clock.steps_s[0] == pytest.approx(-0.6, abs=clock.round_trip_min_s)


def test_spared_points_bound_the_poisson_tail():
    assert spared_points(np.array([0.0, 1e-3, 1.0, 30.0])).tolist() == [2, 2, 6, 52]
    few, many = spared_points(np.array([499.0, 1000.0])).tolist()
    assert many > few > 499
    assert loss_share(np.array([0.0, 100.0]), np.array([0, 1900])) == pytest.approx([0.05, 0.05], abs=1e-3)
