"""All kinds of traffic between real kernels, with what taps and series say of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from detector.detection import detect
from pepscope.captures.capture import open_capture
from reference_sim.live_path import LiveRun, emulate
from reference_sim.scenario import Scenario

LINE = {"rate_bit_s": 20_000_000, "delay_s": 0.02, "queue_packets": 60}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LiveRun:
    scenario = Scenario.from_mapping(
        {
            "name": "everything",
            "duration_s": 8,
            "stop_after_finish_s": 0.5,
            "path": [{"kind": "wired", "name": "line", "down": LINE, "up": LINE}],
            "record": {
                "series_interval_s": 0.05,
                "taps": [
                    {"name": "server", "snap_bytes": 0, "loss_probability": 0.02},
                    {"name": "mobile", "coalescing": {}, "clock": {"offset_s": -3.0}},
                ],
            },
            "traffic": [
                {"kind": "http", "page_bytes": 100_000, "pages": 3, "think_time_mean_s": 0.1},
                {"kind": "http", "page_bytes": 50_000, "ip_version": 6, "user": 1, "count": 2, "one_user_each": True},
                {"kind": "upload", "application": "http", "bytes": 200_000},
                {"kind": "download", "bytes": 1_000_000},
                {"kind": "download", "bytes": 400_000, "mobile": {"aborts_after_bytes": 100_000}},
                {"kind": "both", "duration_s": 1.0},
                {"kind": "voice", "count": 2, "mean_silence_s": 0},
            ],
        }
    )
    return emulate(scenario, (), tmp_path_factory.mktemp("everything"))


def test_every_byte_arrives_and_an_abort_is_recorded(run: LiveRun) -> None:
    flows = run.truth["flows"]
    assert [flow["kind"] for flow in flows] == ["http", "http", "http", "upload", "download", "download", "both"]
    assert [flow["mobile"]["outcome"] for flow in flows] == [*["closed"] * 5, "aborted", "closed"]
    assert flows[5]["server"]["outcome"] == "reset"
    whole = [flow for flow in flows if flow["flow"] != 5]
    assert all(flow["delivered_exactly"] == {"down": True, "up": True} for flow in whole)
    assert [flow["mobile"]["answers"] for flow in flows[:4]] == [3, 1, 1, 1]
    assert [flow["user"] for flow in flows[:3]] == [0, 1, 2]


def test_speech_is_sent_and_received_both_ways(run: LiveRun) -> None:
    voice = run.truth["voice"]
    for teller, hearer in (("server", "mobile"), ("mobile", "server")):
        sent, heard = voice[f"sent_by_{teller}"], voice[f"heard_by_{hearer}"]
        assert sent["silence_descriptors"] == 0
        # Two speakers, 50 frames a second each, for as long as the transfers last.
        assert sent["speech_frames"] >= 2 * 50 * 0.9
        assert 0 <= sent["speech_frames"] - heard["frames"] - heard["missing_frames"] <= 10


def test_kernels_counts_agree_with_captures(run: LiveRun) -> None:
    capture = open_capture(str(run.captures["mobile"]))
    download = run.truth["flows"][4]
    port = download["addresses"]["mobile"]["mobile"]["port"]
    (connection,) = [one for one in capture.connections if one.client.endswith(f":{port}")]
    sent = download["server"]["tcp"]
    assert sent["payload_bytes_sent"] - sent["retransmitted_bytes"] == 1_000_000
    assert sent["retransmitted_segments"] >= connection.down.retransmitted_packets
    # The tap joins segments that come close together, which a busy machine may keep apart.
    assert sent["data_segments_sent"] >= connection.down.data_packets
    assert 0.04 <= sent["shortest_round_trip_time_s"] < 0.06


def test_taps_have_clocks_and_miss_packets(run: LiveRun) -> None:
    server, mobile = (open_capture(str(run.captures[place])) for place in ("server", "mobile"))
    counts = {capture["tap"]: capture for capture in run.truth["captures"]}
    passed = counts["server"]["written_packets"] + counts["server"]["missed_packets"]
    assert 0.005 < counts["server"]["missed_packets"] / passed < 0.05
    first = [min(capture.packets(one.id).time_ns[0] for one in capture.connections) for capture in (server, mobile)]
    assert (first[1] - first[0]) * 1e-9 == pytest.approx(-3.0, abs=0.1)


def test_series_are_those_of_hops_and_sockets(run: LiveRun) -> None:
    directory = run.captures["server"].parent
    frame = pd.read_parquet(directory / "series.parquet")
    assert set(frame["place"]) == {"line", "server", "mobile"}
    times = frame["time_s"].unique()
    assert times.min() == 0
    assert ((times * 1e3).round() % 50 == 0).all()
    window = frame[
        (frame["place"] == "server") & (frame["flow"] == 4) & (frame["quantity"] == "congestion_window_bytes")
    ]
    assert window["value"].max() >= 10 * 1448
    read = frame[(frame["place"] == "mobile") & (frame["flow"] == 4) & (frame["quantity"] == "delivered_bytes")]
    assert read["value"].is_monotonic_increasing
    assert 0 < read["value"].max() <= 1_000_000
    queue = frame[(frame["place"] == "line") & (frame["quantity"] == "down_system_packets")]
    assert 0 < queue["value"].max() <= 61
    assert len(run.series.time_s) == len(times)


@pytest.mark.parametrize(
    ("version", "shifts_timestamps", "verdicts"),
    [(4, False, {"regular"}), (6, False, {"regular"}), (4, True, {"regular", "inconclusive"})],
)
def test_a_middlebox_rewrites_headers_and_is_no_proxy(
    tmp_path: Path, version: int, shifts_timestamps: bool, verdicts: set[str]
) -> None:
    """The middlebox translates back what it shifts, so kernels continue and the captures at the ends differ.

    Without a clock, a window and a sequence number in common a relay in lockstep looks the same.
    """
    changes = {
        "shifts_sequence_numbers": True, "shifts_timestamps": shifts_timestamps, "zeroes_ip_identification": True,
        "maximum_segment_size_bytes": 1300, "window_limit_bytes": 200_000, "routers": 5,
    }  # fmt: skip
    scenario = Scenario.from_mapping(
        {
            "name": "rewritten",
            "duration_s": 20,
            "path": [{"kind": "wired", "down": LINE, "up": LINE}, {"kind": "rewriter", **changes}],
            "traffic": [
                {"kind": "download", "bytes": 1_000_000, "ip_version": version},
                {"kind": "upload", "bytes": 300_000, "ip_version": version},
            ],
        }
    )
    run = emulate(scenario, (), tmp_path)
    assert all(flow["delivered_exactly"] == {"down": True, "up": True} for flow in run.truth["flows"])
    server, mobile = (open_capture(str(run.captures[place])) for place in ("server", "mobile"))
    for one, two in zip(server.connections, mobile.connections, strict=True):
        assert one.client == two.client
        assert one.down.initial_sequence_number != two.down.initial_sequence_number
        assert one.up.initial_sequence_number != two.up.initial_sequence_number
        packets = server.packets(one.id)
        assert packets.payload_bytes.max() <= 1300 - 12
        assert set(packets.ttl[packets.direction == 0]) == {64 - 5}
        assert packets.window_bytes[packets.direction == 0].max() <= 200_000
    result = detect(str(run.captures["server"]), str(run.captures["mobile"]))
    assert len(result.pairs) == 2
    assert {pair.verdict.value for pair in result.pairs} <= verdicts, [pair.reason for pair in result.pairs]
