"""Split points as real boxes: times, read sizes, hysteresis, limits, shared connections, local acknowledgement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pepscope import detect
from pepscope.captures.capture import open_capture
from pepscope.errors import ScenarioError
from pepscope.results.verdicts import Verdict
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

CORE = {"kind": "wired", "name": "core", "down": {"rate_bit_s": 100_000_000, "delay_s": 0.015, "queue_packets": 300}}
CELL = {"kind": "wired", "name": "cell", "down": {"rate_bit_s": 8_000_000, "delay_s": 0.03, "queue_packets": 100}}
DOWNLOAD = {"kind": "download", "bytes": 1_500_000}
PAGES = {"kind": "http", "page_bytes": 60_000, "count": 3, "spacing_s": 3}


def scenario(box: dict[str, Any], *traffic: dict[str, Any], **fields: Any) -> Scenario:
    return Scenario.from_mapping(
        {
            "name": "split-point",
            "duration_s": 60,
            "path": [CORE, {"name": "box", **box}, CELL],
            "traffic": list(traffic or (DOWNLOAD,)),
            **fields,
        }
    )


def truth_of(directory: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((directory / "truth.json").read_text())
    return read


def box_of(truth: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(hop for hop in truth["hops"] if hop["name"] == "box")
    return found


BOXES: dict[str, dict[str, Any]] = {
    "as before": {},
    "takes time": {"takes_time": True, "opening": "after-accept"},
    "busy": {"processing_delay_s": 0.004, "read_bytes": 16_384, "opening": "after-accept"},
    "hysteresis": {"resume_share": 0.5, "buffer_bytes": 131_072, "opening": "far-end-first"},
    "Linux": {
        "takes_time": True,
        "opening": "after-accept",
        "read_bytes": 65_536,
        "resume_share": 0.5,
        "server_leg": {"host": "linux", "receive_buffer_bytes": 131_072},
        "mobile_leg": {"host": "linux"},
    },
}


@pytest.mark.parametrize("name", BOXES)
def test_a_split_is_found_whatever_its_machine_is_like(name: str, tmp_path: Path) -> None:
    run = simulate(scenario({"kind": "split-proxy", **BOXES[name]}), tmp_path)
    truth = truth_of(tmp_path)
    assert truth["flows"][0]["delivered_exactly"] == {"down": True, "up": True}
    assert truth["split_at"] == ["box"]
    result = detect(str(run.captures["server"]), str(run.captures["mobile"]))
    assert [pair.verdict for pair in result.pairs] == [Verdict.SPLIT_TCP]


def test_a_run_is_the_same_each_time(tmp_path: Path) -> None:
    box = {"kind": "split-proxy", **BOXES["Linux"], "connections_limit": 1}
    captures = []
    for name in ("first", "second"):
        run = simulate(scenario(box, {**DOWNLOAD, "count": 2, "spacing_s": 0.5}), tmp_path / name)
        captures.append([run.captures[tap].read_bytes() for tap in ("server", "mobile")])
    assert captures[0] == captures[1]


def test_what_is_given_as_by_default_changes_nothing(tmp_path: Path) -> None:
    defaults = {"takes_time": False, "processing_delay_s": 0, "resume_share": 1, "opening": "at-once"}
    captures = []
    for name, box in (("absent", {}), ("given", defaults)):
        run = simulate(scenario({"kind": "split-proxy", "buffer_bytes": 65_536, **box}), tmp_path / name)
        captures.append([run.captures[tap].read_bytes() for tap in ("server", "mobile")])
    assert captures[0] == captures[1]


@pytest.mark.parametrize("over_limit", ["wait", "refuse", "drop", "bypass"])
def test_no_more_connections_are_served_than_the_limit_allows(over_limit: str, tmp_path: Path) -> None:
    box = {"kind": "split-proxy", "connections_limit": 2, "over_limit": over_limit}
    simulate(scenario(box, {**DOWNLOAD, "bytes": 400_000, "count": 5, "spacing_s": 0.05}), tmp_path)
    truth = truth_of(tmp_path)
    connections = box_of(truth)["connections"]
    assert connections["most_at_once"] == 2
    outcomes = [flow["mobile"]["outcome"] for flow in truth["flows"]]
    if over_limit == "refuse":
        assert (outcomes.count("closed"), outcomes.count("reset"), connections["refused"]) == (2, 3, 3)
    else:
        assert outcomes == ["closed"] * 5
        assert all(flow["delivered_exactly"]["down"] for flow in truth["flows"])
    expected = {"wait": ("waited", 3), "bypass": ("bypassed", 3)}.get(over_limit)
    if expected:
        assert connections[expected[0]] == expected[1]
    if over_limit == "drop":
        assert connections["dropped"] >= 3


@pytest.mark.parametrize("kind", ["split-proxy", "store-and-forward-proxy"])
def test_one_connection_with_the_server_carries_the_pages_of_all_clients(kind: str, tmp_path: Path) -> None:
    box = {"kind": kind, "reuse_idle_s": 10, "opening": "with-data"}
    run = simulate(scenario(box, PAGES), tmp_path)
    truth = truth_of(tmp_path)
    assert box_of(truth)["connections"]["reused"] == 2
    for flow in truth["flows"]:
        assert flow["delivered_exactly"] == {"down": True, "up": True}
        assert (flow["mobile"]["outcome"], flow["server"]["outcome"]) == ("closed", "closed")
    seen = {tap: open_capture(str(run.captures[tap])).connections for tap in ("server", "mobile")}
    assert {tap: len(connections) for tap, connections in seen.items()} == {"server": 1, "mobile": 3}
    assert seen["server"][0].down.stream_bytes == sum(one.down.stream_bytes for one in seen["mobile"])


def test_local_acknowledgement_is_seen_as_a_split_without_a_second_connection(tmp_path: Path) -> None:
    run = simulate(scenario({"kind": "local-acknowledger"}, DOWNLOAD, mobile={"host": "linux"}), tmp_path)
    truth = truth_of(tmp_path)
    assert truth["split_at"] == ["box"]
    assert truth["flows"][0]["class"] == "split-tcp"
    assert len(truth["flows"][0]["legs"]) == 1
    assert truth["flows"][0]["delivered_exactly"] == {"down": True, "up": True}
    assert box_of(truth)["acknowledged"]["acknowledgements"] > 500
    [pair] = detect(str(run.captures["server"]), str(run.captures["mobile"])).pairs
    assert pair.verdict is Verdict.SPLIT_TCP
    assert "local" in str(pair.mechanism).lower()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "reads more than it holds": (
        {"kind": "split-proxy", "buffer_bytes": 4096, "read_bytes": 8192}, "at most buffer_bytes, which is 4096",
    ),
    "decides about nothing": ({"kind": "split-proxy", "over_limit": "refuse"}, "absent where there is no connections"),
    "lets wait whom it refuses": (
        {"kind": "split-proxy", "connections_limit": 3, "over_limit": "drop", "waiting_limit": 2},
        "absent where over_limit is not wait",
    ),
    "legs of two machines": ({"kind": "split-proxy", "mobile_leg": {"takes_time": True}}, "it stands at the proxy"),
    "shares nothing": ({"kind": "split-proxy", "reuse_idle_s": 5}, "absent where no traffic is of kind http"),
    "adapts and shares": ({"kind": "window-adaptation-proxy", "reuse_idle_s": 5}, "reuse_idle_s"),
    "stores with hysteresis": ({"kind": "store-and-forward-proxy", "resume_share": 0.5}, "resume_share"),
    "holds less than four segments": ({"kind": "local-acknowledger", "buffer_bytes": 4096}, "four of the largest"),
    "paces": ({"kind": "local-acknowledger", "control": "bbr"}, "control"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_sentence(name: str) -> None:
    box, words = REFUSED[name]
    with pytest.raises(ScenarioError) as refusal:
        scenario(box)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
