"""Addresses that several clients share: a NAT's, or those of relays with an address of their own."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.hypotheses import posteriors, side_evidence
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged, of_library_and_program

ADDRESS = "192.0.2.1"
NEEDED = LEAST_SPLIT[GroupSide.SERVER]
MORE_MS = (0.2, 0.9, 0.4, 1.3, 0.6, 1.0)


def own_ms(connections: int) -> Sequence[float]:
    return [float(each) for each in np.geomspace(10, 90, connections)]


def talks(kind: ExchangeKind | None, connections: int, *, closes_late: bool = False) -> list[Talk]:
    """Connections from one address, each of which takes a time of its own before whatever it says: of this kind, or in
    TLS handshakes and behind them."""
    made = []
    for late_ms in own_ms(connections):
        took_ms = [late_ms + more for more in MORE_MS]
        said = of_library_and_program(took_ms) if kind is None else [(kind, each) for each in took_ms]
        made.append(Talk(ADDRESS, said, round_trip_ms=1.0, close_ms=late_ms + 0.7 if closes_late else None))
    return made


def split(of: Sequence[Talk], *, pings: Sequence[tuple[str, float]] = ()) -> float:
    return float(judged(of, at_client=False, pings=pings).groups.split[0])


@pytest.mark.parametrize("connections", [3, 6, 30])
def test_clients_at_many_distances_behind_one_address_are_behind_a_relay(
    connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What libraries answer is late by one leg in each connection, by another in the next."""
    of = talks(None, connections)
    found = split(of)
    assert found > NEEDED
    monkeypatch.setattr(posteriors, "_CROWDS", 1e-300)
    assert 1 - split(of) > 2 * (1 - found)


@pytest.mark.parametrize("kind", [ExchangeKind.COMMAND, ExchangeKind.TURN, ExchangeKind.HTTP_NEXT_REQUEST])
@pytest.mark.parametrize("connections", [6, 12, 30])
def test_programs_behind_one_address_that_each_take_their_time_are_no_split(
    kind: ExchangeKind, connections: int
) -> None:
    """Nor is it ever proved that they are none: the same lines would cross the legs of a relay."""
    assert 0.5 < split(talks(kind, connections, closes_late=True)) < NEEDED


def test_one_client_behind_its_own_address_is_judged_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = [Talk(ADDRESS, of_library_and_program([40.0 + more for more in MORE_MS])) for _ in range(8)]
    found = split(alike)
    monkeypatch.setattr(posteriors, "_CROWDS", 1e-300)
    assert found == pytest.approx(split(alike), abs=0.003)


def test_references_are_an_address_own_and_say_nothing_of_crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    of, pings = talks(None, 6), [(ADDRESS, 1.0)] * 3
    found = split(of, pings=pings)
    monkeypatch.setattr(posteriors, "_CROWDS", 1e-300)
    assert found == split(of, pings=pings)


def test_of_very_many_connections_none_is_weighed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    of = talks(None, 6)
    monkeypatch.setattr(side_evidence, "_MOST_CONNECTIONS", 5)
    few = split(of)
    monkeypatch.setattr(posteriors, "_CROWDS", 1e-300)
    assert few == split(of) < NEEDED


def test_the_order_of_connections_and_other_groups_change_nothing() -> None:
    of = talks(None, 6)
    others = [Talk("203.0.113.9", of_library_and_program([30.0 + more for more in MORE_MS])) for _ in range(4)]
    shuffled = [*of, *others]
    random.Random(3).shuffle(shuffled)
    found = judged(shuffled, at_client=False)
    (place,) = (number for number, name in enumerate(found.places.network) if name.startswith("192.0.2."))
    assert float(found.groups.split[place]) == pytest.approx(split(of), abs=1e-9)


#: Connections of a few machines behind one address, each late in all that it says and closes by a time of its own, a
#: person's pause beside (ms): one looks for work now and then, the processors of others are busy now and then.
LATE_ANEW_MS = (5.6, 85.0, 7.3, 11.7, 8.9, 84.6, 6.4, 10.9, 85.6, 5.2, 11.3, 7.9)


def late_anew(connections: int) -> list[Talk]:
    return [
        Talk(
            ADDRESS,
            [
                *of_library_and_program([late_ms + more for more in MORE_MS]),
                (ExchangeKind.TLS_DATA, 4_100.0 + 37 * place),
            ],
            round_trip_ms=1.0,
            close_ms=late_ms + 0.7,
        )
        for place, late_ms in enumerate((LATE_ANEW_MS * 3)[:connections])
    ]


@pytest.mark.parametrize("connections", [12, 36])
def test_hosts_may_be_late_anew_in_each_connection_as_legs_may_be(
    connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the split is granted, a leg for each connection, the host is granted as well: however many there are, the
    odds are those beforehand."""
    found = judged(late_anew(connections), at_client=False).groups
    assert found.late[0] > 0.002
    monkeypatch.setattr(posteriors, "_OWN_TIMES", 1e-300)
    assert judged(late_anew(connections), at_client=False).groups.late[0] < found.late[0] / 10


def test_more_connections_prove_no_more_than_few() -> None:
    few, many = (judged(late_anew(connections), at_client=False).groups.late[0] for connections in (12, 36))
    assert many == pytest.approx(few, rel=0.2)
