"""Middleboxes in mid-path between real kernels: what the captures hold is what the manifest says."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from benchmarks.fresh import acknowledging, hosts, packets
from benchmarks.fresh.experiment import run
from tests.captures.containers import read_capture

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/net/tun").exists()
    or any(shutil.which(t) is None for t in ("ip", "tcpdump", "iptables")),
    reason="needs root, TUN devices, iproute2, iptables and tcpdump",
)


def made(draw, name, tmp_path):
    """Run an experiment; its flows and the segments of both captures."""
    entry = run(name, draw(random.Random(name)), 900, name, tmp_path)
    ends = {}
    for end in ("server", "mobile"):
        capture = read_capture(tmp_path / entry["files"][end]["name"])
        ends[end] = [one for frame in capture.frames if (one := packets.read(frame.data)) is not None]
    return entry, ends


def acknowledgements(segments, port):
    """Numbers of the pure ACKs that the mobile sends from a port."""
    return {one.acknowledgement for one in segments if one.source_port == port and one.is_plain_acknowledgement}


def test_local_acknowledgements_reach_the_server_and_the_mobiles_own_do_not(tmp_path):
    entry, ends = made(acknowledging.SPLIT["localack-short"], "spl-localack-short", tmp_path)
    assert {flow["mechanism"] for flow in entry["flows"]} == {"local-acknowledgement"}
    assert not entry["client_errors"]
    data = [one.payload for one in ends["mobile"] if one.source_port == 80 and one.payload]
    assert {one.ip[4:6].hex() for one in ends["mobile"] if one.source_port == 80} <= {
        one.ip[4:6].hex() for one in ends["server"] if one.source_port == 80
    }, "data segments are the server's own"
    assert data
    port = int(entry["flows"][0]["mobile_capture"].split(" > ")[0].rpartition(":")[2])
    early = acknowledgements(ends["server"], port) - acknowledgements(ends["mobile"], port)
    dropped = acknowledgements(ends["mobile"], port) - acknowledgements(ends["server"], port)
    assert early or dropped


def test_a_hand_over_changes_the_packets_in_mid_connection(tmp_path):
    entry, ends = made(hosts.SPLIT["handover"], "spl-handover", tmp_path)
    taken = next(flow for flow in entry["flows"] if flow["class"] == "split")
    assert not entry["client_errors"]
    assert taken["split_from_byte"] > 1000
    port = int(taken["mobile_capture"].split(" > ")[0].rpartition(":")[2])
    sent = {end: [one for one in ends[end] if one.target_port == port and one.payload] for end in ends}
    first = next(one.sequence for one in sent["server"])
    stamped = {(one.sequence, one.timestamps) for one in sent["server"]}
    same = [
        packets.distance(one.sequence, first) for one in sent["mobile"] if (one.sequence, one.timestamps) in stamped
    ]
    other = [
        packets.distance(one.sequence, first) for one in sent["mobile"] if (one.sequence, one.timestamps) not in stamped
    ]
    assert min(same) < taken["split_from_byte"] <= max(other)
    assert len(other) > len(same)
