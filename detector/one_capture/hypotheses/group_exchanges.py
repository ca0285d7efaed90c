"""What groups' exchanges say by hypothesis, given what is known beside them of each member's path: references, how
handshakes wait or are answered, hits of caches, and other ports of the same hosts.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.habits.crossing_habits import any_habit
from detector.one_capture.hypotheses.member_nats import ENDS_TLS
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import any_leg, by_group, legs_by_group, log
from detector.one_capture.hypotheses.transport_nats import TransportNats
from detector.one_capture.likelihoods.references.port_references import PortReferences
from detector.one_capture.likelihoods.timing_tables import LEG_NATS, Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats

#: How often one cause leads a port of all hosts elsewhere, as a share of how often one of a single host does
#: (`Priors.elsewhere`): an operator's NAT at all of his addresses, a tunnel through which this network sends the port,
#: or a queue in which the port waits. Assumed (docs/decisions/115).
_ALL_ELSEWHERE = 1 / 3

#: Without a leg that one port has and another does not.
_NO_LEG_IN_THE_NETWORK = ("end", "programs", "slow_handshakes", "edges", "one_front")


class GroupExchangeNats(Struct, frozen=True):
    """Log-likelihoods by group of what its members' exchanges show, a column a hypothesis."""

    end: Floats  # end to end
    crossing: Floats  # behind a split whose leg everything crosses
    ends_tls: Floats  # behind a split where TLS ends
    connects_first: Floats  # behind a split that connects before it answers a handshake
    cached: Floats  # behind a cache
    unsteady: Floats  # behind a split whose leg, or the hosts behind it, vary as hosts that are late do
    answered: Floats  # end to end, and something answers handshakes
    programs: Floats  # end to end, and programs take as long as a leg
    slow_handshakes: Floats  # end to end, and libraries compute keys for as long as a leg takes
    slow_handshakes_behind: Floats  # the same libraries behind a split
    edges: Floats  # end to end, and edges fetch, or make, what they answer
    one_front: Floats  # behind one front of all servers, its prior included

    @property
    def split(self) -> Floats:
        """Behind a split whose leg everything crosses, or where TLS ends."""
        return np.logaddexp(self.crossing, self.ends_tls)


def group_exchange_nats(
    groups: Groups, transport: TransportNats, waiting: WaitingNats, answered: Floats, ports: PortReferences | None
) -> GroupExchangeNats:
    """Weigh the exchanges of groups, but by no hypothesis that the `transport` excludes of all. `answered` are
    log-likelihoods by member and path behind something that answers its handshakes (`HandshakeNats.behind`). A split
    point takes all ports, or leaves that one alone which serves as a reference."""
    found = _exchanges(groups, transport, waiting, answered)
    if ports is None:
        return found
    share_nats = ports.by_group(groups.group, groups.count)
    (some,) = np.nonzero(share_nats > -np.inf)
    if not len(some):
        return found
    members, share_nats = np.flatnonzero(np.isin(groups.group, some)), share_nats[some]
    part, references = groups.of(members, some), ports.of(members)
    passing = _exchanges(part.beside(references), transport, waiting.of(members), answered[members])
    passing_nats = share_nats - _elsewhere_nats(part, references)
    either = {}
    of_ports = (name for name in GroupExchangeNats.__struct_fields__ if name not in _NO_LEG_IN_THE_NETWORK)
    for name in of_ports:
        nats = getattr(found, name).copy()
        nats[some] = np.logaddexp(np.log1p(-np.exp(share_nats)) + nats[some], passing_nats + getattr(passing, name))
        either[name] = nats
    return replace(found, **either)


def _elsewhere_nats(groups: Groups, ports: PortReferences) -> Floats:
    """Log-likelihoods by group of what reference ports show where no box leaves them alone, against ports that lead
    nowhere else: one cause may lead all elsewhere, each by a detour of its own or all by one, as long as legs are."""
    share = _ALL_ELSEWHERE * groups.priors.elsewhere
    nats: Floats = np.logaddexp(log(1 - share), log(share) + _by_own_times_or_one(ports.nats, groups))
    return nats


def _by_own_times_or_one(beyond: Floats, groups: Groups) -> Floats:
    """Log-likelihoods by group of members that are farther, each by a time of its own or all by one, as long as legs
    are; `beyond` are those by member and time, against none."""
    own = by_group(any_leg(beyond + LEG_NATS), groups.group, groups.count)
    either: Floats = np.logaddexp(own, _by_one_time(beyond, groups)) - np.log(2.0)
    return either


def _by_one_time(beyond: Floats, groups: Groups) -> Floats:
    """The same of members that are all farther by one time."""
    return any_leg(legs_by_group(beyond, groups.group, groups.count) + LEG_NATS)


def _first_packets_held(groups: Groups, waiting: WaitingNats) -> Floats:
    """Log-likelihoods by group of handshakes that wait for no leg, against those of `WaitingNats`, where each is held
    up by itself: one cause may hold up all, by one time."""
    share = groups.priors.first_packets_held
    held = _by_one_time(np.where(waiting.known[:, None], waiting.legs, 0.0), groups)
    nats: Floats = np.logaddexp(log(1 - share), log(share) + held)
    return nats


def _exchanges(groups: Groups, transport: TransportNats, waiting: WaitingNats, answered: Floats) -> GroupExchangeNats:
    by_habit, impossible = groups.by_habit, np.full(groups.count, -np.inf)

    def of_any(nats: Floats) -> Floats:
        """Of any habit, if there is one."""
        return any_habit(nats) if nats.ndim > 1 else nats

    return GroupExchangeNats(
        end=by_group(groups.end, groups.group, groups.count),
        crossing=log(1 - ENDS_TLS) + of_any(by_habit.crossing),
        ends_tls=log(ENDS_TLS) + of_any(by_habit.behind_tls),
        connects_first=groups.waiting(waiting) - _first_packets_held(groups, waiting),
        cached=of_any(by_habit.cached),
        unsteady=of_any(by_habit.unsteady()),
        answered=of_any(by_habit.behind_answered(answered)),
        programs=groups.programs() if _may_be(transport.programs) else impossible,
        slow_handshakes=groups.slow_handshakes() if _may_be(transport.slow_handshakes) else impossible,
        slow_handshakes_behind=groups.slow_handshakes_behind(),
        edges=of_any(by_habit.edges()),
        one_front=of_any(by_habit.behind_one_front()) if _may_be(transport.one_front) else impossible,
    )


def _may_be(nats: Floats) -> bool:
    """Whether these log-likelihoods exclude a hypothesis of some groups at most."""
    return bool((nats > -np.inf).any())
