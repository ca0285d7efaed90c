"""Captures on the line before a split point, and at the uplink of a data centre: servers answer at once in both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.one_ended_simulated.__main__ import make_network
from detector.detection import detect, detect_vantage
from pepscope.results.verdicts import GroupResult, GroupSide, SplitPlace

#: Seed and number of a simulated network: a relay behind LTE, five servers 22 to 44 ms behind it, and no balancer.
SEED, NUMBER = 5101, 231


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("networks")
    make_network(SEED, directory, NUMBER)
    return next(directory.iterdir())


def towards_servers(groups: Sequence[GroupResult]) -> list[GroupResult]:
    return [group for group in groups if group.side is GroupSide.CLIENT]


def test_a_relay_is_found_from_the_line_before_it(network: Path) -> None:
    groups = towards_servers(detect(str(network / "between.pcap.gz")).groups)
    found = [group for group in groups if group.verdict.is_split]
    assert found
    assert {group.where for group in found} == {SplitPlace.NETWORK}
    assert all(group.near_round_trip_s < 0.001 for group in found)


def test_servers_in_one_room_are_not_taken_for_a_split_point(network: Path) -> None:
    captures = json.loads((network / "truth.json").read_text("utf-8"))["captures"]
    at_servers = [str(network / each["file"]) for each in captures if each["side"] == "server"]
    groups = towards_servers(detect_vantage(at_servers).groups)
    assert groups
    assert not any(group.verdict.is_split for group in groups)
