import math

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods import ack_timing, delayed_ack, progress
from detector.methods.progress.leads import HELD_SHARE, Lead
from detector.options import ClockMode, DetectOptions
from detector.pairing.captures import pair_captures
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.verdicts import Outcome
from tests.detector.corpus import RUNS, Variation, end_points, pairs, truth
from tests.detector.methods.alone import alone
from tests.fresh.test_fresh_captures import FRESH


def evidence(method, pair):
    made = alone(method.METHOD, Observation(pair))
    assert 0.0 <= made.strength <= 1.0
    assert all(not isinstance(v, float) or math.isfinite(v) for v in made.numbers.values())
    return made


#: What a relay with ordinary buffers cannot show.
OF_STORES = frozenset({"sender-beyond-buffers", "stored-before-forwarded", "held-before-forwarded"})


@pytest.mark.parametrize("run_id", sorted(RUNS))
def test_against_the_truth(run_id):
    flows = truth(run_id)
    for pair in pairs(run_id):
        flow = flows[end_points(pair)]
        made = {method: evidence(method, pair) for method in (ack_timing, delayed_ack, progress)}
        if flow["class"] == "regular":
            # Where data of both directions always meet a queue the path looks longer than it is; that decides nothing.
            reported = [item for item in made.values() if item.finding != "acks-nearer-than-path"]
            assert all(item.outcome is not Outcome.SPLIT for item in reported)
        elif flow["passive_detectable"]:
            assert made[ack_timing].outcome is Outcome.SPLIT
            assert made[ack_timing].strength > 0.5
        if "proxy" not in flow["acceptable_kinds"]:
            assert made[progress].finding not in OF_STORES | {"sender-far-ahead"}
        elif flow["acceptable_kinds"] == ["proxy"]:
            assert made[progress].finding in OF_STORES | {"sender-far-ahead"}


@pytest.mark.parametrize("run_id", ["reg_dl_slowreader_rate__off", "spl_ha_dl_small_umts__off"])
def test_method_1_refuses_clocks_that_are_not_synchronised(run_id):
    (pair,) = pairs(run_id, Variation(offset_s=-9.0), options=DetectOptions(clocks=ClockMode.SYNCHRONISED))
    assert evidence(ack_timing, pair).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("mode", [ClockMode.SYNCHRONISED, ClockMode.OFFSET])
@pytest.mark.parametrize(
    ("run_id", "outcome"),
    [
        ("reg_dl_cubic_lte", Outcome.INTACT),
        ("reg_dl_slowreader_rate__drop_mob3", Outcome.INTACT),
        ("spl_ha_dl_small_umts", Outcome.SPLIT),
        ("prx_ngx_2M_umts", Outcome.SPLIT),
    ],
)
def test_methods_1_and_2_as_published(mode, run_id, outcome):
    (pair,) = pairs(run_id, options=DetectOptions(clocks=mode))
    assert evidence(ack_timing, pair).outcome is outcome


def test_a_stored_upload_held_even_its_fastest_byte():
    (pair,) = pairs("prx_ngx_upload_strict")
    numbers = evidence(progress, pair).numbers
    shorter_s = min(numbers["sender_duration_s"], numbers["receiver_duration_s"])
    assert numbers["least_hold_s"] > HELD_SHARE * shorter_s


def test_a_relay_whose_program_wakes_up_late_is_no_store():
    mobile, server = (
        open_capture(str(FRESH / f"spl-nginx-stream-local.{end}.pcap.gz")) for end in ("mobile", "server")
    )
    (found,) = (
        item
        for pair in pair_captures(mobile, server)
        if (item := evidence(progress, pair)).numbers.get("total_bytes", 0) >= progress.STORED_BYTES
    )
    assert found.numbers["least_hold_s"] > HELD_SHARE * found.numbers["receiver_duration_s"]
    assert found.outcome is Outcome.SPLIT
    assert found.finding not in OF_STORES


@pytest.mark.parametrize(
    ("least_hold_s", "sender_duration_s", "is_store"),
    [
        (1.4, 1.6, True),
        (0.82, 1.6, False),  # a relay that was stopped while it had the request
        (0.2, 0.3, True),
        (0.1, 0.3, False),
        (0.01, 0.01, False),  # a program that waits for a processor
    ],
)
def test_a_store_holds_even_the_fastest_byte_for_as_long_as_it_takes_all_in(least_hold_s, sender_duration_s, is_store):
    lead = Lead(
        total_bytes=300_000,
        most_bytes=50_000,
        delivered_share_when_done=0.9,
        acknowledged_share_at_start=0.1,
        acknowledged_at_start_bytes=30_000,
        held_back=False,
        sender_duration_s=sender_duration_s,
        receiver_duration_s=2.0,
        least_hold_s=least_hold_s,
        round_trips_s=0.1,
        beyond_buffers_bytes=0,
        buffers_bytes=0,
    )
    assert lead.is_held_whole == is_store


@pytest.mark.parametrize("run_id", ["spl_ha_dl_large_umts", "spl_ha_ul_slowwire", "prx_ngx_2M_umts", "reg_dl_bloat_1M"])
def test_only_a_store_holds_the_fastest_byte_for_long(run_id):
    (pair,) = pairs(run_id)
    numbers = evidence(progress, pair).numbers
    assert numbers["least_hold_s"] < 0.1 * numbers["sender_duration_s"]


def test_known_clocks_are_not_shifted():
    (free,) = pairs("prx_ngx_upload_strict")
    (known,) = pairs("prx_ngx_upload_strict", options=DetectOptions(clocks=ClockMode.SYNCHRONISED))
    shares = [evidence(progress, pair).numbers["acknowledged_share_when_receiver_began"] for pair in (free, known)]
    assert shares[0] < shares[1]


def test_published_numbers_agree_with_the_reference():
    for run_id in ("spl_ha_dl_small_umts", "prx_ngx_2M_umts", "reg_dl_cubic_lte"):
        (pair,) = pairs(run_id)
        reference = RUNS[run_id]["flows"][0]["reference"]["download"]
        numbers = evidence(ack_timing, pair).numbers
        assert numbers["method1_share"] == pytest.approx(reference["m1_frac"], abs=0.02)
        assert numbers["method2_share"] == pytest.approx(reference["m2_frac_i1"], abs=0.02)


@pytest.mark.parametrize(("run_id", "delay_s"), [("act_reg_ul_T2", 2.0), ("act_reg_dl_T3", 3.0)])
def test_delayed_acknowledgements_show_that_only_the_receiver_answers(run_id, delay_s):
    for given in (None, delay_s):
        (pair,) = pairs(run_id, options=DetectOptions(ack_delay_s=given))
        made = evidence(delayed_ack, pair)
        assert made.finding == "acks-only-from-receiver"
        assert made.numbers["ack_delay_s"] == pytest.approx(delay_s, abs=0.05)


@pytest.mark.parametrize(
    ("run_id", "delay_s"), [("act_ha_ul_T2", 2.0), ("act_ha_dl_T4", 4.0), ("act_ngx_upload_T3", 3.0)]
)
def test_held_acknowledgements_show_who_else_answers(run_id, delay_s):
    for given in (None, delay_s):
        (pair,) = pairs(run_id, options=DetectOptions(ack_delay_s=given))
        made = evidence(delayed_ack, pair)
        assert made.finding == "acks-not-from-receiver"
        assert made.numbers["round_trip_min_s"] < made.numbers["ack_delay_s"]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_delay_holds_only_for_the_bytes_of_which_it_was_measured(share):
    """Of a capture in mid-path: the queue beyond it was long while one side looked, and short while the other did."""
    (pair,) = pairs("act_ha_ul_T2")
    whole = evidence(delayed_ack, pair)
    late = evidence(delayed_ack, replace(pair, server_side=begun_late(pair.server_side, share)))
    assert 0 < late.numbers["round_trips"] < (1.1 - share) * whole.numbers["round_trips"]
    early = replace(pair, server_side=begun_late(pair.server_side, share), client_side=ended_early(pair, share))
    assert evidence(delayed_ack, early).outcome is Outcome.INAPPLICABLE


def begun_late(vantage, share):
    """The vantage without the packets in the first part of its time."""
    return replace(vantage, packets=rows(vantage.packets, vantage.packets.time_ns >= at(vantage, share)))


def ended_early(pair, share):
    """The client's side up to where data reach that the server's side shows in the first part of its time."""
    packets, server = pair.client_side.packets, pair.server_side
    before = server.packets.time_ns < at(server, share)
    reached = server.packets.sequence_offset[before & (server.packets.direction == Direction.UP)].max()
    later = (packets.direction == Direction.UP) & (packets.sequence_offset >= reached)
    return replace(pair.client_side, packets=rows(packets, np.cumsum(later) == 0))


def at(vantage, share):
    return np.quantile(vantage.packets.time_ns, share)


def rows(packets, kept):
    return PacketColumns(**{name: getattr(packets, name)[kept] for name in PacketColumns.COLUMNS})


def test_an_ordinary_receiver_holds_nothing_back():
    for run_id in ("reg_dl_cubic_lte", "reg_dl_slowreader_rate", "spl_ha_ul_cellslow", "spl_ha_chat"):
        assert all(evidence(delayed_ack, pair).outcome is Outcome.INAPPLICABLE for pair in pairs(run_id))


def test_one_capture_is_not_enough():
    (pair,) = [pair for pair in pairs("prx_ngx_cache") if len(pair.vantages) == 1]
    assert all(evidence(method, pair).outcome is Outcome.INAPPLICABLE for method in (ack_timing, delayed_ack, progress))


@pytest.mark.parametrize("step_s", [-0.6, 0.6, 10.0])
@pytest.mark.parametrize("at_mobile", [True, False])
@pytest.mark.parametrize("run_id", ["act_reg_ul_T2", "act_reg_dl_T3"])
def test_a_clock_that_is_set_fakes_no_foreign_acknowledgements(run_id, at_mobile, step_s):
    how = Variation(step_s=step_s)
    (pair,) = pairs(run_id, how if at_mobile else None, None if at_mobile else how)
    for method in (ack_timing, delayed_ack, progress):
        assert evidence(method, pair).outcome is not Outcome.SPLIT


def test_times_that_never_change_beside_data_of_one_direction():
    """The tick and the path are unknown, as infinite numbers: nothing is computed from one and the other."""
    (pair,) = pairs("reg_dl_cubic_lte")
    client = pair.client_side
    held = (client.packets.direction != Direction.UP) | (client.packets.payload_bytes == 0)
    columns = {name: getattr(client.packets, name)[held] for name in PacketColumns.COLUMNS}
    columns["time_ns"] = np.full(held.sum(), client.packets.time_ns[0])
    still = replace(pair, client_side=replace(client, packets=PacketColumns(**columns)))
    assert evidence(ack_timing, still).outcome is Outcome.INAPPLICABLE
