"""Probabilities of the hypotheses for a group and its members before anything was seen, with the reasons."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.other_ports import ALL_SPLIT
from detector.one_capture.likelihoods.timing_tables import Floats
from pepscope.results.verdicts import GroupSide


class Priors(Struct, frozen=True):
    """Probabilities before any evidence, and what they are made of. Shares are of members."""

    split: float  # of a group: split in the network
    fleet: float  # of a group that is end to end: all its members are late alike, or the capture's own host is
    busy: float  # of a group that is end to end: most of its members are late, each in its own way
    handshakes_answered: float  # of a group that is end to end: something answers its handshakes
    late: float  # of a member: late in all answers, its TLS library's as well
    late_application: float  # of a member: late where an application answers, or a person
    balancer: float  # of a member: a leg inside the server's own site, which everything crosses
    front_end: float  # of a member of TLS or HTTP: a leg inside the server's own site that applications' answers cross
    #: Of members of a split group, those with a hidden leg shorter than the shortest that shows by itself: shares, one
    #: as probable as another, of which each group has one.
    too_short: tuple[float, ...]
    shortest_s: float  # that leg: shorter ones take no longer than ordinary hosts do to answer
    all_ports: float  # of networks that split: all ports, rather than some
    elsewhere: float  # of ports of one host: the port leads elsewhere, and takes longer
    common_leg: float  # of split groups: one leg for all members, rather than legs of their own
    connects_first: float = 0.0  # of splits: handshakes wait for the far leg, or pass, and acknowledgements do not
    caches: float = 0.0  # of splits: a cache that answers in clear what it holds
    unsteady: float = 0.0  # of splits: legs, or hosts behind them, vary as much as hosts that are late do
    steady_application: float = 0.0  # of members that are late where applications answer: as steadily as a leg
    steady: float = 0.0  # of members that are late in all answers: as steadily as a leg would make them
    devices: float = 0.0  # of a group that is end to end: devices delay all that its members say, closes as well
    programs: float = 0.0  # of a group that is end to end: programs take as long as a leg before all that they say
    slow_handshakes: float = 0.0  # of a group that is end to end: keys take machines as long as a leg to compute
    edges: float = 0.0  # of a group that is end to end: servers at one place fetch from afar what they do not hold
    first_packets_held: float = 0.0  # of a group: one cause holds up the SYN of each connection by one time
    closes: bool = False  # whether closes are weighed beside answers

    def front_ends(self, speaks_web: npt.NDArray[np.bool_]) -> Floats:
        """How many members have a front end, by whether they speak TLS or HTTP: others have nothing to answer there."""
        return np.where(speaks_web, self.front_end, 0.0)

    def fronts(self, speaks_web: npt.NDArray[np.bool_]) -> Floats:
        """How many members have a front of either sort, by whether they speak TLS or HTTP."""
        return self.balancer + self.front_ends(speaks_web)

    def prompt(self, speaks_web: npt.NDArray[np.bool_]) -> Floats:
        """How many members are neither late nor behind a front, by whether they speak TLS or HTTP."""
        return 1.0 - self.late - self.late_application - self.fronts(speaks_web)


#: Shares of density 3 (1 - s)^2, whose mean is one in four: the middles of ten parts, one as probable as another.
_NEAR_SHARES = tuple(1 - (1 - (place + 0.5) / 10) ** (1 / 3) for place in range(10))

#: At the client's side, where servers are judged. No survey counts what is assumed.
_OF_SERVERS = Priors(
    split=0.2,
    fleet=0.05,
    busy=0.02,
    handshakes_answered=0.05,
    # To be late in a TLS handshake takes an overloaded machine; one server in ten has pages that are slow to make, and
    # one in ten a front end that fetches them from afar.
    late=0.02,
    late_application=0.08,
    front_end=0.1,
    # Balancers stand in one building with what they balance, but for one in thirty.
    balancer=0.03,
    # Servers beside the split point, as caches of large sites are: one in four in the mean. Where the split point
    # stands and which servers its network speaks with decide how many, so that some servers tell of the others.
    too_short=_NEAR_SHARES,
    shortest_s=0.01,
    # Nothing was counted (`other_ports`).
    all_ports=ALL_SPLIT,
    # A port leads elsewhere where a NAT forwards it, or an edge serves it: assumed, as often as hosts answer ICMP echo
    # late.
    elsewhere=0.03,
    common_leg=0.0,
    # One split point in ten each: assumed.
    connects_first=0.1,
    caches=0.1,
    unsteady=0.1,
    # One in ten that is late is so as steadily as a leg.
    steady_application=0.1,
    steady=0.1,
    # Of twenty groups one is programs that compute for nearly the same time before they go on (work on rows of a table,
    # calls of a service): assumed. It bounds what application answers say for a split, however many there are.
    programs=0.05,
    # Keys in TLS handshakes take machines as long as a leg, and as steadily (small devices, chips that sign), in one
    # group of a hundred: assumed, as often as devices delay everything; so that TLS handshakes alone prove no leg,
    # however many, and what else it delays does.
    slow_handshakes=0.01,
    # Of fifty groups one is edges of content networks at one place, as often as TLS ends at a split point, or a cache
    # is one: assumed; more users speak with such edges than behind such boxes.
    edges=0.02,
    # Something that looks up each flow (a firewall's rules, a controller that a switch asks) holds up the SYNs of one
    # network in a hundred, by one time: assumed.
    first_packets_held=0.01,
)

#: At the server's side, where clients are judged.
_OF_CLIENTS = Priors(
    split=0.2,
    # All clients are late (one make of device): so were 26 of 403 simulated networks of several clients, and 7 of 52
    # between kernels.
    fleet=0.06,
    busy=0.02,
    handshakes_answered=0.05,
    # Clients are late one by one (slow devices, people); some speak TLS and are late in its handshakes alone
    # (`member_nats`), so that one in twenty is late in all that it says.
    late=0.07,
    late_application=0.1,
    # One in ten as steadily as any leg, since the shapes of hosts' delays are assumed, not measured.
    steady=0.1,
    balancer=0.0,
    front_end=0.0,
    too_short=(0.0,),
    shortest_s=0.0,
    # Counted: 258 of 303 simulated networks that split, 12 of 13 in the third laboratory (docs/decisions/105).
    all_ports=0.85,
    # A client's address leads elsewhere where it is a NAT's, before several clients of which those at this port are
    # farther away: assumed.
    elsewhere=0.15,
    common_leg=0.5,
    # One split point in twenty lets handshakes pass and acknowledges data in the clients' names, as is assumed where
    # stacks are compared (`client_stacks.COPIES`).
    connects_first=0.05,
    # One split in ten has legs in which something queues, as at the client's side.
    unsteady=0.1,
    # Of a hundred groups one has devices that delay whatever is said, each in its own way: assumed, half as many as are
    # busy.
    devices=0.01,
    # As servers' are, and one in a hundred on busy machines (`member_nats`).
    programs=0.06,
    slow_handshakes=0.01,
    # A SYN has passed what would hold it up (`first_packets_held`).
    closes=True,
)

PRIORS = {GroupSide.CLIENT: _OF_SERVERS, GroupSide.SERVER: _OF_CLIENTS}
