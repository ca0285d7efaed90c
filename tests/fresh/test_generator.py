"""What the generator of fresh captures does to recordings, and what it takes for the truth."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks.fresh.client import Job
from benchmarks.fresh.edits import edited
from benchmarks.fresh.path import PathPlan
from benchmarks.fresh.scenario import Edits, Scenario
from benchmarks.fresh.truth import flows
from tests.captures.containers import LINK_RAW, CaptureFile, Frame

#: A capture of today: nanoseconds beyond what a float holds exactly.
BEGUN_NS = 1_795_278_163_046_697_785


def capture(count=200):
    return CaptureFile(LINK_RAW, [Frame(BEGUN_NS + number * 1_000_003, b"E" * 40) for number in range(count)])


@pytest.mark.parametrize("place", ["server", "mobile"])
def test_without_edits_every_packet_stays_as_it_is(place):
    made = edited(capture(), place, Edits(), random.Random(1))
    assert [(f.time_ns, f.data) for f in made.frames] == [(f.time_ns, f.data) for f in capture().frames]


def test_only_the_mobiles_clock_is_changed():
    edits = Edits(offset_s=2.0, drift_ppm=100.0, steps=((0.5, -0.25),))
    assert edited(capture(), "server", edits, random.Random(1)).frames[-1].time_ns == capture().frames[-1].time_ns
    first, last = (edited(capture(), "mobile", edits, random.Random(1)).frames[place] for place in (0, -1))
    span = 199 * 1_000_003
    assert first.time_ns == BEGUN_NS + 2 * 10**9
    assert last.time_ns == BEGUN_NS + 2 * 10**9 + span + span // 10_000 - 250_000_000


def test_bursts_are_lost_in_about_the_share_asked_for():
    kept = len(edited(capture(20_000), "server", Edits(dropped={"server": 0.1}), random.Random(1)).frames)
    assert 0.85 < kept / 20_000 < 0.95


def logs(directory, **entries):
    for name, lines in entries.items():
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_token_pairs_connections_and_the_proxys_log_tells_the_class(tmp_path):
    logs(
        tmp_path,
        client=[
            {"time": 1.0, "tokens": ["a"], "local": "m:1", "peer": "s:80"},
            {"time": 2.0, "tokens": ["b"], "local": "m:2", "peer": "s:80"},
            {"time": 3.0, "tokens": ["c"], "local": "m:3", "peer": "s:8080"},
        ],
        origin=[
            {"time": 1.1, "token": "a", "peer": "p:9", "local": "s:80"},
            {"time": 3.1, "token": "c", "peer": "m:3", "local": "s:8080"},
        ],
        relay=[{"client": "m:1", "done": "relayed"}, {"client": "m:2", "done": "answered from the cache"}],
    )
    jobs = [
        Job("s", port, requests=[{"name": "x", "token": token, "bytes": 10**6}])
        for token, port in (("a", 80), ("b", 80), ("c", 8080))
    ]
    found = flows(Scenario("split", PathPlan(), lambda _: jobs), jobs, tmp_path, socket_bytes=131_072)
    assert [flow["class"] for flow in found] == ["split", "proxy", "regular"]
    assert [flow.get("server_capture") for flow in found] == ["p:9 > s:80", None, "m:3 > s:8080"]
    assert [flow["acceptable_kinds"] for flow in found] == [["split"], ["proxy", "unpaired"], ["regular"]]


def test_a_relay_that_can_hold_the_transfer_may_be_called_either_kind(tmp_path):
    logs(
        tmp_path,
        client=[{"time": 1.0, "tokens": ["a"], "local": "m:1", "peer": "s:80"}],
        origin=[{"time": 1.1, "token": "a", "peer": "p:9", "local": "s:80"}],
    )
    jobs = [Job("s", 80, requests=[{"name": "x", "token": "a", "bytes": 10**6}])]
    scenario = Scenario("split", PathPlan(), lambda _: jobs)
    (deep,) = flows(scenario, jobs, tmp_path, socket_bytes=10 * 2**20)
    assert deep["acceptable_kinds"] == ["split", "proxy"]
