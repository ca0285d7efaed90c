"""Other ports as references: what a host's round trips on one port say of a leg behind another.

Many split points take some ports only, HTTP most of all. Handshakes and acknowledgements of the others go to the host
itself, as ICMP echo does, so that what they take beyond the round trip of a port that is split is the hidden leg's. End
to end all ports of a host are equally far, unless something held up every round trip that one port has (a radio that
wakes up), or its port leads elsewhere. Ports that are equally far say nothing by that: all may be split, or none;
unless one of them shows that it is not (`equal_ports`).

At the server's side hosts are clients, and what a client sends to a port that no box takes comes from the client, the
hidden leg farther away. A box that took both ports would stand at one distance, so that `farther_ports` are not judged
there together with the others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.near.near_ends import all_slow_share
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.likelihoods.references.reference_nats import beyond_nats, member_variation_s
from detector.one_capture.likelihoods.timing_tables import CLASSES, HIDDEN_S, OPENING, Floats
from detector.one_capture.likelihoods.waiting_handshakes import held_up_shares
from detector.one_capture.members import Ints, numbered, quantiles
from detector.one_capture.networks import Places
from pepscope.results.verdicts import GroupSide

#: Of each network the ports with most connections that serve as references: scans have thousands.
_MOST_PORTS = 8

#: A port is farther away than others where it is so by the shortest leg, and by so many times what round trips vary.
_TIMES_VARIATION = 2.0

#: The quantile of answers that counts as fast.
_FAST = 0.2

_HANDSHAKE = CLASSES.index("handshake")


class PortReferences(Struct, frozen=True):
    """The best reference of each group among the other ports of its network, by member.

    `nats` are log-likelihoods of each of `HIDDEN_S` against no leg (columns), all zero where nothing is known.
    `share_nats` is the logarithm of how probable it is, given a split of the member's group, that its box leaves that
    port alone; -inf where no port shows a leg that outweighs this. `round_trip_s` is that port's, NaN where it tells
    nothing.
    """

    nats: Floats
    share_nats: Floats
    round_trip_s: Floats

    def of(self, members: Ints | slice) -> PortReferences:
        """Those of these members, in this order."""
        return PortReferences(self.nats[members], self.share_nats[members], self.round_trip_s[members])

    def by_group(self, group: Ints, groups: int) -> Floats:
        """`share_nats` by group; `group` is that of each member."""
        found = np.full(groups, -np.inf)
        found[group] = self.share_nats
        return found


def port_references(timing: ExchangeTiming, places: Places, side: GroupSide) -> PortReferences:
    """Compare the least round trips of each host by port; `side` is that of the capture."""
    members, groups = len(places.member_group), len(places.network)
    network = np.unique(places.network, return_inverse=True)[1].astype(np.int64)
    host = np.unique(places.member_address, return_inverse=True)[1].astype(np.int64)
    nats, best, others = np.zeros((members, len(HIDDEN_S))), np.zeros(groups), np.zeros(groups)
    round_trip_s = np.full(members, np.nan)
    connections, varies_s = timing.timed_connections, member_variation_s(timing, places)
    for reference in reference_members(network, places.member_group, connections, host):
        known = np.flatnonzero(reference >= 0)
        known = known[timing.near_s[reference[known]] > timing.near_s[known]]
        if side is GroupSide.SERVER:
            known = known[~_are_as_late(timing, known, reference[known])]
        found = farther_nats(timing.near_s, varies_s, connections, known, reference[known], PRIORS[side].elsewhere)
        group = places.member_group[known]
        said = np.bincount(group, weights=np.maximum(found.max(axis=1), 0.0), minlength=groups)
        others += np.bincount(places.member_group[reference >= 0], minlength=groups) > 0
        is_best = said > best
        best = np.where(is_best, said, best)
        nats[is_best[places.member_group]], round_trip_s[is_best[places.member_group]] = 0.0, np.nan
        better = is_best[group]
        nats[known[better]], round_trip_s[known[better]] = found[better], timing.near_s[reference[known[better]]]
    share_nats = np.log((1 - PRIORS[side].all_ports) / np.maximum(others, 1))
    shows = (best + share_nats > 0)[places.member_group]
    nats[~shows] = 0.0
    share_nats = np.where(shows, share_nats[places.member_group], -np.inf)
    return PortReferences(nats, share_nats, np.where(shows, round_trip_s, np.nan))


def _are_as_late(timing: ExchangeTiming, member: Ints, reference: Ints) -> npt.NDArray[np.bool_]:
    """Of which of these members applications answer no later, by half of how much farther away their `reference` is,
    than there: a leg would delay their answers by all of that, but for TLS handshakes, which may end before it."""
    answers_s = np.where(timing.kind % OPENING == _HANDSHAKE, np.nan, timing.excess_s)
    fast_s = quantiles(answers_s, timing.member, len(timing.near_s), _FAST)
    farther_s = timing.near_s[reference] - timing.near_s[member]
    return np.asarray(fast_s[member] - fast_s[reference] < farther_s / 2)


def farther_ports(timing: ExchangeTiming, places: Places) -> npt.NDArray[np.bool_]:
    """By group, whether its hosts (the middle one of them) are farther away on its port than on their nearest one."""
    groups, network = len(places.network), np.unique(places.network, return_inverse=True)[1]
    address = np.unique(places.member_address, return_inverse=True)[1]
    host, first = numbered([network[places.member_group], address])
    beyond_s = timing.near_s - quantiles(timing.near_s, host, len(first), 0.0)[host]
    varies_s = timing.of_groups(member_variation_s(timing, places), places.member_group, groups)
    least_s = np.fmax(HIDDEN_S[0], _TIMES_VARIATION * varies_s)
    return np.asarray(timing.of_groups(beyond_s, places.member_group, groups) > least_s)


def reference_members(network: Ints, member_group: Ints, connections: Ints, host: Ints) -> list[Ints]:
    """By port of each network, those with most connections first: the member of each member's host on that port, -1
    where the host has none there, or it is the member's own."""
    groups, hosts = len(network), int(host.max(initial=-1)) + 1
    of_group = np.bincount(member_group, weights=connections, minlength=groups)
    order = np.lexsort((-of_group, network))
    rank = np.arange(groups) - np.searchsorted(network[order], network[order])
    key = member_group * hosts + host  # ascends with the group alone
    by_key = np.argsort(key, kind="stable")
    found = []
    for place in range(min(_MOST_PORTS, int(rank.max(initial=-1)) + 1)):
        port = np.full(int(network.max(initial=-1)) + 1, -1, np.int64)
        port[network[order[rank == place]]] = order[rank == place]
        wanted = port[network[member_group]]
        at = np.searchsorted(key[by_key], wanted * hosts + host)
        other = by_key[np.minimum(at, len(by_key) - 1)]
        is_there = (wanted >= 0) & (wanted != member_group) & (key[other] == wanted * hosts + host)
        found.append(np.where(is_there, other, -1))
    return found


def farther_nats(
    near_s: Floats, varies_s: Floats, connections: Ints, member: Ints, reference: Ints, elsewhere: float
) -> Floats:
    """Log-likelihoods by member and leg, against no leg, of how much longer its `reference` takes."""
    varying_s, both = np.fmax(varies_s[member], varies_s[reference]), np.minimum(*connections[[member, reference]])
    late = np.maximum(held_up_shares(varying_s, connections[reference]), elsewhere)
    nats = beyond_nats(near_s[reference] - near_s[member], varying_s, both, late, all_slow_share(both))
    found: Floats = nats[:, 1:] - nats[:, :1]
    return found
