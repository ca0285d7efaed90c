"""Counting: rates, connections, bytes and leases, with a clock that the test turns."""

from __future__ import annotations

import threading

import pytest

from prober.errors import ServerError
from prober.server.leases import Leases
from prober.server.refusal import RefusedError
from prober.server.sessions import DAY_S, DayBudget, Session, Sessions
from prober.server.settings import LimitsTable
from prober.server.sockets.admission import Admission, Rate


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_gives_so_many_at_once_and_then_so_many_a_second() -> None:
    clock = Clock()
    rate = Rate(2.0, 3.0, clock)
    assert [rate.take("a") for _ in range(4)] == [True, True, True, False]
    assert rate.take("b")
    clock.now += 0.5
    assert [rate.take("a"), rate.take("a")] == [True, False]
    clock.now += 1e6
    assert [rate.take("a") for _ in range(4)] == [True, True, True, False]


def test_a_rate_limit_stores_a_bounded_number_of_addresses() -> None:
    rate = Rate(1.0, 1.0, Clock())
    for number in range(30_000):
        assert rate.take(str(number))
    assert len(rate._buckets) == 10_000


def test_connections_are_counted_in_all_and_by_address() -> None:
    admission = Admission(3, 2, Rate(1000, 1000))
    assert admission.admit("a") == admission.admit("a") == ""
    assert "one address" in admission.admit("a")
    assert admission.admit("b") == ""
    assert "as many connections as allowed" in admission.admit("c")
    admission.release("a")
    assert admission.admit("c") == ""
    assert admission.admitted == 3


def test_a_days_budget_begins_again_the_next_day() -> None:
    clock = Clock()
    day = DayBudget(100, clock)
    assert day.take(100)
    assert not day.take(1)
    clock.now += DAY_S
    assert day.take(100)


def test_bytes_are_taken_once_by_many_threads() -> None:
    sessions = Sessions(LimitsTable(session_bytes=10_000))
    session = sessions.open()
    refused = []

    def take() -> None:
        for _ in range(2000):
            try:
                session.take(1)
            except RefusedError:
                refused.append(1)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 6000


def test_sessions_end_when_their_time_is_over() -> None:
    clock = Clock()
    sessions = Sessions(LimitsTable(session_s=10.0, sessions=2), clock)
    first, second = sessions.open(), sessions.open()
    with pytest.raises(RefusedError, match="the maximum"):
        sessions.open()
    clock.now += 6
    sessions.renew(second)
    clock.now += 6
    assert sessions.find(first.name) is None
    assert sessions.find(second.name) is second
    assert sessions.expired() == [first]
    assert sessions.expired() == []


def leased(clock: Clock) -> tuple[Leases[str], list[str], Session]:
    ended: list[str] = []
    session = Sessions(LimitsTable()).open()
    return Leases("thing", 2, ended.append, clock), ended, session


def test_a_lease_ends_exactly_once() -> None:
    clock = Clock()
    leases, ended, session = leased(clock)
    name = leases.begin(session, 5.0, lambda: "a")
    leases.begin(session, 50.0, lambda: "b")
    with pytest.raises(RefusedError, match="the maximum number of things"):
        leases.begin(session, 5.0, lambda: "c")
    clock.now += 6
    leases.end_overdue(lambda _: True)
    leases.end_overdue(lambda _: True)
    assert ended == ["a"]
    with pytest.raises(RefusedError, match="no thing of this name"):
        leases.end(session, name)
    leases.close()
    leases.close()
    assert ended == ["a", "b"]


def test_a_lease_of_a_session_that_ended_meanwhile_ends() -> None:
    leases, ended, session = leased(Clock())
    leases.begin(session, 1e9, lambda: "a")
    leases.end_overdue(lambda owner: owner is not session)
    assert ended == ["a"]


def test_what_cannot_be_made_takes_no_room() -> None:
    leases, _, session = leased(Clock())

    def fail() -> str:
        raise ServerError("no")

    for _ in range(5):
        with pytest.raises(ServerError):
            leases.begin(session, 1.0, fail)
    assert leases.begin(session, 1.0, lambda: "a")
