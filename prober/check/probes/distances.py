"""How many routers lie before a host, by datagrams or echo requests that may cross only so many (Linux, ip(7)).

A router that drops a datagram says so (ICMP time exceeded, RFC 792 and RFC 4443): the host lies beyond it. A host that
answers a datagram for a port where nothing listens (ICMP port unreachable) has been reached. Boxes that end TCP
connections end no datagrams, so that this distance is the host's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from prober.host.echo_request import least_echo_s
from prober.host.hop_probe import Answer, HopAnswer, probe_connections, probe_echo, probe_echo_requests
from prober.host.reference_datagrams import least_dns_s, least_quic_s

#: Where traceroute(8) begins, since hosts rarely listen there; and QUIC's, which firewalls let pass more often.
_DATAGRAM_PORTS = (33_434, 443)
_QUESTION = b"pepscope check"
MOST_HOPS = 30
_STRIDE = 8
_ROUNDS = 2
#: Echo requests, queries and QUIC packets to a host: the least of so many waited in no queue.
ECHOES = 4


@dataclass(frozen=True, slots=True)
class Distance:
    """What datagrams show of the way to a host: hops are counted from 1, the first router."""

    #: The most hops after which a router dropped a datagram, 0 where none said so: the host lies beyond.
    beyond_hops: int
    #: The fewest hops with which the host answered; None where it never did.
    answered_hops: int | None
    #: The least round-trip time of an answer of the host itself.
    round_trip_s: float | None
    routers: tuple[str, ...]
    #: The least round-trip time of an ICMP echo request, where this user may send some.
    echo_round_trip_s: float | None = None
    #: Those of a DNS query and of a QUIC packet, where the host is a resolver or a QUIC server.
    dns_round_trip_s: float | None = None
    quic_round_trip_s: float | None = None

    @classmethod
    def unknown(cls) -> Distance:
        """Of an address that was not asked, or did not answer."""
        return cls(0, None, None, ())

    @property
    def unsplit_round_trip_s(self) -> float | None:
        """The least round trip to the host itself of what no middlebox splits."""
        times = (self.round_trip_s, self.echo_round_trip_s, self.dns_round_trip_s, self.quic_round_trip_s)
        return min((each for each in times if each is not None), default=None)


def datagram_distance(address: str, timeout_s: float) -> Distance:
    """The distance of a host, by the first port of `_DATAGRAM_PORTS` that anything answers for, and its round trips.

    Raises OSError.
    """
    found = Distance.unknown()
    for port in _DATAGRAM_PORTS:
        found = _distance(_near_to_far(partial(_datagrams, address, port, timeout_s), address))
        if found.beyond_hops or found.answered_hops:
            break
    if found.answered_hops is None:
        # Networks that drop datagrams to such ports may pass echo requests, which some users may send.
        with contextlib.suppress(OSError):
            by_echo = _near_to_far(partial(probe_echo_requests, address, timeout_s=timeout_s), address)
            found = max(found, _distance(by_echo), key=lambda each: (each.beyond_hops, each.answered_hops or 0))
    return replace(
        found,
        echo_round_trip_s=least_echo_s(address, ECHOES, timeout_s),
        dns_round_trip_s=least_dns_s(address, ECHOES, timeout_s),
        quic_round_trip_s=least_quic_s(address, ECHOES, timeout_s),
    )


def _datagrams(address: str, port: int, timeout_s: float, hops: Sequence[int]) -> list[HopAnswer]:
    return probe_echo(address, port, hops, timeout_s, _QUESTION)


def _near_to_far(probe: Callable[[Sequence[int]], list[HopAnswer]], address: str) -> list[HopAnswer]:
    """Probes from near to far, until the host answers or nothing answers any more; others' answers are left out."""
    answers: list[HopAnswer] = []
    for _ in range(_ROUNDS):
        for first in range(1, MOST_HOPS + 1, _STRIDE):
            found = probe(range(first, min(first + _STRIDE, MOST_HOPS + 1)))
            answers += found
            if any(_is_host(each, address) for each in found) or all(each.answer is Answer.SILENT for each in found):
                break
    return [each for each in answers if each.answer is Answer.ROUTER or _is_host(each, address)]


def handshake_hops(address: str, port: int, most: int, tries: int, timeout_s: float) -> tuple[int | None, int]:
    """The fewest hops with which every try connects (None: never), and the most after which a router dropped a SYN.

    Raises OSError.
    """
    answers: list[HopAnswer] = []
    last = most
    for _ in range(tries):
        for first in range(1, last + 1, _STRIDE):
            found = probe_connections(address, port, range(first, min(first + _STRIDE, last + 1)), timeout_s)
            answers += found
            reached = [each.hops for each in found if each.answer is Answer.ANSWERED]
            if reached:
                last = min(last, max(reached))
                break
            if all(each.answer is Answer.SILENT for each in found) and first > _STRIDE:
                break
    return _always(answers, tries), max((each.hops for each in answers if each.answer is Answer.ROUTER), default=0)


def _always(answers: Sequence[HopAnswer], tries: int) -> int | None:
    """The fewest hops from which each try was answered."""
    counts: dict[int, int] = {}
    for each in answers:
        counts[each.hops] = counts.get(each.hops, 0) + (each.answer is Answer.ANSWERED)
    return min((hops for hops, count in counts.items() if count >= tries), default=None)


def _is_host(each: HopAnswer, address: str) -> bool:
    return each.answer is Answer.ANSWERED or (each.answer is Answer.REFUSED and each.router in ("", address))


def _distance(answers: Sequence[HopAnswer]) -> Distance:
    """What answers of routers and of the host itself show."""
    own = [each for each in answers if each.answer is not Answer.ROUTER]
    answered = min((each.hops for each in own), default=None)
    dropped = [each for each in answers if each.answer is Answer.ROUTER]
    routers = {each.hops: each.router for each in dropped}
    return Distance(
        max((each.hops for each in dropped), default=0),
        answered,
        min((each.after_s for each in own), default=None),
        tuple(routers.get(hops, "") for hops in range(1, max(routers, default=0) + 1)),
    )
