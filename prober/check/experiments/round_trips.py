"""Round trips of TCP against those of what cannot be split, and hosts at different distances that take the same time.

ICMP echo requests, datagrams to a closed port, DNS queries and QUIC packets cross the whole path to the host. TCP's
least round trip (handshakes, acknowledgements of data, the kernel's own least) ends where the connection ends. One host
proves nothing: packets of different kinds may take different ways. Where hosts are at very different distances and TCP
takes one and the same short time to all of them, one middlebox acknowledges for them. Where TCP takes as long as the
references to each, it ends as far away as the hosts are. One middlebox offers one set of options and one window scale,
so that handshakes of one time whose offers differ are no middlebox's. Only least times are compared, so that mobiles
that wake up, queues and hosts that think count for nothing; a host that is slow to answer echo requests makes its
reference longer, which three hosts of different distances do not do alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PlaceObservation, PortMaterial
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import CheckFinding, Says, milliseconds
from prober.check.probes.distances import ECHOES
from prober.host.echo_request import least_echo_s
from prober.host.reference_datagrams import least_dns_s, least_quic_s

NAME = "round-trips"
#: The finding that hosts at different distances take one time.
ONE_TIME = "one-time-for-all-distances"
_WAIT_S = 1.0
#: An echo request, a DNS query and a QUIC packet with their headers.
_REFERENCES_BYTES = 60 + 60 + 1_230
#: Hosts of one time at different distances before a middlebox is said to answer for them.
LEAST_ALIKE = 3
#: Hosts that must be as far by TCP as by references.
_LEAST_REGULAR = 2
#: References this far apart are very different distances, s: more than radio schedules and queues add to least times.
LEAST_SPREAD_S = 0.02
_SAME_TIME_S = 0.003
_SAME_SHARE = 0.15
#: By how much a reference must exceed TCP's time before a leg is hidden behind it, s and as a factor.
_HIDDEN_S = 0.01
_HIDDEN_FACTOR = 2.0
#: Within so much the two end at the same distance, s: below the hidden leg that a check looks for.
_EQUAL_S = 0.003
_EQUAL_SHARE = 0.05
_MOST_EQUAL_S = 0.008
#: Timestamps, SACK and window scaling (TCPI_OPT_* of linux/tcp.h); what ECN saw on the way is no stack's choice.
_OPTIONS = 0x7


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """One host: TCP's least round trip, that of its data's acknowledgements, and the least of all references."""

    near_s: float
    acknowledged_s: float
    reference_s: float
    #: The least time of a handshake, and the option bits and window scale that were offered in it.
    handshake_s: float = 0.0
    offered: tuple[int, int] = (0, 0)

    @property
    def is_hidden(self) -> bool:
        """Whether TCP ends much nearer than the references do."""
        return self.reference_s - self.near_s >= _HIDDEN_S and self.reference_s >= _HIDDEN_FACTOR * self.near_s

    @property
    def is_equal(self) -> bool:
        """Whether handshake and data are answered as far away as references are, as far as times show."""
        allowed_s = min(_MOST_EQUAL_S, max(_EQUAL_S, _EQUAL_SHARE * self.reference_s))
        return self.reference_s - min(self.near_s, self.acknowledged_s) <= allowed_s


class RoundTripReferences(CheckExperiment[RoundTrips]):
    """Compares what other measurements took with references."""

    name = NAME
    title = "round trips"
    summary = "Compare TCP's least round trip with those of echo requests, datagrams, DNS and QUIC to the same address."
    measured = RoundTrips

    def cost(self) -> Cost:
        """Echo requests, queries and QUIC packets, where the host answered some before."""
        return Cost(0, 3 * ECHOES, ECHOES * _REFERENCES_BYTES)

    def measure(self, asked: Asked) -> RoundTrips | None:
        """The times of a place; None where one is not known."""
        found = asked.measured_by(QUESTIONS, Questions)
        return None if found is None else compared(found, _again_s(asked))

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """One time for hosts at different distances, or the references' time for each."""
        known = list(self.observed(port))
        hidden = [item for item in known if item[1].is_hidden]
        if (
            len(_hosts(hidden)) >= LEAST_ALIKE
            and are_alike([each.acknowledged_s for _, each in known])
            and spread_s([each.reference_s for _, each in hidden]) >= LEAST_SPREAD_S
            and not _are_several([each for _, each in known])
        ):
            yield _one_time(known, hidden)
        equal = [item for item in known if item[1].is_equal]
        if (
            not hidden
            and len(_hosts(equal)) >= _LEAST_REGULAR
            and spread_s([each.reference_s for _, each in equal]) >= LEAST_SPREAD_S
        ):
            most_s = max(each.reference_s - each.near_s for _, each in equal)
            yield CheckFinding(
                "as-far-as-references", Says.REGULAR,
                f"TCP takes as long as echo requests or datagrams to {len(_hosts(equal))} hosts, "
                f"{min(each.reference_s for _, each in equal) * 1e3:.0f} to "
                f"{max(each.reference_s for _, each in equal) * 1e3:.0f} ms away: no middlebox that is more than "
                f"{max(1.0, most_s * 1e3):.0f} ms from them acknowledges for them.",
                _hosts(equal), numbers={"most_hidden_s": most_s},
            )  # fmt: skip

    def document(self, measured: RoundTrips) -> Mapping[str, Any]:
        """Times in seconds."""
        return {
            "transport_s": measured.near_s, "acknowledged_s": measured.acknowledged_s,
            "reference_s": measured.reference_s,
        }  # fmt: skip


def compared(found: Questions, reference_s: float | None) -> RoundTrips | None:
    """The times of one host; None where one is not known."""
    if found.near_s is None or found.acknowledged_s is None or reference_s is None:
        return None
    handshake_s = min(each.handshake_s for each in found.plain)
    offered = next(((each.offered[0] & _OPTIONS, each.offered[1]) for each in found.plain), (0, 0))
    return RoundTrips(found.near_s, found.acknowledged_s, reference_s, handshake_s, offered)


def _again_s(asked: Asked) -> float | None:
    """The least reference, with some more beside the questions: what was under way may have kept the first waiting."""
    distance, address = asked.distance, asked.place.address
    times = [
        distance.unsplit_round_trip_s,
        None if distance.echo_round_trip_s is None else least_echo_s(address, ECHOES, _WAIT_S),
        None if distance.dns_round_trip_s is None else least_dns_s(address, ECHOES, _WAIT_S),
        None if distance.quic_round_trip_s is None else least_quic_s(address, ECHOES, _WAIT_S),
    ]
    return min((each for each in times if each is not None), default=None)


def _one_time(
    known: Sequence[tuple[PlaceObservation, RoundTrips]], hidden: Sequence[tuple[PlaceObservation, RoundTrips]]
) -> CheckFinding:
    near_s, far_s = ([each.acknowledged_s for _, each in known], [each.reference_s for _, each in known])
    return CheckFinding(
        ONE_TIME, Says.SPLIT,
        f"{len(_hosts(known))} hosts acknowledge data after {milliseconds(near_s)}, although their answers to "
        f"datagrams and echo requests take {milliseconds(far_s)}: a middlebox acknowledges for them.",
        _hosts(hidden), numbers={"most_hidden_s": max(each.reference_s - each.near_s for _, each in hidden)},
    )  # fmt: skip


def are_alike(times_s: Sequence[float]) -> bool:
    """Whether times of several hosts are one time."""
    return spread_s(times_s) <= max(_SAME_TIME_S, _SAME_SHARE * min(times_s))


def _are_several(known: Sequence[RoundTrips]) -> bool:
    """Whether handshakes that take one time come from several stacks, thus not from one middlebox."""
    return are_alike([each.handshake_s for each in known]) and len({each.offered for each in known}) > 1


def spread_s(times_s: Sequence[float]) -> float:
    """The largest less the least."""
    return max(times_s) - min(times_s) if times_s else 0.0


def _hosts(items: Iterable[tuple[PlaceObservation, RoundTrips]]) -> tuple[str, ...]:
    return tuple(sorted({each.host for each, _ in items}))
