"""What a network's other ports say of a split of one: middleboxes seldom split a single port.

Hosts have one path on all ports, and so one near end, one hidden leg or one reason to be late. Ports that are alike,
all split or all end to end, are therefore judged as one group whose members are hosts, so that what causes all to be
late, or to close late, counts once. What each port shows by itself tells whether they are alike. Ports of a server that
answers alone confirm that it has a leg, and not where.

At the server's side all ports together may be less surely split than each of them: a client that takes its time makes
every port look split, and all together show that it does. So where ports speak for a split of one another, what all
together say raises or lowers each. Ports that look end to end say little against one that does not, since boxes for
one port (HTTP) are common, and clear none. Ports that the same clients reach from farther away (`farther_ports`) are
another network there: one box that took both would stand at one distance.

At the client's side the same holds of ports on which each host is late by one and the same time: what explains that on
one of them (an edge that fetches from afar, a program, a split point where TLS ends) explains it on all, so that none
is more surely split than all of them together. A box for one port does not make the others late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.posteriors import BY_MEMBER, Posterior
from detector.one_capture.likelihoods.priors import PRIORS, Priors
from detector.one_capture.likelihoods.timing_tables import LEG_NATS, Floats
from detector.one_capture.members import Ints
from detector.one_capture.networks import Places
from pepscope.results.verdicts import GroupSide

#: What ports that look end to end say at most against another's split at the server's side (nats). They take away no
#: more than that port's own evidence for a split. Chosen on simulated seeds 5981 to 5984 (docs/decisions/112).
_MOST_AGAINST = 1.0

#: Ports are compared with those that are split more probably than this.
_WORTH_COMPARING = 0.5

#: Of ports of one host so many that are late by times of their own are compared with others: a program that listens on
#: hundreds of ports (passive FTP, peers behind one address) is compared with no more of them.
_MOST_OF_A_HOST = 16

#: How probable it must be that hosts are late on two ports by one time.
_LEAST_ALIKE = 0.95

#: Answers of one time are within two steps of `HIDDEN_S` (10 %) of each other: what a program computes beside it.
_STEPS_APART = 2

#: Shares below this one are none; what one port says is never surer (nats).
_LEAST_SHARE, _MOST_NATS = 1e-300, 20.0


def by_distance(columns: Mapping[str, npt.NDArray[Any]], farther: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """Columns of connections as if all led to one port, and those to ports that are `farther` to another one."""
    return {**columns, "server_port": farther.astype(columns["server_port"].dtype)}


def networks_of(where: Places, farther: npt.NDArray[np.bool_]) -> Ints:
    """The network of each group and whether its port is `farther`, as a number in the order of groups `by_distance`:
    twice that of its name, and one more."""
    return 2 * np.asarray(np.unique(where.network, return_inverse=True)[1], np.int64) + farther


def open_networks(split: Floats, answered: npt.NDArray[np.bool_], network: Ints, bounds: tuple[float, float]) -> Ints:
    """Networks with several ports that answered, of one of which others may change the verdict: its split is neither as
    improbable nor as probable as these bounds."""
    count = int(network.max(initial=-1)) + 1
    ports = np.bincount(network[answered], minlength=count)
    is_open = answered & (split > bounds[0]) & (split < bounds[1])
    return np.flatnonzero((ports > 1) & (np.bincount(network[is_open], minlength=count) > 0))


class SharedLeg(Struct, frozen=True):
    """How probable a leg is that ports of a network share, after and `before` anything was seen: one in the network, or
    inside the site as well where one host answers alone. Clients have none inside a site."""

    share: Floats
    before: Floats

    @classmethod
    def of(
        cls, groups: Posterior, one_host: npt.NDArray[np.bool_], speaks_web: npt.NDArray[np.bool_], priors: Priors
    ) -> SharedLeg:
        """Those of groups; `one_host` is whether one answers alone, `speaks_web` whether any speaks TLS or HTTP."""
        at_site = (1 - priors.split) * (priors.balancer + priors.front_ends(speaks_web))
        return cls(groups.split + one_host * groups.site, priors.split + one_host * at_site)

    @property
    def nats(self) -> Floats:
        """What was seen says for a leg."""
        share = np.clip(self.share, _LEAST_SHARE, 1 - 1e-16)
        nats = np.log(share / (1 - share)) - np.log(self.before / (1 - self.before))
        return np.asarray(np.clip(nats, -_MOST_NATS, _MOST_NATS))


def with_alike_ports(
    groups: Posterior,
    answered: npt.NDArray[np.bool_],
    network: Ints,
    own: SharedLeg,
    together: Floats,
    one_host: npt.NDArray[np.bool_],
    side: GroupSide,
) -> Posterior:
    """The posterior of groups on a side given the other groups of their networks that `answered` anything.

    `network`, the `own` legs and whether `one_host` answers alone in the network are by group; `together` is by network
    what all its ports say for a leg as one group (nats; NaN where they are not weighed).
    """
    nats = np.where(answered, own.nats, 0.0)
    others = np.bincount(network, weights=nats)[network] - nats
    confirmed = np.maximum(others, 0.0)
    against = np.clip(-others, 0.0, np.clip(nats, 0.0, _MOST_AGAINST))
    said = np.nan_to_num(np.clip(together[network] - nats, -confirmed, confirmed) - against)
    for_all = np.exp(np.maximum(said, 0.0) if side is GroupSide.CLIENT else said)
    all_ports = PRIORS[side].all_ports
    every, some = own.before * all_ports, own.before * (1 - all_ports)
    odds = (every * for_all + some) / (1 - own.before - some + some * for_all) * np.exp(nats)
    moved = answered & (for_all != 1)
    share = np.where(moved, odds / (1 + odds), own.share)
    legs, rest = (
        np.where(moved, after / np.maximum(before, _LEAST_SHARE), 1.0)
        for after, before in ((share, own.share), (1 - share, 1 - own.share))
    )
    names = ("end", "late", "fleet", "handshakes_answered", "holding")
    return replace(
        groups,
        split=groups.split * legs,
        site=groups.site * np.where(one_host, legs, rest),
        **{name: getattr(groups, name) * rest for name in names},
    )


def ports_of_one_time(groups: Posterior, where: Places, answered: npt.NDArray[np.bool_]) -> Ints:
    """By group, that of the port of its network on which hosts are late by the same times and that is split most
    probably; itself where there is none.

    By the posteriors of hosts' legs: one time for both ports, beside times of their own, which is as probable
    beforehand as that a split point takes some ports only. Ports that are split less probably than beforehand have
    nothing late to explain.
    """
    least_split, all_ports = (getattr(PRIORS[GroupSide.CLIENT], name) for name in ("split", "all_ports"))
    found = np.arange(len(where.network))
    (compared,) = np.nonzero(answered & (groups.split >= least_split))
    compared = compared[np.argsort(-groups.split[compared], kind="stable")]
    least = np.log(_LEAST_ALIKE / (1 - _LEAST_ALIKE)) - np.log(all_ports / (1 - all_ports))
    bounds = np.searchsorted(where.member_group, np.arange(len(found) + 1))
    by_host: dict[tuple[str, str], list[tuple[int, int]]] = {}  # with their places in order of probability
    for place, group in enumerate(compared.tolist()):
        hosts = [(where.network[group], where.member_address[row]) for row in range(*bounds[group : group + 2])]
        firsts = sorted({first for host in hosts for first in by_host.get(host, ())})
        alike = (first for _, first in firsts if _of_one_time(groups.leg_nats, where, bounds, (first, group)) > least)
        found[group] = next(alike, group)
        if found[group] == group and groups.split[group] > _WORTH_COMPARING:
            for host in hosts:
                if len(known := by_host.setdefault(host, [])) < _MOST_OF_A_HOST:
                    known.append((place, group))
    return np.asarray(found, np.int64)


def _of_one_time(leg_nats: Floats, where: Places, bounds: Ints, both: tuple[int, int]) -> float:
    """Log-likelihood of one leg, or time, for each host on both ports, beside legs of their own. None where these are
    not most hosts of the first one: what explains a few of them leaves the others."""
    one, two = ({where.member_address[row]: row for row in range(*bounds[group : group + 2])} for group in both)
    rows = np.asarray([(one[host], two[host]) for host in one if host in two], np.int64).reshape(-1, 2)
    if 2 * len(rows) <= len(one):
        return 0.0
    shares = np.exp(leg_nats[rows] - leg_nats[rows].max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    padded = np.pad(shares[:, 0], ((0, 0), (_STEPS_APART, _STEPS_APART)))
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _STEPS_APART + 1, axis=1).mean(axis=2)
    before = np.exp(LEG_NATS) / len(LEG_NATS)
    return float(np.log(np.maximum((near * shares[:, 1] / before).sum(axis=1), _LEAST_SHARE)).sum())


def no_surer_than_together(
    groups: Posterior, where: Places, together: Posterior, alike: Places, first: Ints
) -> Posterior:
    """The posterior of groups, where none is more surely split than ports of one time are `together`.

    `first` is the group of each group's ports of one time that is split most probably, under whose port `alike` has all
    of them. Ports that together are split no more probably than beforehand are not explained by one time; and a leg is
    not made more probable by naming another place for it.
    """
    number_of = {name: number for number, name in enumerate(zip(alike.network, alike.port.tolist(), strict=True))}
    names = zip(where.network, where.port[first].tolist(), strict=True)
    joint = np.asarray([number_of.get(name, -1) for name in names], np.int64)
    several = np.bincount(first, minlength=len(first))[first] > 1
    least = PRIORS[GroupSide.CLIENT].split
    (moved,) = np.nonzero(several & (joint >= 0) & ~where.asks_proxy)
    of_all = joint[moved]
    is_less = (together.split[of_all] >= least) & (together.split[of_all] < groups.split[moved])
    moved = moved[is_less & ((together.split + together.site)[of_all] <= (groups.split + groups.site)[moved])]
    (members,) = np.nonzero(np.isin(where.member_group, moved))
    hosts = zip(alike.member_group.tolist(), alike.member_address, strict=True)
    number_of_host = {host: number for number, host in enumerate(hosts)}
    rows = np.asarray(
        [number_of_host[int(joint[where.member_group[each]]), where.member_address[each]] for each in members.tolist()],
        np.int64,
    )
    shares = {
        name: getattr(together, name)[rows if name in BY_MEMBER else joint[moved]]
        for name in Posterior.__struct_fields__
        if name != "leg_nats"
    }
    return groups.replaced(Posterior(**shares, leg_nats=groups.leg_nats[members]), moved, members)
