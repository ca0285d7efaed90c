"""Counting: rates, connections, bytes and leases, with a clock that the test turns."""

from __future__ import annotations

import contextlib
import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.errors import ServerError
from prober.server.instruments.leases import Leases
from prober.server.keys.client_key import ClientKey, Quotas
from prober.server.refusal import RefusedError
from prober.server.sessions import DAY_S, DayBudget, Session, Sessions
from prober.server.settings import LimitsTable
from prober.server.sockets.admission import Admission, Admitted, Rate
from prober.server.sockets.networks import networks_of

KEY = ClientKey("alice")


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
    first, _ = known(admission, "192.0.2.1"), known(admission, "192.0.2.1")
    with pytest.raises(RefusedError, match="as many connections of one address as allowed"):
        admission.admit("192.0.2.1", never)
    known(admission, "192.0.2.2")
    with pytest.raises(RefusedError, match="as many connections as allowed"):
        admission.admit("198.51.100.1", never)
    admission.release(first)
    admission.release(first)
    assert admission.admitted == 2
    known(admission, "198.51.100.1")
    assert admission.admitted == 3


def never() -> None:
    raise AssertionError("a connection with a key must not make room")


def known(admission: Admission, address: str, key: ClientKey = KEY) -> Admitted:
    admitted = admission.admit(address, never)
    admission.know(admitted, key)
    return admitted


@pytest.mark.parametrize(
    ("address", "client", "site"),
    [
        ("192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
    ],
)
def test_networks_are_counted_as_one_client_or_one_site_has_them(address: str, client: str, site: str) -> None:
    assert networks_of(address) == (client, site)


@pytest.mark.parametrize("numbering", ["203.0.113.7", "2001:db8:1:{:x}::{:x}", "2001:db8:1:0::{:x}"])
def test_ten_thousand_connections_of_one_network_keep_nobody_else_out(numbering: str) -> None:
    """Even where all of them have a key."""
    limits = LimitsTable()
    rate = Rate(1e9, 1e9)
    admission = Admission(limits.connections, limits.connections_per_address, rate, limits.connections_per_network)
    refused = 0
    for number in range(10_000):
        try:
            known(admission, numbering.format(number, number))
        except RefusedError:
            refused += 1
    assert refused >= 10_000 - limits.connections_per_network
    for other in ("203.0.112.7", "2001:db8:2::1"):
        assert len([known(admission, other) for _ in range(50)]) == 50


def test_a_key_has_only_so_many_connections() -> None:
    admission, frugal = Admission(10, 10, Rate(1000, 1000)), ClientKey("frugal", Quotas(connections=2))
    first = known(admission, "192.0.2.1", frugal)
    known(admission, "2001:db8::1", frugal)
    third = admission.admit("198.51.100.1", never)
    with pytest.raises(RefusedError, match="the key frugal must have at most 2 connections"):
        admission.know(third, frugal)
    admission.know(third, KEY)
    admission.release(first)
    known(admission, "192.0.2.1", frugal)


def test_strangers_make_room_the_oldest_of_the_most_crowded_network_first() -> None:
    clock = Clock()
    admission = Admission(6, 4, Rate(1000, 1000), per_site=5, clock=clock)
    gone: list[str] = []

    def stranger(address: str) -> Admitted:
        name = f"{address} {next(numbers)}"
        return admission.admit(address, lambda: gone.append(name))

    numbers = itertools.count()
    known(admission, "192.0.2.1")
    lone = stranger("198.51.100.1")
    crowd = [stranger("192.0.2.2") for _ in range(3)]
    stranger("192.0.2.1")
    with pytest.raises(RefusedError, match="as many connections of one network as allowed"):
        stranger("192.0.2.1")
    assert gone == []
    clock.now += 1.0
    stranger("192.0.2.1")
    assert gone == ["192.0.2.2 1"], "of the full /24"
    stranger("203.0.113.1")
    assert gone == ["192.0.2.2 1", "192.0.2.2 2"], "of all"
    admission.release(crowd[0])
    assert admission.admitted == 6, "who made room is not counted twice"
    admission.know(lone, KEY)
    admission.know(crowd[0], KEY)
    assert admission.admitted == 6
    assert admission.displaced == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 9)), max_size=200))
def test_counts_are_right_whatever_happens(steps: list[tuple[int, int, int]]) -> None:
    """Never more than allowed of anything, and none of it left in the end."""
    admission = Admission(8, 3, Rate(1e9, 1e9), per_site=5)
    living: list[Admitted] = []
    for kind, address, which in steps:
        if kind < 3:
            with contextlib.suppress(RefusedError):
                living.append(admission.admit(f"192.0.{address % 2}.{address}", lambda: None))
        elif living and kind == 3:
            admission.release(living.pop(which % len(living)))
        elif living:
            with contextlib.suppress(RefusedError):
                admission.know(living[which % len(living)], KEY)
        assert 0 <= admission.admitted <= 8
        assert max(admission._of.values(), default=0) <= 5
    for admitted in living:
        admission.release(admitted)
    assert admission.admitted == 0
    assert not admission._of
    assert not admission._of_key
    assert not admission._strangers


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
