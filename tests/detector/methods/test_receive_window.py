from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.receive_window import METHOD, transfer_spans
from detector.pair import Pair
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, end_points, pairs, truth
from tests.detector.methods.alone import alone
from tests.detector.rewriting import changed, keep, without_ip_id


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_false_alarm_where_the_window_closes_end_to_end(run_id):
    for pair in pairs(run_id):
        assert alone(METHOD, Observation(pair)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize(
    ("run_id", "finding"),
    [
        ("spl_ha_dl_small_umts", "window-alternates"),
        ("spl_ha_dl_large_umts", "window-alternates"),
        ("spl_ha_ul_slowwire", "window-alternates"),
        ("prx_ngx_2M_umts", "window-open-receiver-behind"),
        # Without the SYN no window has a scale, so nothing can be far behind it.
        ("prx_ngx_2M_umts__mid", "window-unremarkable"),
    ],
)
def test_a_filling_buffer_is_distinguished_from_a_store(run_id, finding):
    (pair,) = pairs(run_id)
    assert alone(METHOD, Observation(pair)).finding == finding


def test_never_takes_split_for_store():
    for run_id, run in RUNS.items():
        if run["class"] != "split":
            continue
        flows = truth(run_id)
        for pair in pairs(run_id):
            if flows[end_points(pair)]["acceptable_kinds"] == ["split"]:
                assert alone(METHOD, Observation(pair)).finding != "window-open-receiver-behind", run_id


def test_a_split_with_a_slow_reader_is_left_alone():
    (pair,) = pairs("spl_ha_dl_small_umts")
    same = replace(pair.client_side, packets=pair.server_side.packets)
    assert examined(replace(pair, client_side=same)).finding == "slow-reader"


def one_acknowledgement_in(count: int, pair: Pair) -> Pair:
    """The receiver's capture, that at the client, as a filter leaves it."""
    packets = pair.client_side.packets
    of_receiver = np.flatnonzero((packets.direction == Direction.UP) & (packets.payload_bytes == 0))
    kept = np.delete(np.arange(len(packets)), np.delete(of_receiver, np.arange(0, len(of_receiver), count)))
    return replace(pair, client_side=replace(pair.client_side, packets=keep(packets, kept)))


def test_a_slow_reader_whose_shut_windows_a_filter_took_away_is_left_alone():
    (pair,) = pairs("spl_ha_dl_small_umts")
    packets = pair.server_side.packets
    open_ones = (packets.direction != Direction.UP) | (packets.window_bytes > packets.window_bytes.max() * 0.3)
    for which in (open_ones, np.ones(len(packets), np.bool_)):
        same = replace(pair, client_side=replace(pair.client_side, packets=keep(packets, which)))
        for count in (1, 8, 64):
            assert examined(one_acknowledgement_in(count, same)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("run_id", ["spl_ha_dl_small_umts", "spl_ha_dl_mid_lte_bbr", "spl_ngx_stream_dl_spoof"])
def test_what_the_receiver_offered_before_contradicts_shut_windows_that_are_not_its_own(run_id):
    (pair,) = pairs(run_id)
    for count in (2, 16, 128):
        assert examined(one_acknowledgement_in(count, pair)).finding == "window-alternates"


def test_a_capture_that_begins_after_the_window_was_shut_is_left_alone():
    (pair,) = pairs("spl_ha_dl_small_umts")
    packets = pair.server_side.packets
    up = packets.direction == Direction.UP
    shut = np.flatnonzero(up & (packets.window_bytes < 0.05 * packets.window_bytes[up].max()))
    late = keep(packets, slice(int(shut[shut > 200][-1]) + 1, None))
    same = replace(pair, client_side=replace(pair.client_side, packets=late))
    unscaled = {way: getattr(pair.client_side.connection, way)._replace(window_shift=None) for way in ("up", "down")}
    for connection in (pair.client_side.connection, pair.client_side.connection._replace(**unscaled)):
        begun_late = replace(same, client_side=replace(same.client_side, connection=connection))
        assert examined(begun_late).outcome is Outcome.INAPPLICABLE


def with_one_receiver(pair: Pair, unit_bytes: int) -> Pair:
    """What the sender saw is the receiver's: it takes nothing back, but rounds what it offers down to such units. Its
    own capture lacks the windows that are nearly shut."""
    packets = pair.server_side.packets
    up = packets.direction == Direction.UP
    acknowledged, windows = packets.acknowledgement_offset[up], packets.window_bytes.copy()
    offered = np.maximum.accumulate(acknowledged + windows[up].astype(np.int64))
    windows[up] = (offered - acknowledged) // unit_bytes * unit_bytes
    seen = packets.replaced(window_bytes=windows)
    connection = pair.server_side.connection
    shift = unit_bytes.bit_length() - 1
    scaled = connection._replace(up=connection.up._replace(window_shift=shift))
    own = keep(seen, ~up | (windows > 0.3 * windows[up].max()))
    return replace(
        pair,
        server_side=replace(pair.server_side, packets=seen, connection=scaled),
        client_side=replace(pair.client_side, packets=own, connection=scaled),
    )


@pytest.mark.parametrize("unit_bytes", [1 << 7, 1 << 8, 1 << 12, 1 << 14])
def test_a_receiver_that_rounds_its_windows_down_takes_nothing_back(unit_bytes: int) -> None:
    """So do BSD, macOS and Windows; Linux rounds up."""
    (pair,) = pairs("spl_ha_dl_mid_lte_bbr")
    one = with_one_receiver(pair, unit_bytes)
    for count in (1, 2, 8, 64):
        assert examined(one_acknowledgement_in(count, one)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("begun_late", ["client_side", "server_side"])
def test_windows_whose_scale_one_capture_alone_knows_are_compared_by_it(begun_late: str) -> None:
    """The other capture began after the handshake and has windows as they are on the wire."""
    (pair,) = pairs("spl_ha_dl_mid_lte_bbr")
    one = with_one_receiver(pair, 1 << 7)
    vantage = getattr(one, begun_late)
    unscaled = vantage.connection._replace(up=vantage.connection.up._replace(window_shift=None))
    up = vantage.packets.direction == Direction.UP
    on_wire = np.where(up, vantage.packets.window_bytes >> 7, vantage.packets.window_bytes)
    packets = vantage.packets.replaced(window_bytes=on_wire.astype(vantage.packets.window_bytes.dtype))
    one = replace(one, **{begun_late: replace(vantage, packets=packets, connection=unscaled)})
    for count in (1, 2, 8, 64):
        assert examined(one_acknowledgement_in(count, one)).outcome is Outcome.INAPPLICABLE


def test_a_regulator_shuts_windows_in_the_receivers_own_packets():
    def regulated(packets):
        windows = packets.window_bytes.copy()
        up = np.flatnonzero(packets.direction == Direction.UP)
        for start in (len(up) // 3, len(up) // 2):
            windows[up[start : start + 40]] = 0
        return packets.replaced(window_bytes=windows)

    (pair,) = pairs("reg_dl_cubic_lte")
    for count in (1, 2, 3, 8, 16):  # a filter may leave one of so many in the receiver's capture
        one_in = one_acknowledgement_in(count, changed(pair, at_server=regulated))
        assert examined(one_in).finding == "window-regulated"
    # Without IP IDs nothing shows whose packets they are.
    nameless = changed(changed(pair, at_server=regulated), without_ip_id, without_ip_id)
    assert examined(nameless).finding == "window-alternates"


def test_alternation_alone_is_no_split():
    (pair,) = pairs("spl_ha_dl_small_umts")
    assert examined(replace(pair, client_side=None)).finding == "alternation-unexplained"
    assert examined(replace(pair, server_side=None)).finding == "needs-sender-capture"


def test_end_to_end_the_sender_is_never_done_in_less_time_than_the_receiver():
    (pair,) = pairs("reg_dl_cubic_lte")
    assert pair.server_side is not None
    assert pair.client_side is not None
    spans = transfer_spans(pair, Direction.DOWN, pair.server_side, pair.client_side)
    assert spans is not None
    sender_s, receiver_s, span_bytes = spans
    assert sender_s >= receiver_s
    assert span_bytes == 6_000_000


def test_one_closing_is_no_alternation():
    (pair,) = pairs("spl_ha_dl_small_umts")
    sender = pair.server_side
    assert sender is not None
    windows = np.full(len(sender.packets), 200_000, np.uint32)
    middle = len(windows) // 2
    for start, finding in ((middle, "window-shut-once"), (middle + 80, "window-alternates")):
        windows[start : start + 40] = 0
        packets = sender.packets.replaced(window_bytes=windows.copy())
        assert examined(replace(pair, server_side=replace(sender, packets=packets))).finding == finding
