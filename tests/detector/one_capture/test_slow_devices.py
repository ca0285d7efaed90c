"""Devices that delay all that they say, closes as well, told from hidden legs at the server's side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.one_capture import side_posteriors
from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged

HOSTS = tuple(f"192.0.2.{number}" for number in range(1, 7))

#: What one device adds to its answers (ms), by client, and by how much each answer takes more.
SLOW_MS = (18.0, 41.0, 95.0, 27.0, 160.0, 62.0)
TIMES = (1.0, 1.6, 1.2, 1.9)

#: A leg that all cross (ms), and what its answers take more.
LEG_MS, MORE_MS = 60.0, (0.4, 1.6, 0.8, 2.2)

Late = Callable[[int, float], float]


def _by_device(number: int, times: float) -> float:
    return SLOW_MS[number] * times


def _by_leg(_: int, times: float) -> float:
    return LEG_MS + MORE_MS[TIMES.index(times)]


def _talks(late_ms: Late, *, hosts: Sequence[str] = HOSTS) -> list[Talk]:
    """One connection a client and answer, which closes as late as the answer before the last one took."""
    return [
        Talk(host, [(ExchangeKind.TLS_FINISHED, late_ms(number, times))], close_ms=late_ms(number, before))
        for number, host in enumerate(hosts)
        for before, times in zip(TIMES[-1:] + TIMES[:-1], TIMES, strict=True)
    ]


def _judged(talks: Sequence[Talk]) -> SidePosteriors:
    return judged(talks, at_client=False)


def test_closes_as_late_as_answers_accuse_no_clients_that_are_each_late_by_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _judged(_talks(_by_device)).groups
    assert found.split[0] < LEAST_SPLIT[GroupSide.SERVER]
    priors = PRIORS | {GroupSide.SERVER: replace(PRIORS[GroupSide.SERVER], devices=0.0)}
    monkeypatch.setattr(side_posteriors, "PRIORS", priors)
    without = _judged(_talks(_by_device)).groups
    assert without.split[0] > 0.999
    assert found.late[0] > 1e3 * without.late[0]


def test_a_leg_that_all_clients_cross_is_found() -> None:
    found = _judged(_talks(_by_leg)).groups
    assert found.split[0] > LEAST_SPLIT[GroupSide.SERVER]
    assert found.late[0] < 1e-4


def test_what_one_client_does_is_no_habit_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    talks = [talk for talk in _talks(_by_device) if talk.host == HOSTS[0]][:1]  # several may be several clients'
    found = _judged(talks).groups
    priors = PRIORS | {GroupSide.SERVER: replace(PRIORS[GroupSide.SERVER], devices=0.5)}
    monkeypatch.setattr(side_posteriors, "PRIORS", priors)
    assert _judged(talks).groups.split == pytest.approx(found.split, abs=1e-9)


@given(st.permutations(range(len(HOSTS))), st.integers(2, 200))
def test_order_and_addresses_of_clients_change_nothing(order: Sequence[int], first: int) -> None:
    before = _judged(_talks(_by_device)).groups
    talks = _talks(_by_device, hosts=[f"192.0.2.{first + number}" for number in range(len(HOSTS))])
    of_host = [talks[len(TIMES) * number :][: len(TIMES)] for number in order]
    after = _judged([talk for own in of_host for talk in own]).groups
    assert after.split[0] == pytest.approx(before.split[0], abs=1e-9)
    assert after.late[0] == pytest.approx(before.late[0], abs=1e-9)
