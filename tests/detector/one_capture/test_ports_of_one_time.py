"""Ports on which hosts are late by one time: what explains that on one of them explains it on all."""

from __future__ import annotations

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT, LEAST_WHOLE
from detector.one_capture.hypotheses import alike_ports
from detector.one_capture.hypotheses.alike_ports import ports_of_one_time
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged

HTTP, HELLO, DATA = ExchangeKind.HTTP_REQUEST, ExchangeKind.TLS_HELLO, ExchangeKind.TLS_DATA

#: What servers of several networks, as far away as each other, take for what they answer, in milliseconds.
LATE_MS = (35.0, 60.0, 82.0, 110.0)


def talks(*, port: int, hello_late: bool = False, late: bool = True, farther: bool = False) -> list[Talk]:
    """Six connections with each server. TLS handshakes are as late as the rest where `hello_late`; servers answer at
    once where not `late`, and are `farther` away by what they take elsewhere."""
    made = []
    for place, late_ms in enumerate(LATE_MS):
        took_ms = late_ms * late
        for turn in range(6):
            beyond_ms = took_ms * (1 + 0.015 * turn) + 0.5
            hello = [(HELLO, took_ms * hello_late + 0.6)] if port == 443 else []
            answers = hello + [(DATA if port == 443 else HTTP, beyond_ms)] * 2
            near_ms = 9.0 + 0.3 * place + 0.5 * turn + late_ms * farther
            made.append(Talk(f"192.0.{place}.1", answers, near_ms, port=port))
    return made


def split(found: SidePosteriors, port: int) -> float:
    """How probable a split of a port is."""
    return float(found.groups.split[found.places.port.tolist().index(port)])


def test_a_port_is_no_surer_than_another_on_which_hosts_take_as_long() -> None:
    """TLS handshakes tell that edges, or programs, may take the time; a port without them cannot."""
    alone = judged(talks(port=80), at_client=True)
    both = judged(talks(port=80) + talks(port=443), at_client=True)
    assert split(alone, 80) > 0.85
    assert 1 - LEAST_WHOLE[GroupSide.CLIENT] < split(both, 80) < 0.5
    assert split(both, 80) == pytest.approx(split(both, 443), abs=0.1)


def test_ports_that_are_late_throughout_are_split() -> None:
    found = judged(talks(port=80) + talks(port=443, hello_late=True), at_client=True)
    assert min(split(found, 80), split(found, 443)) > LEAST_SPLIT[GroupSide.CLIENT]


@pytest.mark.parametrize("farther", [False, True])
def test_ports_that_are_answered_at_once_say_nothing_of_the_time(*, farther: bool) -> None:
    """A box for one port does not make the others late."""
    found = judged(talks(port=80) + talks(port=443, late=False, farther=farther), at_client=True)
    count = len(found.places.network)
    assert ports_of_one_time(found.groups, found.places, np.ones(count, np.bool_)).tolist() == list(range(count))


def test_a_box_for_one_port_is_found_beside_another_that_passes() -> None:
    found = judged(talks(port=80) + talks(port=443, late=False, farther=True), at_client=True)
    assert split(found, 80) > LEAST_SPLIT[GroupSide.CLIENT]


def test_a_few_hosts_that_take_as_long_elsewhere_do_not_explain_the_others() -> None:
    few = [each for each in talks(port=443) if each.host in ("192.0.2.1", "192.0.3.1")]
    found = judged(talks(port=80) + few, at_client=True)
    assert ports_of_one_time(found.groups, found.places, np.ones(2, np.bool_)).tolist() == [0, 1]
    assert split(found, 80) > 0.85


def test_ports_without_a_host_in_common_are_not_compared() -> None:
    others = [Talk(f"198.51.{place}.1", each.excess_ms, each.round_trip_ms, port=443)
              for place, each in enumerate(talks(port=443)[::6])]  # fmt: skip
    found = judged(talks(port=80) + others, at_client=True)
    assert ports_of_one_time(found.groups, found.places, np.ones(2, np.bool_)).tolist() == [0, 1]


@pytest.mark.parametrize(("one_host", "count"), [(True, sum(min(port, 16) for port in range(30))), (False, 0)])
def test_ports_are_compared_with_a_few_of_their_hosts_alone(
    *, one_host: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that talks to peers behind a split point has thousands of ports, each of one host and split."""
    compared = []

    def of_one_time(_nats: object, _where: object, _bounds: object, both: tuple[int, int]) -> float:
        compared.append(both)
        return -1.0

    monkeypatch.setattr(alike_ports, "_of_one_time", of_one_time)
    ports = range(1000, 1030)
    peers = [
        Talk(f"192.0.{0 if one_host else port - 1000}.1", [(HTTP, 60.0 + turn)] * 2, 9.0 + turn, port=port)
        for port in ports
        for turn in range(4)
    ]
    found = judged(peers, at_client=True)
    assert float(found.groups.split.min()) > 0.5
    compared.clear()
    ports_of_one_time(found.groups, found.places, np.ones(len(ports), np.bool_))
    assert len(compared) == count


def test_hosts_that_are_late_alike_are_neither_named_as_split_inside_their_sites_nor_cleared() -> None:
    """Together they take the time themselves, or fetch from one origin: none is late as if by itself."""
    alike = [
        Talk(f"192.0.{place}.1", [(HTTP, 70 + 0.2 * turn)] * 2, 10.0 + 8 * place)
        for place in range(4)
        for turn in range(6)
    ]
    found = judged(alike, at_client=True)
    assert float(found.groups.fleet[0]) > 0.9
    assert float(found.groups.member_wired_site.max()) < 0.1
    assert float(found.groups.member_site.min()) > 0.5
