"""Verdicts of a check on observations made by hand."""

from __future__ import annotations

import dataclasses
import json
from html import escape
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.check.experiment import PlaceObservation
from prober.check.experiments.documentation_addresses import NAME as DOCUMENTATION
from prober.check.experiments.documentation_addresses import DocumentationAnswer
from prober.check.experiments.hop_limits import NAME as HOP_LIMITS
from prober.check.experiments.hop_limits import TRIES, HopLimits
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.experiments.round_trips import NAME as ROUND_TRIPS
from prober.check.experiments.round_trips import compared
from prober.check.finding import Cause
from prober.check.judging import CheckVerdict, judge
from prober.check.measuring import Observations
from prober.check.probes.data_probe import DataAnswer
from prober.check.probes.distances import Distance
from prober.check.report import document, json_text, text_lines
from prober.check.targets import DOCUMENTATION_ADDRESSES, Place, Target
from reports.audit.check_page import check_page_text

SCHEMA = json.loads((Path(__file__).parents[3] / "pepscope/schemas/check-1.json").read_text(encoding="utf-8"))
FAR = 9


def answer(hops=None, acknowledged_s=0.03, *, handshake_s=0.03, gap_s=0.001, head=b"", ends_here=False):
    after_s = None if acknowledged_s is None else acknowledged_s + gap_s
    return DataAnswer(hops, handshake_s, acknowledged_s, after_s, head, ends_here, None)


ANSWERED = (answer(),)


def place(
    number=0, *, limited=(), plain=ANSWERED, beyond=FAR, handshake=FAR + 1, datagram_s=0.03, echo_s=None, error=""
):
    """A host of whose questions with so many hops `limited` says which were acknowledged."""
    tried = tuple(answer(hops, 0.03 if got else None) for hops, got in limited for _ in range(TRIES))
    routers = tuple(f"10.0.0.{hop}" for hop in range(1, beyond + 1))
    where = Place(Target(f"host{number}.example", 80, False), f"203.0.113.{number + 1}")
    distance = Distance(beyond, beyond + 1, datagram_s, routers, echo_s)
    return observed(where, distance, plain, HopLimits(handshake, handshake - 1, tried), error)


def observed(where, distance, plain, limits, error=""):
    """What the experiments measured at one place."""
    if error:
        return PlaceObservation(where, distance, error=error)
    measured: dict[str, object] = {QUESTIONS: Questions(tuple(plain)), HOP_LIMITS: limits}
    trips = compared(Questions(tuple(plain)), distance.unsplit_round_trip_s)
    return PlaceObservation(where, distance, measured | ({ROUND_TRIPS: trips} if trips else {}))


def at_documentation_addresses(*answers):
    return tuple(
        PlaceObservation(
            Place(Target(f"host{number}.example", 80, False), address),
            Distance.unknown(),
            {DOCUMENTATION: DocumentationAnswer(got)},
        )
        for number, (address, got) in enumerate(zip(DOCUMENTATION_ADDRESSES[4], answers, strict=False))
    )


SPLIT = {"limited": ((FAR - 1, True), (3, True), (2, False))}
REGULAR = {"limited": ((FAR - 1, False),)}


def judged(*places, dead=(None, None), tunnel=None):
    observations = Observations((*places, *at_documentation_addresses(*dead)))
    (found,) = judge(observations, tunnel)
    assert found.reason.endswith(".")
    written = json.loads(json_text(document([found], observations)))
    jsonschema.validate(written, SCHEMA)
    assert escape(found.reason) in check_page_text(written)
    assert any(found.verdict.value in line for line in text_lines([found], observations, 80))
    return found


def test_two_hosts_decide_where_one_does_not():
    assert judged(place(0, **SPLIT)).verdict is CheckVerdict.INCONCLUSIVE
    both = judged(place(0, **SPLIT), place(1, **SPLIT))
    assert (both.verdict, both.box_hops, both.router_before, both.hosts_split) == ("split-tcp", 3, "10.0.0.2", 2)
    assert "behind 10.0.0.2" in both.reason


def test_echo_requests_tell_hosts_apart_where_datagrams_are_not_answered():
    def told(echoes_s, acknowledged_s):
        return judged(*(
            place(number, beyond=0, datagram_s=None, echo_s=echo_s, plain=(answer(acknowledged_s=after_s),))
            for number, (echo_s, after_s) in enumerate(zip(echoes_s, acknowledged_s, strict=True))
        ))  # fmt: skip

    split = told((0.04, 0.09, 0.15), (0.01, 0.011, 0.01))
    assert split.verdict is CheckVerdict.SPLIT_TCP
    assert "echo requests take 40 to 150 ms" in split.reason
    assert told((0.04, 0.09, 0.15), (0.04, 0.09, 0.15)).verdict is CheckVerdict.INCONCLUSIVE
    assert told((None, None, None), (0.01, 0.011, 0.01)).verdict is CheckVerdict.INCONCLUSIVE


def test_one_host_decides_with_documentation_addresses():
    assert judged(place(0, **SPLIT), dead=(answer(), None)).verdict is CheckVerdict.SPLIT_TCP


def test_documentation_addresses_decide_alone_if_all_answer():
    unknown = place(0, beyond=0)
    assert judged(unknown, dead=(answer(), answer())).verdict is CheckVerdict.SPLIT_TCP
    assert judged(unknown, dead=(answer(), None)).verdict is CheckVerdict.INCONCLUSIVE


def test_handshakes_at_documentation_addresses_are_a_syn_proxys():
    found = judged(place(0, **REGULAR), place(1, **REGULAR), dead=(answer(acknowledged_s=None),) * 2)
    assert (found.verdict, found.causes) == (CheckVerdict.REGULAR, (Cause.SYN_PROXY,))
    reset = dataclasses.replace(answer(acknowledged_s=None), was_reset=True)
    found = judged(place(0, **REGULAR), place(1, **REGULAR), dead=(reset, None))
    assert (found.verdict, found.causes) == (CheckVerdict.REGULAR, ())
    assert "the connections are reset" in found.findings[-1].sentence


def test_some_hosts_split_and_others_not_is_said():
    found = judged(place(0, **SPLIT), place(1, **SPLIT), place(2, **REGULAR))
    assert (found.verdict, found.hosts_split, found.hosts_regular) == ("split-tcp", 2, 1)
    assert found.reason.endswith(". 1 other host is reached end to end.")
    found = judged(*(place(number, **(SPLIT if number < 2 else REGULAR)) for number in range(4)))
    assert found.reason.endswith(". 2 other hosts are reached end to end.")


def test_one_and_several_are_counted_as_such():
    for dead, words in (
        ((answer(), None), "Connections to 1 documentation address, at"),
        ((answer(),) * 2, "Connections to 2 documentation addresses, at"),
    ):
        assert words in judged(place(0, **SPLIT), dead=dead).reason
    assert "(" not in judged(place(0, **REGULAR)).reason
    assert "the host (2 hosts alike): none" in judged(place(0, **REGULAR), place(1, **REGULAR)).reason


def test_data_lost_once_are_neither():
    mixed = place(0, limited=())
    tries = (answer(8, None), answer(8), answer(8))
    limits = HopLimits(10, 9, tries)
    assert (limits.acknowledged_hops(), limits.lost_hops()) == (None, None)
    lossy = observed(mixed.place, mixed.distance, ANSWERED, limits)
    assert judged(lossy, lossy).verdict is CheckVerdict.INCONCLUSIVE


def test_a_box_that_takes_some_connections_is_found_and_said():
    def some(number, near):
        tries = [answer(8, None), answer(8), answer(8), *(answer(6, 0.03 if got else None) for got in near)]
        base = place(number)
        return observed(base.place, base.distance, ANSWERED, HopLimits(10, 9, tuple(tries)))

    every_second = (True, False, True, False, True, False)
    found = judged(some(0, every_second), some(1, every_second), place(2, **REGULAR))
    assert (found.verdict, found.hosts_split, found.hosts_regular) == ("split-tcp", 2, 1)
    assert found.reason.startswith("Of 12 connections to 2 hosts, whose data could cross at least 2 routers too few, 6")
    assert judged(some(0, every_second), place(2, **REGULAR)).verdict is CheckVerdict.INCONCLUSIVE
    # Another way to the host may be a router or two shorter: then none is acknowledged three routers before it.
    shorter = (False,) * 6
    assert judged(some(0, shorter), some(1, shorter)).verdict is CheckVerdict.INCONCLUSIVE


def test_what_the_hosts_own_site_does_is_not_the_networks():
    at_site = {"limited": ((FAR - 1, True), (FAR - 2, False))}
    found = judged(place(0, **at_site), place(1, **at_site))
    assert (found.verdict, found.causes) == (CheckVerdict.INCONCLUSIVE, (Cause.SERVER_SITE,))


def test_this_host_a_tunnel_and_a_portal_come_first():
    here = place(0, plain=(answer(ends_here=True),), **SPLIT)
    assert judged(here, place(1, **SPLIT)).causes == (Cause.THIS_HOST,)
    at_once = {"limited": ((FAR - 1, True), (1, True))}
    assert judged(place(0, **at_once), place(1, **at_once), tunnel="tun0").causes == (Cause.TUNNEL,)
    assert judged(place(0, **at_once), place(1, **at_once)).verdict is CheckVerdict.SPLIT_TCP
    assert judged(place(0, **SPLIT), place(1, **SPLIT), tunnel="tun0").verdict is CheckVerdict.SPLIT_TCP
    sent_away = answer(head=b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\n\r\n")
    found = judged(place(0, **SPLIT), place(1, **SPLIT), dead=(sent_away, sent_away))
    assert found.causes == (Cause.CAPTIVE_PORTAL,)
    assert "http://portal.example/" in found.reason
    unavailable = answer(head=b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
    assert judged(place(0, **SPLIT), dead=(unavailable, unavailable)).verdict is CheckVerdict.SPLIT_TCP


def test_far_and_near_hosts_that_acknowledge_after_one_time_are_split():
    hosts = [place(n, plain=(answer(acknowledged_s=0.012),), beyond=0, datagram_s=0.03 + 0.04 * n) for n in range(3)]
    assert judged(*hosts).verdict is CheckVerdict.SPLIT_TCP
    assert judged(*hosts[:2]).verdict is CheckVerdict.INCONCLUSIVE
    honest = [place(n, plain=(answer(acknowledged_s=0.03 + 0.04 * n),), beyond=0, datagram_s=0.03 + 0.04 * n)
              for n in range(3)]  # fmt: skip
    assert judged(*honest).verdict is CheckVerdict.INCONCLUSIVE


def test_hosts_that_cannot_be_reached_or_are_near_leave_it_open():
    assert "could be reached" in judged(place(0, error="connection refused")).reason
    assert "so near" in judged(place(0, beyond=1)).reason


OBSERVED = st.builds(
    lambda number, limited, beyond, dead: (place(number, limited=limited, beyond=beyond), dead),
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=4, unique_by=lambda item: item[0]),
    st.integers(0, 12),
    st.sampled_from([None, answer(), answer(acknowledged_s=None)]),
)


@given(st.lists(OBSERVED, min_size=1, max_size=5))
def test_a_split_needs_data_that_were_acknowledged_too_near(drawn):
    places, dead = [item[0] for item in drawn], [item[1] for item in drawn][:2]
    found = judged(*places, dead=dead)
    nearer = {each.host for each in places if each.measured[HOP_LIMITS].acknowledged_hops() is not None}
    silent = all(got is None or not got.is_acknowledged for got in dead)
    if found.verdict is CheckVerdict.SPLIT_TCP and silent:
        assert len(nearer) >= 2
    if found.verdict is CheckVerdict.REGULAR:
        assert found.hosts_split == 0


def test_hosts_as_far_by_tcp_as_by_references_are_regular_where_routers_are_silent():
    def told(references_s, transport_s):
        return judged(*(
            place(number, beyond=0, datagram_s=None, echo_s=far_s, plain=(answer(acknowledged_s=s, handshake_s=s),))
            for number, (far_s, s) in enumerate(zip(references_s, transport_s, strict=True))
        ))  # fmt: skip

    found = told((0.02, 0.06, 0.11), (0.0205, 0.061, 0.112))
    assert (found.verdict, found.hosts_regular) == (CheckVerdict.REGULAR, 3)
    assert "TCP takes as long as echo requests or datagrams to 3 hosts, 20 to 110 ms away" in found.reason
    # Equally far hosts may all be behind one box, and one that is nearer by TCP leaves it open.
    assert told((0.05, 0.051, 0.05), (0.05, 0.051, 0.05)).verdict is CheckVerdict.INCONCLUSIVE
    assert told((0.02, 0.06, 0.11), (0.02, 0.02, 0.02)).verdict is not CheckVerdict.REGULAR
    # The handshake waits for the host, the data do not: a box that connects first, and then answers.
    late = [place(n, beyond=0, datagram_s=None, echo_s=far, plain=(answer(acknowledged_s=0.01, handshake_s=far),))
            for n, far in enumerate((0.03, 0.08, 0.13))]  # fmt: skip
    assert judged(*late).verdict is CheckVerdict.SPLIT_TCP


def test_handshakes_of_one_time_from_several_stacks_are_no_middleboxs():
    def told(*offers):
        return judged(*(
            place(n, beyond=0, datagram_s=None, echo_s=0.03 + 0.04 * n,
                  plain=(dataclasses.replace(answer(acknowledged_s=0.01, handshake_s=0.01), offered=offer),))
            for n, offer in enumerate(offers)
        ))  # fmt: skip

    assert told((7, 7, 1460), (7, 7, 1460), (7, 7, 1448)).verdict is CheckVerdict.SPLIT_TCP
    assert told((7, 7, 1460), (7, 8, 1460), (3, 0, 1460)).verdict is CheckVerdict.INCONCLUSIVE


def test_servers_that_think_are_named_and_move_nothing():
    thinking = [place(n, plain=(answer(gap_s=0.2 + n), answer(gap_s=0.3)), **REGULAR) for n in range(2)]
    found = judged(*thinking)
    assert (found.verdict, found.causes) == (CheckVerdict.REGULAR, (Cause.SLOW_SERVER,))
    assert found.numbers["least_answer_gap_s"] == pytest.approx(0.2)
    once = [place(n, plain=(answer(gap_s=0.2), answer(gap_s=0.001)), **REGULAR) for n in range(2)]
    assert judged(*once).causes == ()


def test_a_proxy_that_goes_by_the_requests_host_is_no_captive_portal():
    own = [f"HTTP/1.1 200 OK\r\nServer: s{n}\r\nContent-Length: {n}\r\n\r\n".encode() for n in range(2)]
    hosts = [place(n, plain=(answer(head=own[n]),), beyond=0) for n in range(2)]
    found = judged(*hosts, dead=(answer(head=own[0]), answer(head=own[1])))
    assert (found.verdict, found.causes) == (CheckVerdict.SPLIT_TCP, (Cause.HTTP_PROXY,))
    portal = answer(head=own[0])
    alike = [place(n, plain=(portal,), beyond=0) for n in range(2)]
    assert judged(*alike, dead=(portal, portal)).causes == (Cause.CAPTIVE_PORTAL,)
