"""Connections with known answers: what we say of them, and what tshark says of their packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pepscope.captures.capture import open_capture
from tests.captures.scenarios import SCENARIOS
from tests.oracles.columns import assert_same_packets
from tests.oracles.truth import truth_rows, written
from tests.oracles.tshark import tshark_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SCENARIOS)
def test_connections_have_the_values_of_the_scenario(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]()
    connections = list(open_capture(str(written(tmp_path / "capture", scenario.segments))).connections)
    assert len(connections) == len(scenario.expected)
    wrong = []
    for connection, expected in zip(connections, scenario.expected, strict=True):
        for part, wanted in (
            (connection, expected.connection),
            (connection.up, expected.up),
            (connection.down, expected.down),
        ):
            found = {attribute: getattr(part, attribute) for attribute in wanted}
            wrong += [(a, found[a], wanted[a]) for a in wanted if found[a] != wanted[a]]
    assert wrong == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_packets_are_those_sent_and_those_tshark_sees(tmp_path: Path, name: str) -> None:
    segments = SCENARIOS[name]().segments
    path = written(tmp_path / "capture", segments)
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(segments))
    assert_same_packets(capture, tshark_rows(path))
