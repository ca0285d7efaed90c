"""Verdicts on real networks from one end that must never be wrong."""

from __future__ import annotations

from functools import cache

import pytest

from detector.detection import detect
from pepscope.results.verdicts import DetectionResult, GroupResult, HostResult, Mechanism, PairResult, Verdict
from tests.detector.one_capture.real_networks import CAPTURES, ENOUGH_EXCHANGES, LONG_S, Captured, contradicted

EVERY = pytest.mark.parametrize("captured", CAPTURES, ids=lambda captured: captured.name)
SPLIT = pytest.mark.parametrize(
    "captured", [each for each in CAPTURES if each.truths[0].is_split], ids=lambda captured: captured.name
)
WHOLE = pytest.mark.parametrize(
    "captured", [each for each in CAPTURES if not each.truths[0].is_split], ids=lambda captured: captured.name
)


@cache
def judged(captured: Captured) -> DetectionResult:
    return detect(str(captured.path))


@EVERY
def test_no_group_and_no_host_is_called_the_opposite(captured: Captured) -> None:
    assert contradicted(captured, judged(captured)) == []


@EVERY
def test_every_connection_belongs_to_one_group_of_the_side_that_it_leads_to(captured: Captured) -> None:
    result = judged(captured)
    assert {group.side.value for group in result.groups} == {truth.side for truth in captured.truths}
    assert sorted(place for group in result.groups for place in group.pairs) == list(range(len(result.pairs)))
    known = {(truth.network, truth.port) for truth in captured.truths}
    assert {(group.network, group.port) for group in result.groups} <= known


@WHOLE
def test_no_connection_of_a_whole_network_is_called_split(captured: Captured) -> None:
    assert [pair.reason for pair in judged(captured).pairs if pair.verdict.is_split] == []


@SPLIT
def test_a_split_is_found_and_placed(captured: Captured) -> None:
    """On every port at the server's side; at the client's, where servers stand at several distances, on most."""
    groups = [group for group in judged(captured).groups if (group.exchanges or 0) >= ENOUGH_EXCHANGES]
    long = [group for group in groups if (captured.of_group(group).hidden_s or (0, 0))[1] >= LONG_S]
    found = [group for group in long if group.verdict.is_split]
    assert len(found) >= (len(long) / 2 if captured.at_client else len(long)) > 0
    for group in found:
        truth = captured.of_group(group)
        assert truth.places_rightly(group), group.where
        assert group.hidden_round_trip_s is not None
        assert group.hidden_round_trip_interval_s is not None
        assert truth.locates(group.hidden_round_trip_s), group.hidden_round_trip_s
        low_s, high_s = group.hidden_round_trip_interval_s
        assert low_s <= group.hidden_round_trip_s <= high_s
        assert group.mechanism is Mechanism.UNDECIDED
        assert group.near_round_trip_s > 0


@WHOLE
def test_what_is_whole_is_cleared_unless_its_clients_think(captured: Captured) -> None:
    groups = [group for group in judged(captured).groups if (group.exchanges or 0) >= ENOUGH_EXCHANGES]
    cleared = [group for group in groups if group.verdict is Verdict.REGULAR]
    wanted = [group for group in groups if not captured.of_group(group).thinks]
    assert len(cleared) >= 0.8 * len(wanted)


@EVERY
def test_results_agree_with_themselves(captured: Captured) -> None:
    result = judged(captured)
    hosts = [host for group in result.groups for host in group.by_host]
    rows: list[GroupResult | HostResult | PairResult] = [*result.groups, *hosts, *result.pairs]
    for row in rows:
        assert sum(row.probability.values()) == pytest.approx(1.0)
        assert all(0 <= share <= 1 for share in row.probability.values())
        if row.verdict is Verdict.REGULAR:
            assert row.probability[Verdict.REGULAR] >= 0.95 - 1e-9
        elif row.verdict.is_split:
            assert row.probability[Verdict.REGULAR] <= 0.05 + 1e-9
    for group in result.groups:
        assert sum(host.connections for host in group.by_host) == len(group.pairs)
        assert sum(host.exchanges for host in group.by_host) == group.exchanges
        assert (group.hidden_round_trip_s is None) == (not group.verdict.is_split)
        assert group.reason
        assert group.evidence


@EVERY
def test_single_connections_speak_as_their_group_or_not_at_all(captured: Captured) -> None:
    result = judged(captured)
    for group in result.groups:
        for place in group.pairs:
            verdict = result.pairs[place].verdict
            assert verdict in (Verdict.INCONCLUSIVE, group.verdict) or group.verdict is Verdict.INCONCLUSIVE
