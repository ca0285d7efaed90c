"""Libraries that take as long, and as steadily, before TLS handshake flights as a hidden leg would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, judged, results

#: What is added to a machine's own time (ms), from connection to connection.
MORE_MS = (0.2, 0.9, 0.4, 1.3, 0.6, 1.0)

#: What persons take before what they say next (ms).
PERSONS_MS = (1_900.0, 27_000.0, 640.0, 8_100.0, 3_300.0, 14_000.0)

#: A machine's own times (ms), of six.
OWN_MS = tuple(float(each) for each in np.geomspace(60, 240, 6))

FAR = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "198.18.7.1", "198.19.0.1")


def clients(own_ms: Sequence[float], behind: Sequence[tuple[ExchangeKind, float]] = (), close_ms: float | None = None):
    """Six connections of each client, whose library takes a time of its own before its second flight."""
    return [
        Talk(f"192.0.2.{number}", [(ExchangeKind.TLS_FINISHED, own + more), *behind], port=8883, close_ms=close_ms)
        for number, own in enumerate(own_ms, 1)
        for more in MORE_MS
    ]


def split(talks: Sequence[Talk]) -> float:
    return float(judged(talks, at_client=False).groups.split[0])


@pytest.mark.parametrize("own_ms", [(150.0,), (150.0,) * 4, OWN_MS])
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("close_ms", [None, 0.7])
def test_no_number_of_slow_handshakes_is_a_split(
    own_ms: Sequence[float], persons: bool, close_ms: float | None
) -> None:
    """Small devices whose processors compute keys, laptops whose security chips sign: one kind, or several."""
    behind = [(ExchangeKind.TLS_DATA, each) for each in PERSONS_MS] if persons else []
    assert split(clients(own_ms, behind, close_ms)) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize(
    "own_ms", [[150.0 + 20 * each for each in range(6)], [150.0 + 20 * (n % 6) for n in range(20)]]
)
def test_many_slow_machines_are_no_split_because_some_host_may_be_late(own_ms: Sequence[float]) -> None:
    """Behind a leg hosts may be late by themselves; where keys take their time, as well."""
    assert 0.9 < split(clients(own_ms)) < LEAST_SPLIT[GroupSide.SERVER]


def test_what_people_take_behind_legs_says_nothing_against_them() -> None:
    """However many clients there are, each behind a leg of its own."""
    people_ms = (150.0, 27_000.0, 640.0, 8_100.0, 3_300.0, 60_000.0)

    def of_clients(count: int) -> float:
        legs_ms = [25.0 + 5 * (number % 12) for number in range(count)]
        made = clients(legs_ms)
        said = [replace(talk, excess_ms=[*talk.excess_ms, (ExchangeKind.TLS_DATA, people_ms[place % 6])])
                for place, talk in enumerate(made)]  # fmt: skip
        return split(said)

    assert min(of_clients(6), of_clients(36)) > 0.85


@pytest.mark.parametrize("own_ms", [(150.0,), (150.0,) * 4, OWN_MS, (400.0,)])
def test_what_is_said_at_once_behind_slow_handshakes_crosses_no_leg(own_ms: Sequence[float]) -> None:
    (group,) = results(clients(own_ms, [(ExchangeKind.TLS_DATA, 0.8), (ExchangeKind.TLS_DATA, 1.4)]), at_client=False)
    assert group.verdict is Verdict.REGULAR


@pytest.mark.parametrize("leg_ms", [30.0, 60.0, 150.0])
@pytest.mark.parametrize("count", [1, 4])
def test_a_leg_delays_what_programs_say_or_closes_as_well(leg_ms: float, count: int) -> None:
    said = [(ExchangeKind.TLS_DATA, leg_ms + more) for more in MORE_MS[:3]]
    needed = LEAST_SPLIT[GroupSide.SERVER]
    assert split(clients((leg_ms,) * count, said)) > needed
    assert split(clients((leg_ms,) * count, (), leg_ms + 0.6)) > needed


def test_steady_handshakes_prove_no_more_than_others_of_slow_machines() -> None:
    """A machine whose keys take 20 to 70 ms is late all the same."""
    found = judged(clients((60.0,) * 4), at_client=False).groups
    assert 0.9 < found.split[0] < LEAST_SPLIT[GroupSide.SERVER]
    assert found.split[0] + found.late[0] + found.fleet[0] > 0.99


@pytest.mark.parametrize("own_ms", [(150.0,), (150.0,) * 4, OWN_MS])
@pytest.mark.parametrize("leg_ms", [15.0, 30.0, 60.0])
@pytest.mark.parametrize("closes", [False, True])
def test_slow_keys_behind_a_leg_leave_it_open(own_ms: Sequence[float], leg_ms: float, *, closes: bool) -> None:
    """What applications say takes the leg, or as long as programs work, and handshakes take longer: neither clears the
    network, and neither accuses it, however many clients there are."""
    said = [(ExchangeKind.TLS_DATA, leg_ms + more) for more in MORE_MS[:3]]
    made = clients([own + leg_ms for own in own_ms], said, leg_ms + 0.6 if closes else None)
    (group,) = results(made, at_client=False)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert 0.75 < split(made) < 0.92


def servers(hosts: Sequence[str], near_ms: float, http_ms: float | None = None) -> list[Talk]:
    """Controllers, printers and cameras, whose answers in TLS handshakes take each its own time."""
    return [
        Talk(
            host, [(ExchangeKind.TLS_HELLO, own + more), (ExchangeKind.TLS_DATA, 1.0 if http_ms is None else http_ms)],
            round_trip_ms=near_ms, port=443,
        )
        for host, own in zip(hosts, OWN_MS, strict=True)
        for more in MORE_MS
    ]  # fmt: skip


@pytest.mark.parametrize("near_ms", [0.4, 12.0])
@pytest.mark.parametrize("http_ms", [None, 44.0])
@pytest.mark.parametrize("hosts", [[f"192.0.2.{number}" for number in range(1, 7)], [f"10.1.{n}.9" for n in range(6)]])
def test_devices_of_one_organisation_that_compute_keys_are_no_split(
    hosts: Sequence[str], http_ms: float | None, near_ms: float
) -> None:
    found = judged(servers(hosts, near_ms, http_ms), at_client=True).groups
    assert found.split[0] + found.site[0] < LEAST_SPLIT[GroupSide.CLIENT]


def test_devices_beside_their_client_may_have_addresses_of_any_prefix() -> None:
    assert judged(servers(FAR, 0.4), at_client=True).groups.split[0] < LEAST_SPLIT[GroupSide.CLIENT]
