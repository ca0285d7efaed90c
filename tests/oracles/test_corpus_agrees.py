"""tshark and dpkt read the same packets out of every capture of the corpus as we do, field by field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark
from tests.oracles.columns import assert_same_packets, grouped_by_connection
from tests.oracles.second_decoder import dpkt_rows
from tests.oracles.tshark import tshark_rows

CORPUS = Path(__file__).parents[1] / "corpus"
CAPTURES = sorted(path.name for path in CORPUS.glob("*.pcap*.gz"))

#: tshark keeps unwrapping what it calls retransmission, spurious or out of order; we call the same packets
#: retransmitted, reordered or duplicate. Which of them is which cannot be known from one side.
OLD_DATA = frozenset({"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"})


def test_the_corpus_is_there() -> None:
    assert len(CAPTURES) > 100


@pytest.mark.parametrize("name", CAPTURES)
def test_the_corpus_is_read_as_tshark_reads_it(name: str) -> None:
    path = CORPUS / name
    capture = open_capture(str(path))
    rows = tshark_rows(path)
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


@pytest.mark.parametrize("name", CAPTURES)
def test_the_corpus_is_read_as_dpkt_reads_it(name: str) -> None:
    path = CORPUS / name
    assert_same_packets(open_capture(str(path)), dpkt_rows(path))
