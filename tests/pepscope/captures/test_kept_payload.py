"""`open_capture(payload="exchanges")`: less payload, and the same exchanges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.exchanges import EXCHANGE_COLUMNS
from tests.detector.one_capture.real_networks import named

TESTS = Path(__file__).parents[2]
CORPUS = sorted(map(str, (TESTS / "corpus").glob("*.pcap*.gz")))
EXCHANGES = sorted(map(str, (TESTS / "exchanges").glob("*.pcap.xz")))
NETWORKS = [str(named(name).path) for name in ("lte-relay.server", "umts-nat.server")]


def pieces(capture: Capture) -> int:
    """How many pieces of payload a capture keeps."""
    samples = map(capture.payload, range(len(capture.connections)))
    return sum(len(each.pieces) for sample in samples for each in sample.values())


def assert_same_exchanges(one: Capture, other: Capture) -> None:
    for name in EXCHANGE_COLUMNS:
        assert np.array_equal(getattr(one.exchanges(), name), getattr(other.exchanges(), name)), name


@pytest.mark.parametrize("paths", [CORPUS, EXCHANGES, NETWORKS], ids=["corpus", "exchanges", "networks"])
def test_exchanges_are_those_of_all_payload(paths: list[str]) -> None:
    assert paths
    kept = {True: 0, False: 0}
    for path in paths:
        whole, chosen = open_capture(path), open_capture(path, payload="exchanges")
        assert_same_exchanges(whole, chosen)
        for is_whole, capture in ((True, whole), (False, chosen)):
            kept[is_whole] += pieces(capture)
    assert 0 < kept[False] < 0.8 * kept[True]


def test_packets_in_temporary_files_are_told_the_same() -> None:
    in_memory = open_capture(NETWORKS[0], payload="exchanges")
    in_files = open_capture(NETWORKS[0], payload="exchanges", memory_bytes=20_000)
    assert in_memory.partition_count == 1 < in_files.partition_count
    assert_same_exchanges(in_memory, in_files)


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="payload must be a bool or 'exchanges', got \"all\""):
        open_capture(NETWORKS[0], payload="all")  # type: ignore[arg-type]
