"""tshark and dpkt read the same packets out of captures of the corpus as we do, field by field."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark
from tests.cases import each_value
from tests.detector.corpus import RUNS, forms
from tests.oracles.columns import OracleRow, assert_same_packets, grouped_by_connection
from tests.oracles.second_decoder import dpkt_rows
from tests.oracles.tshark import tshark_rows, tshark_rows_of_each

CORPUS = Path(__file__).parents[1] / "corpus"
CAPTURES = sorted(path.name for path in CORPUS.glob("*.pcap*.gz"))

#: tshark keeps unwrapping what it calls retransmission, spurious or out of order; we call the same packets
#: retransmitted, reordered or duplicate. Which of them is which cannot be known from one side.
OLD_DATA = frozenset({"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"})


def _shown(name: str) -> set[tuple[str, str]]:
    """The form of a capture, and of the connections in it."""
    run = name.partition(".")[0]
    return forms(run) | {("end", name.split(".")[1])} if run in RUNS else {("name", name)}


def _pairs_shown(name: str) -> set[tuple[tuple[str, str], ...]]:
    """Every two of them; what stands alone shows itself."""
    return set(itertools.combinations_with_replacement(sorted(_shown(name)), 2))


def test_the_corpus_is_there() -> None:
    assert len(CAPTURES) > 100


@pytest.fixture(scope="module")
def rows_of_tshark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Path, list[OracleRow]]:
    """What tshark says of each capture that it is asked about: one run reads all that have no pair of addresses in
    common."""
    asked = {
        CORPUS / item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_the_corpus_is_read_as_tshark_reads_it
    }
    # mergecap refuses a capture that ends within a packet.
    found = {path: tshark_rows(path) for path in asked if "__cut." in path.name}
    runs: list[tuple[list[Path], set[frozenset[str]]]] = []
    for path in sorted(asked - found.keys()):
        ends = {frozenset((each.client_address, each.server_address)) for each in open_capture(str(path)).connections}
        paths, taken = next((run for run in runs if not run[1] & ends), ([], set()))
        if not paths:
            runs.append((paths, taken))
        paths.append(path)
        taken |= ends
    scratch = tmp_path_factory.mktemp("merged")
    for paths, _ in runs:
        found |= tshark_rows_of_each(paths, scratch)
    return found


@pytest.mark.parametrize("name", each_value(CAPTURES, _pairs_shown))
def test_the_corpus_is_read_as_tshark_reads_it(name: str, rows_of_tshark: dict[Path, list[OracleRow]]) -> None:
    path = CORPUS / name
    capture = open_capture(str(path))
    rows = rows_of_tshark[path]
    assert capture.tcp_packet_count == len(rows)
    assert_same_packets(capture, rows)
    groups = grouped_by_connection(rows, capture)
    for connection, group in zip(capture.connections, groups, strict=True):
        columns = capture.packets(connection.id)
        theirs = np.array([row.round_trip_time_ns or -1 for row in group], np.int64)
        old = np.array([bool(row.analysis & OLD_DATA) for row in group])
        _assert_round_trips(columns.round_trip_time_ns, theirs)
        marked = (columns.marks & (Mark.RETRANSMISSION | Mark.REORDERED | Mark.DUPLICATE)) > 0
        _assert_old_data(capture, marked, old)


def _assert_round_trips(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Where both time the same ACK, they agree to the nanosecond; Karn's rule only ever takes samples away."""
    both = (ours >= 0) & (theirs >= 0)
    np.testing.assert_array_equal(ours[both], theirs[both])


def _assert_old_data(capture: Capture, ours: np.ndarray, theirs: np.ndarray) -> None:
    """As many packets carry data from below the highest byte seen, up to keep-alives and capture gaps."""
    assert abs(int(ours.sum()) - int(theirs.sum())) <= 2 + 0.02 * max(ours.sum(), theirs.sum()), capture.path


# dpkt is asked about fields only, and tshark about the same ones of more captures.
@pytest.mark.parametrize("name", each_value(CAPTURES, _shown))
def test_the_corpus_is_read_as_dpkt_reads_it(name: str) -> None:
    path = CORPUS / name
    assert_same_packets(open_capture(str(path)), dpkt_rows(path))
