"""First flights of several segments that a firewall reads and acknowledges: no split, and named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.metamorphic.records import records_of
from benchmarks.metamorphic.writing import write
from benchmarks.metamorphic_single.firewall import collecting_first_flights
from detector.detection import detect
from detector.one_capture import pools
from detector.one_capture.columns import VantageColumns
from detector.one_capture.judging import group_results, judged_groups
from detector.one_capture.networks import NetworkTable
from detector.one_capture.reasons.findings import FirstFlightFinding
from detector.one_capture.reasons.first_flights import read_first_flights
from detector.one_capture.reasons.shown_signs import with_shown_signs
from detector.one_capture.side_posteriors import weigh_side
from detector.options import DECISION_PROBABILITY
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import Evidence, GroupSide, Verdict
from tests.captures.containers import read_capture
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, vantage

KINDS = (ExchangeKind.TLS_FINISHED, ExchangeKind.HTTP_REQUEST) * 3
HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1")
SLEEPY = Path(__file__).parents[2] / "captures" / "one_ended" / "sleepy-regular.client.pcap.gz"


def made_of(
    acknowledged_ms: Sequence[float], question_bytes: int, *, later_ms: float = 40.0, leg_ms: float = 0.0
) -> VantageColumns:
    """Servers 40 ms away that have acknowledged clients' first flights so soon, and all else after `later_ms`."""
    made = vantage(
        [
            Talk(
                host, [(kind, 40.3 + place * leg_ms - later_ms) for kind in KINDS], later_ms, handshake_ms=40.0,
                more=[Asked(0, 40.5 + place * leg_ms, each_ms, ExchangeKind.TLS_HELLO, first=True, strict=True)],
            )
            for place, host in enumerate(HOSTS, 1)
            for each_ms in acknowledged_ms
        ],
        at_client=True,
    )  # fmt: skip
    sizes = np.where(made.exchanges.first, question_bytes, 200)
    made = replace(made, exchanges=replace(made.exchanges, question_bytes=sizes))
    columns = {**made.columns, **dict.fromkeys(("up_stream_bytes", "packets"), np.zeros(len(made.capture), np.int64))}
    return replace(made, columns=columns)


def named(acknowledged_ms: Sequence[float], question_bytes: int, *, leg_ms: float = 0.0) -> list[Evidence]:
    """What is named of them."""
    made = made_of(acknowledged_ms, question_bytes, leg_ms=leg_ms)
    judged = weigh_side(made, GroupSide.CLIENT, NetworkTable())
    groups = judged_groups(judged, pools.of_members(judged), DECISION_PROBABILITY)
    results = group_results(judged, pools.of_members(judged), groups, [range(len(made.capture))])
    (found,) = with_shown_signs(results, made, judged, groups.explanations, np.arange(len(made.capture)))
    return [item for item in found.evidence if item.finding == FirstFlightFinding.FIRST_FLIGHTS_READ]


def test_what_reads_first_flights_is_named_where_most_are_acknowledged_nearer_than_the_syn() -> None:
    (shown,) = named([1.5, 1.6, 1.4, 40.2], 1_900)
    assert shown.numbers["read"] == 9
    assert shown.numbers["connections"] == 12
    assert "after 1.50 ms in 9 of 12 connections whose handshakes take 40.0 ms" in shown.summary
    assert named([1.5, 40.3, 40.2], 1_900) == []


@pytest.mark.parametrize(("later_ms", "groups"), [(40.0, 1), (15.0, 0)])
def test_no_reader_is_named_where_everything_later_is_acknowledged_as_near(later_ms: float, groups: int) -> None:
    """A relay that connects before it answers takes it all, also where that is not enough to call it one."""
    made = made_of([15.0, 15.1], 1_900, later_ms=later_ms)
    judged = weigh_side(made, GroupSide.CLIENT, NetworkTable())
    assert len(list(read_first_flights(made, judged, np.zeros(1, np.bool_)))) == groups


def test_nothing_is_named_of_one_segment_or_behind_a_split() -> None:
    assert named([1.5, 1.6, 1.4], 517) == []
    assert named([39.0, 39.6, 40.4], 1_900) == []
    assert named([1.5, 1.6, 1.4], 1_900, leg_ms=20.0) == []


@pytest.mark.parametrize("after_ns", [300_000, 1_500_000, 9_000_000])
def test_no_network_is_accused_of_a_firewall_that_reads_first_flights(after_ns: int, tmp_path: Path) -> None:
    records = records_of(read_capture(SLEEPY), {})
    write(tmp_path / "read.pcap", collecting_first_flights(records, after_ns), "raw")
    found = detect(str(tmp_path / "read.pcap"))
    assert found.groups
    assert not any(each.verdict.is_split for each in found.groups)
    assert any(each.verdict is Verdict.REGULAR for each in found.groups)
