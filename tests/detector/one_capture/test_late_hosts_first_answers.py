"""First answers of hosts that are late by themselves take as long as later ones, which proves no leg."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupResult, SplitPlace, Verdict
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, results

FIRST, NEXT = ExchangeKind.HTTP_REQUEST, ExchangeKind.HTTP_NEXT_REQUEST
HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1")


def asked_at_once(
    late_ms: Sequence[float], near_ms: Sequence[float], *, connections: int, later: int = 0, first_crosses: int = 1
) -> GroupResult:
    """How hosts are judged that are late by as much in each answer of HTTP, first ones so many times, where each
    connection asks as it opens."""
    random = np.random.default_rng(1)
    talks = []
    for host, late, near in zip(HOSTS, late_ms, near_ms, strict=False):
        for _ in range(connections):
            beyond_ms = np.asarray([late * first_crosses, *([late] * later)])
            beyond_ms += np.abs(random.normal(0.0, 0.3, 1 + later))
            more = [
                Asked(
                    0, near + each, near, NEXT if number else FIRST, question_ms=1000.0 * number, first=not number
                )
                for number, each in enumerate(beyond_ms.tolist())
            ]  # fmt: skip
            talks.append(Talk(host, more=more, round_trip_ms=near))
    (group,) = results(talks, at_client=True)
    return group


@pytest.mark.parametrize(("connections", "later"), [(5, 0), (60, 0), (20, 3)])
def test_one_slow_server_is_no_split(connections: int, later: int) -> None:
    assert asked_at_once([31.4], [20.0], connections=connections, later=later).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("connections", "later"), [(5, 0), (60, 0), (20, 3)])
def test_one_slow_server_beside_others_has_no_leg_of_its_own(connections: int, later: int) -> None:
    group = asked_at_once([31.4, 0.4, 0.4, 0.4], [20.0, 45.0, 90.0, 15.0], connections=connections, later=later)
    assert group.verdict is Verdict.REGULAR
    assert {host.host: host.verdict for host in group.by_host}[HOSTS[0]] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("late_ms", [(31.4, 31.4, 31.4), (31.4, 60.0, 90.0)])
@pytest.mark.parametrize(("connections", "later"), [(20, 0), (60, 0), (20, 3)])
def test_slow_services_are_not_split_inside_their_sites(late_ms: Sequence[float], connections: int, later: int) -> None:
    """Services that call one region, or each another, at distances of their own."""
    group = asked_at_once(late_ms, [15.0, 40.0, 100.0], connections=connections, later=later)
    assert not group.verdict.is_split
    assert not any(host.verdict.is_split for host in group.by_host)


def test_first_answers_that_cross_a_leg_once_do_not_hide_it() -> None:
    group = asked_at_once([31.4, 60.0, 90.0], [20.0] * 3, connections=20, later=1)
    assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, SplitPlace.NETWORK)


def test_a_front_whose_handshakes_first_answers_wait_for_is_found() -> None:
    """No host has a reason to take twice as long for its first answers."""
    group = asked_at_once([31.4, 0.4, 0.4], [20.0, 45.0, 90.0], connections=20, later=1, first_crosses=2)
    assert {host.host: host.verdict for host in group.by_host}[HOSTS[0]].is_split
