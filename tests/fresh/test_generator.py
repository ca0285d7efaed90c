"""What the generator of fresh captures does to recordings, and what it takes for the truth."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks.fresh.__main__ import scenarios
from benchmarks.fresh.client import Job
from benchmarks.fresh.edits import edited
from benchmarks.fresh.path import PathPlan
from benchmarks.fresh.scenario import Edits, Scenario
from benchmarks.fresh.truth import LOCAL_ACKNOWLEDGEMENT, flows
from benchmarks.validation.score import Score
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


def test_a_token_pairs_connections_and_the_proxys_log_gives_the_class(tmp_path):
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


def one_flow(directory, scenario, *, box=(), port=80):
    logs(
        directory,
        client=[{"time": 1.0, "tokens": ["a"], "local": "m:1", "peer": f"s:{port}"}],
        origin=[{"time": 1.1, "token": "a", "peer": "m:1", "local": f"s:{port}"}],
        box=box,
    )
    jobs = [Job("s", port, requests=[{"name": "x", "token": "a", "bytes": 10**6}])]
    (flow,) = flows(scenario, jobs, directory, socket_bytes=131_072)
    return flow


def test_a_box_that_reports_for_itself_split_only_what_it_reports(tmp_path):
    scenario = Scenario("split", PathPlan(), lambda _: [], mechanism=LOCAL_ACKNOWLEDGEMENT, says_itself=True)
    untouched = one_flow(tmp_path, scenario)
    assert (untouched["class"], untouched["mechanism"]) == ("regular", None)
    said = {"done": "acknowledged locally", "client": "m:1", "direction": "down", "from_byte": 700}
    split = one_flow(tmp_path, scenario, box=[said])
    assert (split["class"], split["acceptable_kinds"], split["mechanism"]) == (
        "split",
        ["split"],
        LOCAL_ACKNOWLEDGEMENT,
    )
    assert split["split_from_byte"] == 700


def test_two_captures_of_one_leg_hold_an_end_to_end_stretch(tmp_path):
    flow = one_flow(tmp_path, Scenario("split", PathPlan(), lambda _: [], same_leg=True))
    assert flow["mobile_capture"] == flow["server_capture"] == "m:1 > s:80"
    assert (flow["class"], flow["mechanism"]) == ("regular", None)


def test_a_relay_between_legs_of_other_content_may_be_called_by_either_name(tmp_path):
    scenario = Scenario("split", PathPlan(), lambda _: [], mechanism="tunnel", other_content=True)
    assert one_flow(tmp_path, scenario)["acceptable_mechanisms"] == ["tunnel", "relay"]


def test_every_experiment_is_drawn_alike_from_the_same_seed():
    first, again = scenarios("5", None), scenarios("5", None)
    assert [drawn_parts(first[name]) for name in first] == [drawn_parts(again[name]) for name in again]
    assert {name for name in first if first[name].truth == "regular"} <= {n for n in first if n.startswith("reg-")}


def drawn_parts(scenario):
    return scenario.truth, scenario.plan, scenario.edits, scenario.mechanism, scenario.capture_at


@pytest.mark.parametrize(
    ("named", "claimed", "right"),
    [("relay", True, True), ("cache", True, False), ("undecided", False, False), (None, False, False)],
)
def test_a_mechanism_counts_where_it_is_named(named, claimed, right):
    score = Score(
        "run", "as recorded", "split", frozenset({"split-tcp"}), "split-tcp", "", {}, {}, named, "relay",
        frozenset({"relay"}),
    )  # fmt: skip
    assert (score.mechanism_claimed, score.mechanism_right) == (claimed, right)
