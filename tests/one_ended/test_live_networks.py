"""One-ended networks between real kernels: what the packets of both ends show is what the truth says."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fresh import packets
from benchmarks.one_ended.check import check, handshakes
from benchmarks.one_ended.network import run
from benchmarks.one_ended.plan import PORTS, Capturing, draw
from tests.captures.containers import read_capture

TOOLS = ("ip", "tcpdump", "iptables", "nginx", "haproxy", "curl", "openssl")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists() or any(shutil.which(tool) is None for tool in TOOLS),
    reason=f"needs root, TUN devices and {', '.join(TOOLS)}",
)


def lossless(link):
    return replace(link, down=replace(link.down, loss=0.0), up=replace(link.up, loss=0.0))


def made(kind, index, tmp_path):
    """A network of one client and two servers, one behind a balancer, that lasts a second and loses no packet.

    Where the ACK of a handshake is lost, a SYN proxy never asks the server and the client waits until its patience
    ends: a job that fails would not mean that the network is not what it should be.
    """
    drawn = (draw(1, number, middle=kind) for number in range(index, 999))
    plan = next(plan for plan in drawn if any(server.balancer for server in plan.servers[:2]))
    client = replace(plan.clients[0], offload=False, thinks=False, link=lossless(plan.clients[0].link))
    servers = tuple(replace(server, offload=False, link=lossless(server.link)) for server in plan.servers[:2])
    places = ["client", *(s.name for s in servers), *(f"{s.name}b" for s in servers if s.balancer)]
    plan = replace(
        plan, index=index, clients=(client,), servers=servers, duration_s=1.0,
        split_ports=PORTS if plan.split_ports else (),
        captures={place: Capturing(128, 0.0, nanoseconds=True) for place in places},
    )  # fmt: skip
    truth = run(plan, tmp_path)
    assert not truth["errors"]
    return truth, tmp_path / plan.name


@pytest.mark.parametrize(
    ("kind", "index", "seen"), [("nat", 910, "same"), ("haproxy", 920, "other"), ("synproxy", 930, "answered")]
)
def test_handshakes_at_both_ends_are_what_the_truth_says(kind, index, seen, tmp_path):
    truth, directory = made(kind, index, tmp_path)
    counts = check(directory)
    assert {(wanted, met) for _, wanted, met in counts} == {(seen, seen)}
    assert sum(counts.values()) >= 8
    groups = {(g["host"], g["port"]): g for c in truth["captures"] if c["side"] == "client" for g in c["groups"]}
    for handshake in handshakes(directory / "client.pcap.gz")[0]:
        assert (".".join(map(str, handshake.server)), handshake.port) in groups
    stored = json.loads((directory / "truth.json").read_text())
    assert stored["captures"] == json.loads(json.dumps(truth["captures"]))
    with gzip.open(directory / "client.pcap.gz") as file:
        assert int.from_bytes(file.read(24)[16:20], "little") == 128, "snap length"
    link = truth["plan"]["clients"][0]["link"]
    assert min(handshake_times_s(directory)) >= link["down"]["delay_s"] + link["up"]["delay_s"]


def handshake_times_s(directory):
    """From SYN to SYN-ACK at the client; from the last copy of a SYN, since only the least time is of interest."""
    asked: dict[tuple[bytes, int], int] = {}
    times = []
    for frame in read_capture(directory / "client.pcap.gz").frames:
        one = packets.read(frame.data)
        if one is None or not one.flags & packets.SYN:
            continue
        if not one.flags & packets.ACK:
            asked[one.source, one.source_port] = frame.time_ns
        elif (one.target, one.target_port) in asked:
            times.append((frame.time_ns - asked.pop((one.target, one.target_port))) / 1e9)
    return times
