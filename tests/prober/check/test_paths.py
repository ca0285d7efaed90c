"""Checks over real routers, with boxes on them: a box is found where it stands, and nothing else is accused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.prober.check.chain import HOSTS, HOSTS_6, PLAIN, TLS, chain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.prober.check.chain import Chain


@pytest.fixture(scope="module")
def path() -> Iterator[Chain]:
    with chain() as made:
        yield made


@pytest.fixture
def way(path: Chain) -> Iterator[Chain]:
    """The path, with what a test puts there removed again."""
    yield path
    path.stack.close()


def targets(directory: Path, hosts: tuple[str, ...] = HOSTS[:2], ports: tuple[int, ...] = (PLAIN, TLS)) -> Path:
    file = directory / "targets.txt"
    file.write_text("".join(f"{host} {port} {'tls' if port == TLS else 'plain'}\n" for host in hosts for port in ports))
    return file


def by_port(found):
    return {(each["family"], each["port"]): each for each in found["ports"]}


def test_an_open_path_is_regular(way, tmp_path):
    found = way.check(targets(tmp_path))
    assert {each["verdict"] for each in found["ports"]} == {"regular"}
    assert [each["hosts_regular"] for each in found["ports"]] == [2, 2]
    assert [each["causes"] for each in found["ports"]] == [[], []]
    place = found["places"][0]
    assert (place["beyond_hops"], place["answered_hops"], place["handshake_hops"]) == (5, 6, 6)
    assert place["routers"] == [f"10.77.{hop}.2" for hop in range(5)]
    assert not any(each["connected"] for each in found["documentation_addresses"])


def test_a_split_of_one_port_is_found_where_it_stands(way, tmp_path):
    way.box(2, "split", (PLAIN,))
    found = by_port(way.check(targets(tmp_path)))
    split = found[4, PLAIN]
    assert (split["verdict"], split["box_hops"], split["router_before"]) == ("split-tcp", 2, "10.77.0.2")
    assert found[4, TLS]["verdict"] == "regular"


def test_a_split_of_one_version_of_ip_is_told_apart(way, tmp_path):
    way.box(3, "shut", (TLS,), ("ip6tables",))
    found = by_port(way.check(targets(tmp_path, (*HOSTS[:2], *HOSTS_6[:2]), (TLS,))))
    assert (found[6, TLS]["verdict"], found[6, TLS]["box_hops"]) == ("split-tcp", 3)
    assert found[4, TLS]["verdict"] == "regular"


def test_address_translation_and_loss_are_no_split(way, tmp_path):
    way.rule(3, "iptables", "nat", "POSTROUTING", "-o", "far", "-j", "MASQUERADE")
    way.rule(4, "iptables", "filter", "FORWARD", "-m", "statistic", "--mode", "random", "--probability", "0.02",
             "-j", "DROP")  # fmt: skip
    found = way.check(targets(tmp_path, HOSTS))
    assert {each["verdict"] for each in found["ports"]} <= {"regular", "inconclusive"}
    assert any(each["verdict"] == "regular" for each in found["ports"])


def test_a_captive_portal_is_named(way, tmp_path):
    way.box(2, "portal", (PLAIN,))
    portal = by_port(way.check(targets(tmp_path)))[4, PLAIN]
    assert (portal["verdict"], portal["causes"]) == ("inconclusive", ["captive-portal"])
    assert "http://login.example/" in portal["reason"]


def test_a_program_on_this_host_is_named(way, tmp_path):
    way.box(0, "split", (PLAIN,))
    found = by_port(way.check(targets(tmp_path)))
    assert (found[4, PLAIN]["verdict"], found[4, PLAIN]["causes"]) == ("inconclusive", ["this-host"])
    assert found[4, TLS]["verdict"] == "regular"


def test_a_syn_proxy_is_named_and_splits_nothing(way, tmp_path):
    way.syn_proxy(2, PLAIN)
    found = by_port(way.check(targets(tmp_path)))
    assert (found[4, PLAIN]["verdict"], found[4, PLAIN]["causes"]) == ("regular", ["syn-proxy"])
    assert found[4, TLS]["verdict"] == "regular"


def test_a_load_balancer_before_the_hosts_is_not_accused(way, tmp_path):
    way.box(5, "split", (PLAIN,), before="10.88.0.0/24")
    assert by_port(way.check(targets(tmp_path)))[4, PLAIN]["verdict"] == "regular"


def test_silent_routers_leave_it_open(way, tmp_path):
    for place in range(1, 6):
        way.rule(place, "iptables", "filter", "OUTPUT", "-p", "icmp", "-j", "DROP")
    way.rule(6, "iptables", "filter", "OUTPUT", "-p", "icmp", "-j", "DROP")
    found = by_port(way.check(targets(tmp_path, ports=(PLAIN,))))
    assert found[4, PLAIN]["verdict"] == "inconclusive"
    assert "distances are unknown" in found[4, PLAIN]["reason"]


def test_echo_requests_are_answered_by_the_hosts_where_users_may_send_them(way, tmp_path):
    for place in range(1, 7):
        for kind in ("time-exceeded", "destination-unreachable"):
            way.rule(place, "iptables", "filter", "OUTPUT", "-p", "icmp", "--icmp-type", kind, "-j", "DROP")
    asked = targets(tmp_path, (*HOSTS, HOSTS_6[0]), (PLAIN,))
    silent = way.check(asked)
    assert {place["echo_round_trip_s"] for place in silent["places"]} == {None}
    way.echoes()
    answered = way.check(asked)
    assert all(0 < place["echo_round_trip_s"] < 1 for place in answered["places"])
    # Hosts that are all equally near do not tell whether a box stands before them.
    assert by_port(answered)[4, PLAIN]["verdict"] == "inconclusive"


def test_a_capture_beside_the_check_is_judged_and_kept(way, tmp_path):
    kept = tmp_path / "check.pcap"
    words = [sys.executable, "-m", "pepscope", "check"]
    found = way.said(words, targets(tmp_path, ports=(PLAIN,)), "-w", str(kept))
    assert by_port(found)[4, PLAIN]["verdict"] == "regular"
    (judged,) = [each for each in found["ports"][0]["findings"] if each["name"].startswith("capture-")]
    # Four questions to each of two hosts, and none of those whose data were lost on purpose.
    assert judged["numbers"]["capture_exchanges"] == 8
    assert kept.stat().st_size > 10_000
    without = way.said(words, targets(tmp_path, ports=(PLAIN,)), "--no-capture")
    assert not [each for each in without["ports"][0]["findings"] if each["name"].startswith("capture-")]


def test_a_host_that_is_not_there_is_said(way, tmp_path):
    found = way.check(targets(tmp_path, ("10.88.0.9",), (PLAIN,)))
    assert found["ports"][0]["verdict"] == "inconclusive"
    assert found["places"][0]["error"]
