"""What a host's round trips on one port say of a leg behind another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.likelihoods.references.port_references import (
    PortReferences,
    farther_ports,
    port_references,
)
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.networks import NetworkTable, places
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, results, vantage

CLIENTS = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
HTTP, TLS = ExchangeKind.HTTP_REQUEST, ExchangeKind.TLS_HELLO
HOSTS = ("192.0.2.1", "198.51.100.2", "203.0.113.3")
LEGS_MS = (30.0, 70.0, 130.0)


def of_ports(talks: Sequence[Talk]) -> dict[tuple[int, str], tuple[np.ndarray, float, float]]:
    """What is found, by port and host: nats by leg, of the share of such boxes, and the other port's round trip."""
    made = vantage(talks, at_client=True)
    where = places(made.columns, at_client=True, table=NetworkTable())
    found = port_references(exchange_timing(made.exchanges, where, at_client=True), where, GroupSide.CLIENT)
    keys = zip(where.port[where.member_group].tolist(), where.member_address, strict=True)
    return dict(zip(keys, zip(found.nats, found.share_nats, found.round_trip_s, strict=True), strict=True))


def box_for_http(late_ms: float = 0.4, connections: int = 4) -> list[Talk]:
    """A box 20 ms away that splits port 80; port 443 of the same hosts is as far as they are."""
    made = []
    for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True):
        made += [Talk(host, [(HTTP, leg_ms + late_ms)], 20.0)] * connections
        made += [Talk(host, [(TLS, late_ms)], 20.0 + leg_ms, port=443)] * connections
    return made


def test_another_port_tells_each_hosts_leg() -> None:
    found = of_ports(box_for_http())
    for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True):
        nats, share_nats, other_s = found[80, host]
        assert HIDDEN_S[nats.argmax()] == pytest.approx(leg_ms / 1e3, rel=0.05)
        assert nats.max() > 3
        assert share_nats == pytest.approx(np.log(0.3))
        assert other_s == pytest.approx((20 + leg_ms) / 1e3)
        nothing, none, unknown_s = found[443, host]  # the nearer port is no reference for the farther one
        assert not nothing.any()
        assert none == -np.inf
        assert np.isnan(unknown_s)


@given(st.floats(0.0, 1.0), st.integers(1, 6))
def test_ports_that_are_equally_far_say_nothing(away_ms: float, connections: int) -> None:
    talks = [Talk(host, (), 20.0 + port * away_ms / 443, port=port) for host in HOSTS for port in (80, 443)]
    assert all(
        not nats.any() and share_nats == -np.inf for nats, share_nats, _ in of_ports(talks * connections).values()
    )


def test_one_handshake_over_a_path_that_varies_says_less_than_many_over_a_steady_one() -> None:
    """A radio wakes up for the first connection."""

    def said(varies_ms: float, connections: int) -> float:
        near = Talk(HOSTS[0], (), 20.0, middle_ms=20.0 + varies_ms)
        far = Talk(HOSTS[0], (), 90.0, middle_ms=90.0 + varies_ms, port=443)
        return float(of_ports([near] * 6 + [far] * connections)[80, HOSTS[0]][0].max())

    assert said(0.1, 6) > said(0.1, 1) + 1
    assert said(0.1, 1) > said(15.0, 1) + 1


def test_a_connection_whose_handshake_nobody_answers_times_nothing() -> None:
    near, far = Talk(HOSTS[0], (), 20.0), Talk(HOSTS[0], (), 90.0, port=443)
    unanswered = [Talk(HOSTS[0], port=443, unanswered=True)] * 20
    one, beside, several = (
        of_ports([near] * 6 + more)[80, HOSTS[0]][0] for more in ([far], [far, *unanswered], [far] * 6)
    )
    assert beside == pytest.approx(one)
    assert several.max() > one.max() + 1


def test_the_best_of_several_ports_is_the_reference_and_ports_of_other_networks_are_none() -> None:
    more = [Talk(host, (), 20.2, port=22) for host in HOSTS]  # split as well
    found = of_ports(box_for_http() + more)
    for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True):
        nats, share_nats, other_s = found[80, host]
        assert other_s == pytest.approx((20 + leg_ms) / 1e3)
        assert share_nats == pytest.approx(np.log(0.3 / 2))
        assert nats.max() > 3
    elsewhere = [Talk(HOSTS[0], (), 90.0, port=443, near="10.9.0.1"), Talk(HOSTS[0], (), 20.0)]
    assert all(share_nats == -np.inf for _, share_nats, _ in of_ports(elsewhere).values())


def test_parts_are_those_of_these_members() -> None:
    found = PortReferences(np.eye(3, len(HIDDEN_S)), np.asarray([-1.0, -1.0, -np.inf]), np.asarray([0.1, 0.2, np.nan]))
    assert found.of(np.asarray([2, 0])).share_nats.tolist() == [-np.inf, -1.0]
    assert found.by_group(np.asarray([0, 0, 1]), 3).tolist() == [-1.0, -np.inf, -np.inf]


def verdicts(talks: Sequence[Talk], *, at_client: bool = True) -> dict[int, tuple[Verdict, float, set[str]]]:
    return {
        group.port: (
            group.verdict,
            1 - group.probability[Verdict.REGULAR],
            {each.finding for each in group.evidence},
        )
        for group in results(talks, at_client=at_client)
    }  # fmt: skip


def test_a_box_for_one_port_is_found_by_another() -> None:
    """Two answers of each host alone are too few."""
    few = box_for_http(connections=2)
    alone = verdicts([talk for talk in few if talk.port == 80])[80]
    beside = verdicts(few)
    assert alone[1] < beside[80][1]
    assert beside[80][0] is Verdict.SPLIT_TCP
    assert "other-port-is-longer" in beside[80][2]
    assert beside[443][0] is not Verdict.SPLIT_TCP
    assert "other-port-is-longer" not in beside[443][2]


@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
@pytest.mark.parametrize("apart_ms", [0.0, 3.0])
@pytest.mark.parametrize("late_ms", [0.5, 12.0])
def test_a_port_that_one_cause_leads_elsewhere_accuses_no_other(hosts: int, apart_ms: float, late_ms: float) -> None:
    """An office's NAT forwards port 22 of all addresses, or this network sends it through a tunnel, 80 ms around."""
    made = []
    for place in range(hosts):
        host, away_ms = f"198.51.{place}.1", 20.0 + apart_ms * place
        made += [Talk(host, [(TLS, 2.0), (ExchangeKind.TURN, late_ms)], away_ms, port=443)] * 4
        made += [Talk(host, [(ExchangeKind.COMMAND, 4.0)], away_ms + 80, port=22)] * 4
    assert verdicts(made)[443][0] is not Verdict.SPLIT_TCP


def test_a_port_that_was_held_up_accuses_no_port_that_answers_in_time() -> None:
    talks = [Talk(host, [(HTTP, 0.4)] * 4, ms) for host, ms in zip(HOSTS, (20.0, 60.0, 120.0), strict=True)] * 4
    held_up = [Talk(host, (), ms + 60, port=443) for host, ms in zip(HOSTS, (20.0, 60.0, 120.0), strict=True)]
    assert verdicts(talks + held_up)[80][0] is Verdict.REGULAR


def at_server(leg_ms: Sequence[float], *, near_ms: float = 3.0, mail_ms: float | None = None) -> list[Talk]:
    """A client whose answers on port 443 are late by these times over a steady path; mail comes from `mail_ms` away."""
    both = [[(TLS, each), (ExchangeKind.TLS_DATA, each)] for each in leg_ms]
    made = [Talk(HOSTS[0], each, near_ms, port=443, middle_ms=near_ms + 0.1) for each in both]
    if mail_ms is not None:
        made += [Talk(HOSTS[0], [(ExchangeKind.COMMAND, 0.5)] * 2, mail_ms, port=25, middle_ms=mail_ms + 0.5)] * 4
    return made


def farther(talks: Sequence[Talk]) -> dict[int, bool]:
    made = vantage(talks, at_client=False)
    where = places(made.columns, at_client=False, table=NetworkTable())
    found = farther_ports(exchange_timing(made.exchanges, where, at_client=False), where)
    return dict(zip(where.port.tolist(), found.tolist(), strict=True))


def test_ports_are_farther_by_more_than_the_path_varies() -> None:
    assert farther(at_server([25.0] * 4, mail_ms=28.0)) == {25: True, 443: False}
    assert farther(at_server([25.0] * 4, mail_ms=5.0)) == {25: False, 443: False}  # below the shortest leg
    radio = [Talk(HOSTS[0], (), 3.0, port=443), Talk(HOSTS[0], (), 28.0, port=25, middle_ms=48.0)]
    assert farther(radio * 3) == {25: False, 443: False}  # too few handshakes to tell how they vary
    crowd = [Talk(host, (), 5.0 * place, port=port) for place, host in enumerate(HOSTS, 1) for port in (80, 443)]
    assert farther(crowd * 4) == {80: False, 443: False}  # clients at distances of their own


def test_a_box_for_one_port_is_found_at_the_server_by_where_clients_of_another_port_are() -> None:
    late_ms = [25.5, 31.0, 27.0, 44.0, 26.0, 36.0]
    alone = verdicts(at_server(late_ms), at_client=False)[443]
    beside = verdicts(at_server(late_ms, mail_ms=28.0), at_client=False)
    assert alone[0] is Verdict.INCONCLUSIVE
    assert beside[443][0] is Verdict.SPLIT_TCP
    assert "other-port-is-longer" in beside[443][2]
    assert beside[25][0] is Verdict.REGULAR
    equally = verdicts(at_server(late_ms, mail_ms=3.0), at_client=False)
    assert equally[443][1] < beside[443][1]


@pytest.mark.parametrize("mail_ms", [13.0, 28.0, 80.0])
@pytest.mark.parametrize("late_ms", [[0.4] * 8, [12.0, 21.0, 15.0, 18.0, 30.0, 14.0]])
def test_a_nat_of_two_clients_accuses_no_port(mail_ms: float, late_ms: list[float]) -> None:
    """One of them is near and answers at once, or takes its time; the other one, farther away, sends mail."""
    verdict, split, _ = verdicts(at_server(late_ms, mail_ms=mail_ms), at_client=False)[443]
    assert verdict is not Verdict.SPLIT_TCP
    if max(late_ms) < 1:
        assert split < 0.05


def test_a_farther_port_whose_client_takes_its_time_says_nothing_of_a_nearer_one() -> None:
    """Judged as one path, both would hardly have one leg."""

    def odds(late_ms: float) -> float:
        far = [Talk(HOSTS[0], [(HTTP, late_ms)], 28.0, middle_ms=28.5)] * 3
        split = verdicts([*at_server([25.5, 31.0]), *far], at_client=False)[443][1]
        return split / (1 - split)

    assert odds(10.0) > odds(1.0) / 2


@pytest.mark.parametrize("beyond_ms", [20.0, 80.0])
def test_a_queue_in_which_one_port_of_all_clients_waits_accuses_no_other_port(beyond_ms: float) -> None:
    """Its clients take their time; one cause delays their mail, and is none for each of them."""
    late_ms = [10.4, 57.0, 23.0, 31.5, 48.0, 17.0, 39.0, 12.5, 28.0, 53.0, 44.5, 20.0]
    made = []
    for place, host in enumerate(CLIENTS):
        near_ms = 10.0 + 3.0 * place
        own = late_ms[place * 4 :] + late_ms[: place * 4]
        for first in range(0, len(own), 2):
            answers = [(ExchangeKind.COMMAND, each) for each in (*own[first : first + 2], 60.0 - own[first])]
            made.append(Talk(host, answers, near_ms, port=5432, middle_ms=near_ms + 0.3))
        far_ms = near_ms + beyond_ms
        made += [Talk(host, [(ExchangeKind.COMMAND, 0.5)] * 2, far_ms, port=25, middle_ms=far_ms + 0.5)] * 2
    assert verdicts(made, at_client=False)[5432][0] is not Verdict.SPLIT_TCP


@pytest.mark.parametrize("clients", [1, 3])
def test_a_client_that_is_as_late_on_the_farther_port_is_late_by_itself(clients: int) -> None:
    """Behind a leg its answers would be later there by what the other port is farther away, which a NAT may explain."""
    late_ms = [25.5, 31.0, 27.0, 44.0, 26.0, 36.0, 61.0, 29.5]
    made = []
    for place, host in enumerate(CLIENTS[:clients]):
        for port, near_ms in ((5432, 10.0 + place), (5672, 10.0 + place), (6379, 35.0 + place)):
            made += [
                Talk(host, [(ExchangeKind.COMMAND, each)] * 2, near_ms, port=port, middle_ms=near_ms + 0.3)
                for each in late_ms
            ]
    assert all(verdict is not Verdict.SPLIT_TCP for verdict, _, _ in verdicts(made, at_client=False).values())


def test_tls_handshakes_that_end_in_the_box_make_no_client_late_by_itself() -> None:
    made = [
        Talk(HOSTS[0], [(TLS, 0.5), (TLS, 0.6), (ExchangeKind.TLS_DATA, late_ms)], 3.0, port=443, middle_ms=3.1)
        for late_ms in (25.5, 31.0, 27.0, 44.0, 26.0, 36.0)
    ]
    made += [Talk(HOSTS[0], [(ExchangeKind.COMMAND, 2.0)] * 2, 28.0, port=25, middle_ms=28.5)] * 4
    assert port_references_at_server(made)[443] > 0.0


def port_references_at_server(talks: Sequence[Talk]) -> dict[int, float]:
    """By port, what the best other port says at most for a leg (nats)."""
    made = vantage(talks, at_client=False)
    where = places(made.columns, at_client=False, table=NetworkTable())
    found = port_references(exchange_timing(made.exchanges, where, at_client=False), where, GroupSide.SERVER)
    return dict(zip(where.port[where.member_group].tolist(), found.nats.max(axis=1).tolist(), strict=True))
