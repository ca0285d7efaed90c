"""How many routers lie before a host, by datagrams that may cross only so many; no right is needed (Linux, ip(7)).

A router that drops a datagram says so (ICMP time exceeded, RFC 792 and RFC 4443): the host lies beyond it. A host that
answers a datagram for a port where nothing listens (ICMP port unreachable) has been reached. Boxes that end TCP
connections end no datagrams, so that this distance is the host's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prober.host.echo_request import least_echo_s
from prober.host.hop_probe import Answer, HopAnswer, probe_connections, probe_echo
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
        found = _distance(_datagrams(address, port, timeout_s), address)
        if found.beyond_hops or found.answered_hops:
            break
    return replace(
        found,
        echo_round_trip_s=least_echo_s(address, ECHOES, timeout_s),
        dns_round_trip_s=least_dns_s(address, ECHOES, timeout_s),
        quic_round_trip_s=least_quic_s(address, ECHOES, timeout_s),
    )


def _datagrams(address: str, port: int, timeout_s: float) -> list[HopAnswer]:
    """Probes from near to far, until the host answers or nothing answers any more."""
    answers: list[HopAnswer] = []
    for _ in range(_ROUNDS):
        for first in range(1, MOST_HOPS + 1, _STRIDE):
            hops = range(first, min(first + _STRIDE, MOST_HOPS + 1))
            found = probe_echo(address, port, hops, timeout_s, _QUESTION)
            answers += found
            if any(_is_host(each, address) for each in found) or all(each.answer is Answer.SILENT for each in found):
                break
    return answers


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


def _distance(answers: Sequence[HopAnswer], address: str) -> Distance:
    own = [each for each in answers if _is_host(each, address)]
    answered = min((each.hops for each in own), default=None)
    dropped = [each for each in answers if each.answer is Answer.ROUTER]
    routers = {each.hops: each.router for each in dropped}
    return Distance(
        max((each.hops for each in dropped), default=0),
        answered,
        min((each.after_s for each in own), default=None),
        tuple(routers.get(hops, "") for hops in range(1, max(routers, default=0) + 1)),
    )
