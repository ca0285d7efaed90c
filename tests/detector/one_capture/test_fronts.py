"""What a leg inside the server's own site explains, beside one in the network."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.likelihoods.priors import PRIORS
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, SplitPlace, Verdict
from tests.detector.one_capture.made_vantages import Talk, judged, results

HOST, OTHERS = "192.0.2.1", ("192.0.2.1", "198.51.100.1", "203.0.113.1")

#: What answers take beyond their leg: as over a wire, over a radio link, and over a satellite that grants its uplink.
STEADY_MS, RADIO_MS, GRANTED_MS = (0.2, 0.5, 0.9, 0.4, 0.7), (0.0, 9.0, 4.0, 15.0, 6.0), (8.0, 40.0, 2.0, 55.0, 23.0)


def behind(leg_ms: float, beyond_ms: tuple[float, ...], *hosts: str) -> list[Talk]:
    """Talks of hosts, all of whose answers are late by a leg and something more."""
    kinds = (ExchangeKind.TLS_HELLO, ExchangeKind.HTTP_REQUEST, ExchangeKind.TLS_DATA)
    return [Talk(host, [(kind, leg_ms + more) for kind in kinds], 20.0) for host in hosts for more in beyond_ms * 2]


@pytest.mark.parametrize("beyond_ms", [STEADY_MS, RADIO_MS, GRANTED_MS])
@pytest.mark.parametrize("leg_ms", [40.0, 90.0])
def test_one_host_alone_never_accuses_the_network(leg_ms: float, beyond_ms: tuple[float, ...]) -> None:
    """However its answers vary: as a split point's do, a front's of its own would."""
    (group,) = results(behind(leg_ms, beyond_ms, HOST), at_client=True)
    assert group.where is not SplitPlace.NETWORK
    assert judged(behind(leg_ms, beyond_ms, HOST), at_client=True).groups.split[0] < LEAST_SPLIT[GroupSide.CLIENT]


def over_a_satellite(port: int) -> list[Talk]:
    """Talks of one host behind its own balancer 38 ms away: no wire varies so, but the access link does."""
    late_ms = [38.0 + 42.0 * (rank / 7) ** 2.5 for rank in range(8)]
    kinds = (ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA, ExchangeKind.TLS_DATA)
    return [
        Talk(
            HOST, [(kind, late_ms[(rank * (2 * place + 1) + place) % 8]) for place, kind in enumerate(kinds)],
            587.0, middle_ms=607.0, port=port,
        )
        for rank in list(range(8)) * 3
    ]  # fmt: skip


def test_one_host_over_an_access_link_that_varies_does_not_accuse_the_network_on_two_ports() -> None:
    for group in results(over_a_satellite(443) + over_a_satellite(8443), at_client=True):
        assert group.verdict is Verdict.SPLIT_TCP
        assert group.where is None


def test_a_second_host_that_answers_nothing_shows_no_place_either() -> None:
    """Its near end may be the same: then hosts stand at one place as often as behind one split point."""
    silent = [Talk(OTHERS[1], (), 587.0, middle_ms=607.0, port=443)] * 3
    (group,) = results(over_a_satellite(443) + silent, at_client=True)
    assert group.where is not SplitPlace.NETWORK


@pytest.mark.parametrize("beyond_ms", [STEADY_MS, RADIO_MS])
def test_of_one_host_priors_alone_tell_the_network_from_the_site(beyond_ms: tuple[float, ...]) -> None:
    prior, found = PRIORS[GroupSide.CLIENT], judged(behind(40.0, beyond_ms, HOST), at_client=True).groups
    beforehand = prior.split / ((1 - prior.split) * prior.balancer)
    assert 0.7 * beforehand < found.split[0] / found.site[0] < 1.5 * beforehand


@pytest.mark.parametrize("beyond_ms", [STEADY_MS, RADIO_MS])
def test_several_hosts_and_references_show_the_network(beyond_ms: tuple[float, ...]) -> None:
    several = [
        talk
        for leg_ms, host in zip((40.0, 70.0, 95.0), OTHERS, strict=True)
        for talk in behind(leg_ms, beyond_ms, host)
    ]
    assert results(several, at_client=True)[0].where is SplitPlace.NETWORK
    pinged = judged(behind(60.0, beyond_ms, HOST), at_client=True, pings=[(HOST, 80.0)] * 3).groups
    assert pinged.split[0] >= LEAST_SPLIT[GroupSide.CLIENT]


def test_what_speaks_neither_tls_nor_http_has_no_front_end() -> None:
    """A leg that alone its answers cross is a balancer's there; elsewhere a front end may fetch pages from afar."""
    site = [
        float(judged([Talk(host, [(kind, 60.4)]) for host in OTHERS[:2] * 4], at_client=True).groups.member_site.max())
        for kind in (ExchangeKind.COMMAND, ExchangeKind.HTTP_REQUEST)
    ]
    assert 1.5 * site[0] / (1 - site[0]) < site[1] / (1 - site[1])


def test_front_ends_take_from_what_is_prompt() -> None:
    for prior in PRIORS.values():
        of_web = np.asarray([True, False])
        every = prior.prompt(of_web) + prior.front_ends(of_web) + prior.balancer + prior.late + prior.late_application
        np.testing.assert_allclose(every, 1.0)
