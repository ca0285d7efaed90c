"""Captures written by the simulator, as tshark and our own reader see them, beside what really happened."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.errors import SimulationError

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING: dict[str, Any] = {
    "name": "everything",
    "duration_s": 60,
    "seed": 5,
    "path": [
        {
            "kind": "wired",
            "down": {
                "rate_bit_s": 2e6,
                "delay_s": 0.03,
                "queue_packets": 40,
                "loss": {"kind": "independent", "probability": 0.005},
            },
        }
    ],
    "traffic": [
        {"kind": "download", "bytes": 400_001},
        {"kind": "upload", "bytes": 300_000, "start_s": 0.5, "application": "http"},
        {"kind": "download", "bytes": 200_000, "start_s": 0.5, "application": "http"},
        {"kind": "http", "page_bytes": 50_000, "pages": 2, "think_time_mean_s": 1, "user": 1},
        {"kind": "both", "down_bytes": 100_000, "up_bytes": 120_000, "ip_version": 6},
        {"kind": "download", "bytes": 100_000_000, "mobile": {"aborts_after_bytes": 200_000}},
        {"kind": "voice", "user": 2},
    ],
    "record": {
        "one_way_delays": True,
        "taps": [
            {"name": "server", "snap_bytes": 0, "nat": {"address": "198.51.100.1"}},
            {"name": "mobile", "snap_bytes": 0, "link_type": "ethernet"},
        ],
    },
}

#: A checksum that tshark found to be right.
GOOD = "1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, _core.Simulated]:
    directory = tmp_path_factory.mktemp("simulated")
    return directory, _core.simulate(json.dumps(EVERYTHING), str(directory), None)


def tshark(path: Path, *words: str) -> str:
    checks = [f"-o{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
    command = ["tshark", "-n", "-r", str(path), "-otcp.reassemble_out_of_order:TRUE", *checks, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("tap", ["server", "mobile"])
def test_tshark_finds_no_fault(run: tuple[Path, _core.Simulated], tap: str) -> None:
    path = run[0] / f"{tap}.pcapng"
    assert tshark(path, "-Y", "_ws.malformed || _ws.short") == ""
    fields = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status")
    rows = tshark(path, "-Tfields", *(f"-e{field}" for field in fields)).splitlines()
    truth = json.loads(run[1].truth_json)
    assert len(rows) == next(one["written_packets"] for one in truth["captures"] if one["tap"] == tap)
    assert {status for row in rows for status in row.split("\t")} == {GOOD, ""}
    assert all(GOOD in row.split("\t")[1:] for row in rows)


def test_tshark_reads_web_traffic_and_speech(run: tuple[Path, _core.Simulated]) -> None:
    path = run[0] / "mobile.pcapng"
    requests = tshark(path, "-Y", "http.request", "-Tfields", "-ehttp.request.method").split()
    assert sorted(requests) == ["GET", "GET", "GET", "PUT"]
    lengths = tshark(path, "-Y", "http.response", "-Tfields", "-ehttp.content_length").split()
    assert sorted(lengths) == ["0", "200000", "50000", "50000"]
    truth = json.loads(run[1].truth_json)
    speech = tshark(path, "-d", "udp.port==16384,rtp", "-Y", "rtp && ip.src == 203.0.113.10").splitlines()
    assert len(speech) == truth["voice"]["heard_by_mobile"]["frames"]


def test_our_reader_finds_the_simulated_connections(run: tuple[Path, _core.Simulated]) -> None:
    flows = json.loads(run[1].truth_json)["flows"]
    assert "closed" in {flow["server"]["outcome"] for flow in flows}
    for tap in ("server", "mobile"):
        seen = {
            (one.client_address, one.client_port, one.server_address, one.server_port): one
            for one in open_capture(str(run[0] / f"{tap}.pcapng")).connections
        }
        assert len(seen) == len(flows)
        for flow in flows:
            mobile, server = flow["addresses"][tap]["mobile"], flow["addresses"][tap]["server"]
            one = seen[mobile["address"], mobile["port"], server["address"], server["port"]]
            if flow["server"]["outcome"] == "closed":
                assert flow["delivered_exactly"] == {"down": True, "up": True}
                assert one.down.stream_bytes == flow["mobile"]["read_bytes"]
                assert one.up.stream_bytes == flow["server"]["read_bytes"]


def test_delays_are_the_times_between_the_captures(run: tuple[Path, _core.Simulated]) -> None:
    """Of the first flow, by IP identification and sequence number, through the address translation."""
    fields = ("-Tfields", "-eframe.time_epoch", "-eip.id", "-etcp.seq_raw")
    seen: dict[str, dict[tuple[str, str], int]] = {}
    for tap, source in (("server", "203.0.113.10"), ("mobile", "203.0.113.10")):
        path = run[0] / f"{tap}.pcapng"
        client = {"server": 20_000, "mobile": 40_000}[tap]
        rows = tshark(path, "-Y", f"ip.src == {source} && tcp.dstport == {client}", *fields).splitlines()
        seen[tap] = {}
        for row in rows:
            time, identification, sequence = row.split("\t")
            whole, fraction = time.split(".")
            seen[tap][identification, sequence] = int(whole) * 10**9 + int(fraction)
    measured = sorted(at - seen["server"][key] for key, at in seen["mobile"].items())
    arrivals = run[1].arrivals()
    chosen = (arrivals["flow"] == 0) & ~arrivals["is_up"]
    assert measured == sorted((arrivals["arrived_ns"] - arrivals["sent_ns"])[chosen].tolist())


PEAK = """
import json, resource, sys
from pepscope import _core
scenario = {"name": "long", "duration_s": float(sys.argv[1]), "traffic": [{"kind": "download", "duration_s": 1e6}],
            "path": [{"kind": "wired", "down": {"rate_bit_s": 2e7, "delay_s": 0.02, "queue_packets": 100}}]}
_core.simulate(json.dumps(scenario), None, None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_simulated_time() -> None:
    peaks = [
        int(subprocess.run([sys.executable, "-c", PEAK, duration], check=True, capture_output=True, text=True).stdout)
        for duration in ("20", "200")
    ]
    assert peaks[1] - peaks[0] < 1024  # KiB, for 300,000 more packets


def test_ctrl_c_and_a_failing_progress_end_a_run() -> None:
    class EnoughError(Exception):
        pass

    def progress(now_s: float, events: int) -> None:
        assert now_s > 0
        assert events > 0
        raise EnoughError

    scenario = {
        "name": "long",
        "duration_s": 1e6,
        "traffic": [{"kind": "download", "duration_s": 1e6}],
        "path": [{"kind": "wired", "down": {"rate_bit_s": 1e8, "delay_s": 0.01, "queue_packets": 100}}],
    }
    with pytest.raises(EnoughError):
        _core.simulate(json.dumps(scenario), None, progress)


def test_a_directory_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"cannot write .*nowhere/server.pcapng: "):
        _core.simulate(json.dumps(EVERYTHING), str(tmp_path / "nowhere"), None)
