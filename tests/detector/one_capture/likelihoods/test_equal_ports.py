"""Ports that are end to end by what they answer, and as near as a port that looks split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.exchange_timing import exchange_timing
from detector.one_capture.likelihoods.references.equal_ports import equal_port_nats
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.networks import NetworkTable, places
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupResult, GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, results, vantage

SERVERS = ("192.0.2.1", "198.51.100.1", "203.0.113.1")
AT_ONCE_MS, CALLS_MS = (0.6, 1.1, 0.8, 1.4), (14.0, 30.0, 55.0)
HTTP, COMMAND = ExchangeKind.HTTP_REQUEST, ExchangeKind.COMMAND


def web_servers(mail_away_ms: float = 0.1, mail_late_ms: Sequence[float] = (0.0, 0.0, 0.0)) -> list[Talk]:
    """Servers 20 ms away whose pages take a call of a database, each of another one; and whose mail comes so late, from
    so much farther away, if less than that at once."""
    made = []
    for server, calls, late in zip(SERVERS, CALLS_MS, mail_late_ms, strict=True):
        pages, letters = ([(kind, each + beyond) for each in AT_ONCE_MS]
                          for kind, beyond in ((HTTP, calls), (COMMAND, late)))  # fmt: skip
        away = mail_away_ms if mail_away_ms < 1 else calls
        made += [Talk(server, pages, round_trip_ms=20.0, middle_ms=20.8, port=80)] * 8
        made += [Talk(server, letters, round_trip_ms=20.0 + away, middle_ms=20.8 + away, port=143)] * 8
    return made


def on_port(port: int, talks: Sequence[Talk], *, at_client: bool = True) -> GroupResult:
    (found,) = [group for group in results(talks, at_client=at_client) if group.port == port]
    return found


def test_pages_of_databases_beside_mail_at_once_are_no_split() -> None:
    """Alone little tells them from a box that takes HTTP, 20 ms away, before three servers."""
    alone = on_port(80, [talk for talk in web_servers() if talk.port == 80])
    beside = on_port(80, web_servers())
    assert alone.probability[Verdict.REGULAR] < 0.15
    assert beside.verdict is Verdict.INCONCLUSIVE
    assert beside.probability[Verdict.REGULAR] > 3 * alone.probability[Verdict.REGULAR]


def test_a_box_for_one_port_is_nearer_than_the_others_and_found() -> None:
    """Mail goes to the servers themselves, by the leg farther away."""
    assert on_port(80, web_servers(mail_away_ms=30.0)).verdict is Verdict.SPLIT_TCP


def test_a_port_that_is_late_as_well_says_nothing_by_being_as_near() -> None:
    assert on_port(80, web_servers(mail_late_ms=CALLS_MS)).probability[Verdict.REGULAR] < 0.15


@pytest.mark.parametrize("seconds", [3, 12])
def test_a_client_that_is_late_on_one_port_is_as_near_on_another(seconds: int) -> None:
    """At the server's side: a program takes its time on one port, and another one answers at once."""
    late = [(ExchangeKind.TLS_DATA, 12.0 + each) for each in (0.0, 7.0, 3.0, 11.0)] * 2
    prompt = [(ExchangeKind.TLS_FINISHED, 0.8), *((ExchangeKind.TLS_DATA, each) for each in AT_ONCE_MS)]
    made = [Talk("192.0.2.9", late, round_trip_ms=40.0, middle_ms=41.0, port=443)] * seconds
    alone = on_port(443, made, at_client=False).probability[Verdict.REGULAR]
    beside = [*made, *[Talk("192.0.2.9", prompt, round_trip_ms=40.1, middle_ms=41.0, port=8443)] * seconds]
    assert on_port(443, beside, at_client=False).probability[Verdict.REGULAR] > alone


def nats(leg_ms: float, other_split: float, mail_ms: float) -> float:
    """What mail so far away says against a split of pages with such a leg."""
    ports = ((HTTP, 20.0, 80), (COMMAND, mail_ms, 143))
    talks = [
        Talk(server, [(kind, 0.5)] * 4, round_trip_ms=near_ms, middle_ms=near_ms + 0.8, port=port)
        for server in SERVERS
        for kind, near_ms, port in ports
    ]
    made = vantage(talks * 4, at_client=True)
    where = places(made.columns, at_client=True, table=NetworkTable())
    timing = exchange_timing(made.exchanges, where, at_client=True, opened_ns=None)
    split = np.where(where.port == 80, 0.99, other_split)
    leg = np.where(np.argmin(np.abs(HIDDEN_S - leg_ms / 1e3)) == np.arange(len(HIDDEN_S)), 0.0, -1e3)
    legs = np.tile(leg, (len(where.member_group), 1))
    return float(equal_port_nats(timing, where, GroupSide.CLIENT, split, legs, 0.05)[where.port == 80][0])


@given(st.floats(4.0, 500.0), st.floats(1e-6, 1 - 1e-6), st.floats(15.0, 120.0))
def test_equal_ports_never_speak_for_a_split_and_prove_no_more_than_is_assumed(
    leg_ms: float, other_split: float, mail_ms: float
) -> None:
    assert np.log(0.1) - 1e-9 <= nats(leg_ms, other_split, mail_ms) <= 1e-9


@pytest.mark.parametrize(
    ("leg_ms", "other_split", "mail_ms", "least", "most"),
    [
        (40.0, 1e-4, 20.0, np.log(0.1), -2.0),  # as near, and no split
        (40.0, 1e-4, 60.0, -0.2, 0.0),  # by the leg farther away
        (40.0, 0.9, 20.0, 0.0, 0.0),  # split as well
    ],
)
def test_what_equal_ports_say(leg_ms: float, other_split: float, mail_ms: float, least: float, most: float) -> None:
    assert least - 1e-9 <= nats(leg_ms, other_split, mail_ms) <= most + 1e-9
