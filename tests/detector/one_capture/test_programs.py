"""Programs that compute for as long, and as steadily, before all that they say as a hidden leg would take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict
from tests.detector.one_capture.made_vantages import Talk, judged, of_library_and_program, results, together_and_alone

STEADY_MS = (30.2, 30.9, 30.4, 31.3, 30.6, 31.0)
LATE_IN_TLS = of_library_and_program(STEADY_MS)
SERVERS = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1")
OF_ONE_PREFIX = ("192.0.2.1", "192.0.2.7", "192.0.2.30", "192.0.2.254")


def of_clients(
    kind: ExchangeKind, *, clients: int = 1, ports: tuple[int, ...] = (5432,), closes_ms: float | None = 30.7
) -> float:
    """The most probable split where clients take so long before whatever they say to a server, as often as anybody
    counts."""
    talks = [
        Talk(f"192.0.2.{1 + client}", [(kind, late_ms) for late_ms in STEADY_MS], port=port, close_ms=closes_ms)
        for client in range(clients)
        for port in ports
        for _ in range(20)
    ]
    return float(judged(talks, at_client=False).groups.split.max())


@pytest.mark.parametrize("kind", [ExchangeKind.COMMAND, ExchangeKind.TURN, ExchangeKind.HTTP_NEXT_REQUEST])
@pytest.mark.parametrize("closes_ms", [None, 0.3, 30.7])
def test_no_number_of_what_programs_say_is_a_split(kind: ExchangeKind, closes_ms: float | None) -> None:
    assert of_clients(kind, closes_ms=closes_ms) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize(("clients", "ports"), [(4, (5432,)), (1, (5432, 6379)), (3, (5432, 6379, 80))])
def test_no_number_of_clients_and_ports_of_a_program_is_a_split(clients: int, ports: tuple[int, ...]) -> None:
    assert of_clients(ExchangeKind.TURN, clients=clients, ports=ports) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize("work_ms", [10.0, 25.0, 60.0])
@pytest.mark.parametrize("closing_late", [True, False])
def test_programs_on_busy_machines_are_no_split(work_ms: float, closing_late: bool) -> None:
    """What else runs there delays each answer by a time of its own, so that they vary as legs of radio links do."""
    random = np.random.default_rng(1)
    taken_ms = work_ms + random.exponential(20.0, (20, 7))
    talks = [
        Talk("192.0.2.1", [(ExchangeKind.TURN, each) for each in says], close_ms=close if closing_late else None)
        for *says, close in taken_ms.tolist()
    ]
    assert float(judged(talks, at_client=False).groups.split[0]) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize("clients", [2, 6, 20])
def test_machines_that_each_take_a_time_of_their_own_are_no_split_by_all_their_closes(clients: int) -> None:
    """One program runs on all, so that all compute before they close, or none does."""
    talks = [
        Talk(f"192.0.2.{1 + client}", [(ExchangeKind.COMMAND, own * each) for each in STEADY_MS], close_ms=own * 30.7)
        for client, own in enumerate(np.geomspace(0.6, 1.6, clients).tolist())
        for _ in range(6)
    ]
    assert float(judged(talks, at_client=False).groups.split[0]) < LEAST_SPLIT[GroupSide.SERVER]


def test_what_libraries_answer_as_late_shows_a_leg() -> None:
    assert of_clients(ExchangeKind.TLS_FINISHED) > LEAST_SPLIT[GroupSide.SERVER]


def talks_of(servers: Sequence[str], near_ms: float, kind: ExchangeKind | None) -> list[Talk]:
    """Connections with servers at one distance which each take a time of their own before answers of this kind, or in
    TLS handshakes as well as behind them."""
    return [
        Talk(
            server,
            [(each if kind is None else kind, own_ms + late_ms - 30.0) for each, late_ms in LATE_IN_TLS],
            round_trip_ms=near_ms,
        )
        for server, own_ms in zip(servers, (12.0, 30.0, 55.0, 80.0), strict=True)
        for _ in range(6)
    ]


def of_servers(near_ms: float, kind: ExchangeKind | None = ExchangeKind.HTTP_REQUEST) -> float:
    """The probability of a split where servers at one distance each take a time of their own."""
    return float(judged(talks_of(SERVERS, near_ms, kind), at_client=True).groups.split[0])


def test_services_of_one_site_that_take_their_time_are_no_split() -> None:
    assert of_servers(0.3) < LEAST_SPLIT[GroupSide.CLIENT]
    assert of_servers(0.3, None) > LEAST_SPLIT[GroupSide.CLIENT]


@pytest.mark.parametrize("servers", [2, 3, 4])
@pytest.mark.parametrize("kind", [ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND, ExchangeKind.TURN])
def test_far_servers_at_one_place_may_be_one_operators_programs(kind: ExchangeKind, servers: int) -> None:
    """Services in one region of a cloud have addresses of any prefix."""
    talks = [talk for talk in talks_of(SERVERS, 20.0, kind) if talk.host in SERVERS[:servers]]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert group.probability[Verdict.REGULAR] < 0.5


def test_libraries_that_are_as_late_at_any_distance_show_a_leg() -> None:
    assert of_servers(20.0, None) > LEAST_SPLIT[GroupSide.CLIENT]


@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("kind", [ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND, ExchangeKind.TURN])
def test_far_servers_of_one_prefix_are_one_operators_programs(kind: ExchangeKind, servers: int) -> None:
    """Controllers of one plant, exporters of one cluster: each takes its time, all by one cause."""
    talks = [talk for talk in talks_of(OF_ONE_PREFIX, 20.0, kind) if talk.host in OF_ONE_PREFIX[:servers]]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE


def test_private_addresses_are_one_organisations_programs() -> None:
    """Controllers of one plant, each machine in a network of its own behind one router."""
    private = [f"10.1.{number}.10" for number in range(4)]
    (group,) = results(talks_of(private, 20.0, ExchangeKind.TURN), at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    (mixed,) = results(talks_of([*private[:2], *SERVERS[:2]], 20.0, ExchangeKind.TURN), at_client=True)
    assert mixed.probability[Verdict.REGULAR] < group.probability[Verdict.REGULAR]


@pytest.mark.parametrize("kind", [ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND])
@pytest.mark.parametrize("servers", [30, 100])
def test_many_servers_of_one_prefix_tell_their_programs_from_no_split_either(kind: ExchangeKind, servers: int) -> None:
    """What is alike in both must not add up to a network without a split."""
    talks = [
        Talk(f"192.0.2.{1 + server}", [(kind, own_ms + late_ms - 30.0) for late_ms in STEADY_MS])
        for server, own_ms in enumerate(np.geomspace(12.0, 80.0, servers).tolist())
        for _ in range(6)
    ]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert group.probability[Verdict.REGULAR] < 0.75


def test_what_libraries_of_one_prefix_answer_late_crosses_a_leg_in_the_network_or_inside_their_site() -> None:
    (group,) = results(talks_of(OF_ONE_PREFIX, 20.0, None), at_client=True)
    assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, None)
    assert "These servers alone do not show whether" in group.reason


@pytest.mark.parametrize("near_ms", [0.5, 20.0])
def test_what_programs_take_puts_no_connection_behind_a_leg_of_its_own_site(near_ms: float) -> None:
    """A connection is no surer than both its group and itself."""
    found = judged(talks_of(OF_ONE_PREFIX, near_ms, ExchangeKind.HTTP_REQUEST), at_client=True)
    together, alone = together_and_alone(found)
    of_group = float(found.groups.split[0] + found.groups.site[0])
    assert (together.classes.split <= np.maximum(of_group, alone.classes.split) + 0.05).all()


def test_no_reason_says_that_servers_of_two_networks_have_addresses_of_one_prefix() -> None:
    """Two sites may each have a front of their own."""
    talks = [
        Talk(server, of_library_and_program([own_ms + late_ms - 30.0 for late_ms in STEADY_MS]))
        for server, own_ms in zip(SERVERS[:2], (40.0, 80.0), strict=True)
        for _ in range(20)
    ]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.SPLIT_TCP
    assert "prefix" not in group.reason


def test_what_pings_of_one_prefix_cross_as_well_lies_in_the_network() -> None:
    """A front answers pings itself."""
    pings = [(server, 20.0 + own_ms) for server, own_ms in zip(OF_ONE_PREFIX, (12.0, 30.0, 55.0, 80.0), strict=True)]
    talks = talks_of(OF_ONE_PREFIX, 20.0, None)
    (group,) = results(talks, at_client=True, pings=pings)
    assert (group.verdict, group.where) == (Verdict.SPLIT_TCP, SplitPlace.NETWORK)


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_services_that_hold_some_answers_and_call_another_one_for_the_rest_are_no_cache_in_the_network(
    servers: int,
) -> None:
    """Each answer is at once or as late as that other service, always by the same."""
    answers_ms = (1.2, 39.4, 40.1, 2.6, 40.8, 1.9, 39.8, 41.2, 2.2, 40.3)
    talks = [
        Talk(server, [(ExchangeKind.HTTP_REQUEST, late_ms) for late_ms in answers_ms], round_trip_ms=0.3, middle_ms=0.4)
        for server in SERVERS[:servers]
        for _ in range(10)
    ]
    assert float(judged(talks, at_client=True).groups.split[0]) < LEAST_SPLIT[GroupSide.CLIENT]
