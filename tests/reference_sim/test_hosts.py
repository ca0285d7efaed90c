"""Families of hosts in simulated captures: their SYNs as real ones have them, read by tshark and by the detector."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from detector.one_capture.senders.stacks import systems_of
from pepscope.captures.capture import open_capture
from pepscope.errors import ScenarioError
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from tests.oracles.tshark import tshark_fields

LINE: dict[str, Any] = {
    "kind": "wired",
    "down": {
        "rate_bit_s": 10_000_000,
        "delay_s": 0.02,
        "queue_packets": 60,
        "loss": {"kind": "independent", "probability": 0.003},
    },
    "up": {"rate_bit_s": 5_000_000, "delay_s": 0.02},
}
TRAFFIC: tuple[dict[str, Any], ...] = (
    {"kind": "download", "bytes": 600_000},
    {"kind": "upload", "bytes": 200_000, "start_s": 0.5},
    {"kind": "download", "bytes": 40_000, "start_s": 1.0, "ip_version": 6},
)

#: Hop limit, option kinds, window and scale of SYNs in the captures that come with nDPI (tests/cfgs/*/pcap), as tshark
#: prints them: 321, 89 and 321 + 89 packets there have the first three; SYN-ACKs with the options are in p0f.fp, too.
SYNS = {
    "windows": ("128", "2,1,3,1,1,4", "64240", "8"),
    "darwin": ("64", "2,1,3,1,1,8,4,0,0", "65535", "6"),
    "linux": ("64", "2,4,8,1,3", "64240", "7"),
}
#: The same of SYN-ACKs between two hosts of the family.
SYN_ACKS = {
    "windows": ("128", "2,1,3,1,1,4", "65535", "8"),
    "darwin": ("64", "2,1,3,1,1,8,4,0,0", "65535", "6"),
    "linux": ("64", "2,4,8,1,3", "65160", "7"),
}
_SHOWN = ("ip.ttl", "tcp.option_kind", "tcp.window_size_value", "tcp.options.wscale.shift")


def made(server: str | dict[str, Any], mobile: str | dict[str, Any], **rest: Any) -> Scenario:
    ends = {
        place: {"host": end} if isinstance(end, str) else end for place, end in (("server", server), ("mobile", mobile))
    }
    fields = {"name": "hosts", "duration_s": 60.0, "seed": 5, "path": [LINE], "traffic": TRAFFIC}
    return Scenario.from_mapping({**fields, **ends, **rest})


@pytest.mark.parametrize("host", SYNS)
def test_handshakes_are_those_of_real_captures(host: str, tmp_path: Path) -> None:
    path = simulate(made(host, host), tmp_path).captures["server"]
    syns, replies = (
        tshark_fields(f"tshark -n -r {path} -Y 'ip && tcp.flags.syn == 1 && tcp.flags.ack == {ack}'", *_SHOWN)
        for ack in (0, 1)
    )
    assert len(syns) == len(replies) == 2
    assert set(syns) == {SYNS[host]}
    assert set(replies) == {SYN_ACKS[host]}
    wrong = "_ws.malformed || tcp.flags.syn == 1 && tcp.checksum.status != 1"
    problems = tshark_fields(f"tshark -n -o tcp.check_checksum:TRUE -r {path} -Y '{wrong}'", "frame.number")
    assert problems == []


def test_a_server_answers_with_the_options_that_it_was_offered(tmp_path: Path) -> None:
    def options(server: str, mobile: dict[str, Any]) -> set[tuple[str, ...]]:
        path = simulate(made(server, mobile), tmp_path).captures["server"]
        return set(
            tshark_fields(f"tshark -n -r {path} -Y 'tcp.flags.syn == 1 && tcp.flags.ack == 1'", "tcp.option_kind")
        )

    # p0f.fp lists these of Windows 7 and Mac OS X.
    assert options("windows", {"host": "linux"}) == {("2,1,3,4,8",)}
    assert options("windows", {"host": "linux", "window_scale": -1}) == {("2,4,8",)}
    assert options("darwin", {"host": "windows"}) == {("2,1,3,4,0,0",)}
    assert options("darwin", {"host": "linux", "sack": False}) == {("2,1,3,1,1,8",)}
    assert options("linux", {"host": "windows"}) == {("2,1,1,4,1,3",)}


@pytest.mark.parametrize("host", SYNS)
def test_the_detectors_table_names_the_family(host: str, tmp_path: Path) -> None:
    for path in simulate(made(host, host), tmp_path).captures.values():
        senders = open_capture(str(path)).senders()
        for kinds, hop_limit in zip(senders.option_kinds, senders.syn_hop_limit, strict=True):
            systems = systems_of(tuple(kinds.tolist()), int(hop_limit))
            assert host in systems
            assert not systems & (SYNS.keys() - {host})


def test_identifications_are_those_of_the_family(tmp_path: Path) -> None:
    def numbers(host: str, way: str) -> list[int]:
        path = simulate(made(host, host), tmp_path / host).captures["server"]
        rows = tshark_fields(f"tshark -n -r {path} -Y 'ip && ip.flags.df == 1 && ip.{way} == 203.0.113.10'", "ip.id")
        return [int(row[0], 16) for row in rows]

    counted = numbers("windows", "src")
    assert len(counted) > 400
    assert {(after - before) % 65_536 for before, after in pairwise(counted)} == {1}
    assert set(numbers("darwin", "src")) | set(numbers("darwin", "dst")) == {0}


@pytest.mark.parametrize("server", ["ideal", *SYNS])
@pytest.mark.parametrize("mobile", ["windows", "darwin"])
def test_families_deliver_everything_to_one_another(server: str, mobile: str) -> None:
    truth = simulate(made(server, mobile)).truth
    for flow in truth["flows"]:
        assert flow["delivered_exactly"] == {"down": True, "up": True}


def test_a_split_point_may_have_a_family_of_its_own(tmp_path: Path) -> None:
    proxy = {"kind": "split-proxy", "server_leg": {"host": "darwin"}, "mobile_leg": {"host": "windows"}}
    path = simulate(made("linux", "linux", path=[LINE, proxy, LINE]), tmp_path).captures["server"]
    shown = tshark_fields(f"tshark -n -r {path} -Y 'ip && tcp.flags.syn == 1 && tcp.flags.ack == 0'", *_SHOWN)
    assert set(shown) == {SYNS["darwin"]}


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"server\.host must be one of ideal, linux, windows, darwin, got .*beos"):
        made("beos", "linux")


@pytest.mark.parametrize(
    ("host", "digests"),
    [
        ("ideal", {"server": "1dfec9e0fd4ae8197a412e1b0b1aef35", "mobile": "630f6adae866bcef0b02c478c695d391"}),
        ("linux", {"server": "2474b420f69b917c50607b7a807e409b", "mobile": "803515bef8f2760870a195daeff31eac"}),
    ],
)
def test_packets_of_other_hosts_stay_as_they_were(host: str, digests: dict[str, str], tmp_path: Path) -> None:
    """The digests of `ideal` are of captures from before there were other families.

    Changes of Linux's rules, and of how times are drawn, change its own.
    """
    ends = {} if host == "ideal" else {"server": {"host": host}, "mobile": {"host": host}}
    fields = {"name": "hosts", "duration_s": 20.0, "seed": 5, "path": [LINE], "traffic": TRAFFIC}
    run = simulate(Scenario.from_mapping({**fields, **ends}), tmp_path)
    found = {}
    for name, path in run.captures.items():
        content = path.read_bytes()
        # The program's version stands before.
        found[name] = hashlib.sha256(content[content.index(b"beside the") :]).hexdigest()[:32]
    assert found == digests
