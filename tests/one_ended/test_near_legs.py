"""What is learned of near legs: of which groups, and that it is what the detector reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.one_ended_learning import near_legs
from benchmarks.one_ended_learning.links import counts, servers_captures
from benchmarks.one_ended_simulated.__main__ import make_network
from detector.one_capture.senders import first_words, near_variation


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("networks")
    for number in range(6):
        make_network(5511, directory, number)
    return directory


def test_groups_are_those_of_servers_that_are_split_in_the_network_or_not_at_all(networks: Path) -> None:
    captures = [*servers_captures(networks)]
    truths = [(capture, number, truth) for capture in captures for number, truth in capture.truths.items()]
    assert {truth.is_split for _, _, truth in truths} == {False, True}
    for capture, number, truth in truths:
        assert (truth.side, truth.prefix) == ("server", capture.where.network[number])
        assert truth.port == capture.where.port[number]
        assert truth.is_split_in_network == truth.is_split
    counted = counts(networks)
    assert 0 < sum(of.sum() for of in counted.values()) <= len(truths)


def test_the_learner_writes_shares_as_the_detector_has_them(
    networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["near_legs", str(networks), "--output", str(tmp_path)])
    near_legs.main()
    for module in (first_words, near_variation):
        name = module.__name__.rpartition(".")[2] + ".json"
        learned = json.loads((tmp_path / name).read_text("ascii"))
        known = json.loads((Path(str(module.__file__)).parent / name).read_text("ascii"))
        assert learned.keys() == known.keys()
        for truth, shares in known.items():
            assert np.shape(learned[truth]) == np.shape(shares)
            np.testing.assert_allclose(np.sum(learned[truth], axis=-1), 1.0, atol=1e-3)
            assert np.min(learned[truth]) > 0
