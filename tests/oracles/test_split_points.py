"""Captures beside simulated split points, as tshark reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

_PAGES = {"kind": "http", "page_bytes": 60_000, "count": 3, "spacing_s": 3}
_DOWNLOADS = {"kind": "download", "bytes": 300_000, "count": 4, "spacing_s": 0.05}
_LINE = {"rate_bit_s": 8_000_000, "delay_s": 0.03, "queue_packets": 100}

#: A box, its traffic, and the connections that the server's side and the mobile's show.
_BOXES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, int]]] = {
    "shared": ({"kind": "split-proxy", "reuse_idle_s": 10, "opening": "with-data"}, _PAGES, (1, 3)),
    "refusing": ({"kind": "split-proxy", "connections_limit": 1, "over_limit": "refuse"}, _DOWNLOADS, (1, 4)),
    "waiting": ({"kind": "split-proxy", "connections_limit": 1, "takes_time": True}, _DOWNLOADS, (4, 4)),
    "acknowledging": ({"kind": "local-acknowledger", "directions": "both"}, _DOWNLOADS, (4, 4)),
}


def _tshark(path: Path, *words: str) -> list[str]:
    checks = [f"-o{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp")]
    command = ["tshark", "-n", "-r", str(path), *checks, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("name", _BOXES)
def test_tshark_finds_no_fault_and_the_connections_of_each_side(name: str, tmp_path: Path) -> None:
    box, traffic, connections = _BOXES[name]
    path = [{"kind": "wired", "down": {**_LINE, "rate_bit_s": 100_000_000}}, box, {"kind": "wired", "down": _LINE}]
    taps = [{"name": "server", "after_hop": 0, "snap_bytes": 0}, {"name": "mobile", "after_hop": 3, "snap_bytes": 0}]
    run = simulate(
        Scenario.from_mapping(
            {"name": name, "duration_s": 60, "path": path, "traffic": [traffic], "record": {"taps": taps}}
        ),
        tmp_path,
    )
    for tap, count in zip(("server", "mobile"), connections, strict=True):
        capture = run.captures[tap]
        assert _tshark(capture, "-Y", "_ws.malformed || _ws.short") == []
        assert len(set(_tshark(capture, "-Tfields", "-etcp.stream"))) == count
        # Whole packets alone have a checksum that holds.
        assert set(_tshark(capture, "-Tfields", "-etcp.checksum.status")) == {"1"}
        assert _tshark(capture, "-Y", "tcp.analysis.ack_lost_segment") == []


def test_the_sender_is_told_of_bytes_that_only_the_box_has(tmp_path: Path) -> None:
    """At the server tshark sees data acknowledged within the near round trip, long before they reach the mobile."""
    path = [
        {"kind": "wired", "down": {"rate_bit_s": 100_000_000, "delay_s": 0.01}},
        {"kind": "local-acknowledger"},
        {"kind": "wired", "down": {**_LINE, "queue_packets": 500}},
    ]
    traffic = [{"kind": "download", "bytes": 1_000_000}]
    run = simulate(
        Scenario.from_mapping({"name": "told", "duration_s": 60, "path": path, "traffic": traffic}), tmp_path
    )
    from_server = ("-Y", "tcp.len > 0 && tcp.srcport == 5001", "-Tfields")
    times = [float(row) for row in _tshark(run.captures["server"], "-Y", "tcp.analysis.ack_rtt && tcp.dstport == 5001",
                                           "-Tfields", "-etcp.analysis.ack_rtt")]  # fmt: skip
    assert len(times) > 300
    assert sorted(times)[len(times) // 2] < 0.03
    sent, arrived = (
        {row.split("\t")[1]: float(row.split("\t")[0]) for row in _tshark(
            run.captures[tap], *from_server, "-eframe.time_epoch", "-etcp.seq_raw")}
        for tap in ("server", "mobile")
    )  # fmt: skip
    delays = sorted(arrived[number] - at for number, at in sent.items() if number in arrived)
    assert len(delays) > 600
    assert delays[len(delays) // 2] > 0.1
