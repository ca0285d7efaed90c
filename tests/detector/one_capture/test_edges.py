"""Edges of content networks beside each other, which answer TLS or what they hold at once, and fetch the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from msgspec import structs

from detector.one_capture import side_posteriors
from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.likelihoods.priors import PRIORS
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict
from tests.detector.one_capture.made_vantages import Talk, judged, results

HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "198.18.7.1", "198.19.0.1")
OWN_MS = (25.0, 40.0, 60.0, 80.0, 110.0, 150.0)

#: What an answer takes, of what its server usually takes.
STEADY, VARYING = (1.0, 1.01, 1.03, 1.02), (1.0, 1.35, 1.12, 1.6)


def talks(count: int, times: Sequence[float], apart_ms: float = 0.1, hello_ms: float | None = 0.6) -> list[Talk]:
    """Connections with servers some 5 ms away, each so much farther than the one before, that answer so late."""
    kind = ExchangeKind.HTTP_REQUEST if hello_ms is None else ExchangeKind.TLS_DATA
    hello = [] if hello_ms is None else [(ExchangeKind.TLS_HELLO, hello_ms)]
    return [
        Talk(host, [*hello, *((kind, own * each) for each in times)], round_trip_ms=5 + apart_ms * place, port=443)
        for place, (host, own) in enumerate(zip(HOSTS[:count], OWN_MS[:count], strict=True))
        for _ in range(5)
    ]


def split(made: Sequence[Talk], pings: Sequence[tuple[str, float]] = ()) -> float:
    return float(judged(made, at_client=True, pings=pings).groups.split[0])


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("times", [STEADY, VARYING])
def test_no_number_of_edges_that_fetch_from_afar_accuses_the_network(count: int, times: Sequence[float]) -> None:
    (group,) = results(talks(count, times), at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert split(talks(count, times)) < 0.7


def test_the_reason_says_that_edges_answer_some_at_once() -> None:
    (group,) = results(talks(6, STEADY), at_client=True)
    assert "some answers come within 0.60 ms of the transport's round trip, others later" in group.reason
    assert "every answer" not in group.reason


@pytest.mark.parametrize("count", [2, 3, 6])
def test_edges_that_hold_some_pages_are_no_cache_in_the_network(count: int) -> None:
    made = talks(count, (0.02, 1.0, 1.03, 0.01, 1.02, 0.03, 1.01, 0.02), hello_ms=None)
    assert split(made) < LEAST_SPLIT[GroupSide.CLIENT]


@pytest.mark.parametrize("count", [3, 6])
def test_what_references_cross_as_well_lies_in_the_network_where_tls_ends(count: int) -> None:
    pings = [(host, 5.0 + own) for host, own in zip(HOSTS[:count], OWN_MS[:count], strict=True)]
    (group,) = results(talks(count, STEADY), at_client=True, pings=pings)
    assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, SplitPlace.NETWORK)


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("hello_ms", [0.6, None])
def test_references_that_end_at_edges_leave_open_whether_these_fetch(count: int, hello_ms: float | None) -> None:
    """What one server fetches crosses a leg inside its site, and so does what several do."""
    times = STEADY if hello_ms else (0.02, 1.0, 1.03, 0.01, 1.02, 0.03, 1.01, 0.02)
    pings = [(host, 5.2) for host in HOSTS[:count]]
    (group,) = results(talks(count, times, hello_ms=hello_ms), at_client=True, pings=pings)
    assert group.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("hello_ms", [25.3, None])
def test_what_takes_as_long_in_handshakes_or_without_them_comes_from_no_edge(hello_ms: float | None) -> None:
    made = [replace(talk, excess_ms=[(kind, 25.0 + 0.5 * place) for place, (kind, _) in enumerate(talk.excess_ms)])
            for talk in talks(4, STEADY, hello_ms=hello_ms)]  # fmt: skip
    without = PRIORS | {GroupSide.CLIENT: structs.replace(PRIORS[GroupSide.CLIENT], edges=0.0)}
    found = split(made)
    with patch.object(side_posteriors, "PRIORS", without):
        assert found == pytest.approx(split(made), abs=0.01)


@pytest.mark.parametrize("times", [STEADY, VARYING])
def test_servers_at_distances_of_their_own_are_judged_as_before(times: Sequence[float]) -> None:
    assert split(talks(4, times, apart_ms=17.0)) < 0.01
