"""Ports that are end to end by what they answer, and as near as a port that looks split: the split must reach both.

A split point that takes one port alone is nearer than the hosts, by the hidden leg. So where another port of the same
hosts is as near, the split point takes that as well; and where what is said on that one shows no leg, there is none. A
service that calls another one for each answer, beside ports that answer at once, is found so.

What answers that other port at once may be the split point itself (a cache that holds all, a resolver, a portal that
plays the host): that bounds what equal ports say, and they clear none.
"""

from __future__ import annotations

import numpy as np

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.likelihoods.references.port_references import farther_nats, reference_members
from detector.one_capture.likelihoods.references.reference_nats import member_variation_s
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import numbered
from detector.one_capture.networks import Places
from pepscope.results.verdicts import GroupSide

#: How often a split point that takes one port plays the hosts on another one, which it does not split: assumed, as
#: often as TLS ends at one, or one is a cache.
_PLAYS_HOSTS = 0.1


def equal_port_nats(
    timing: ExchangeTiming, places: Places, side: GroupSide, split: Floats, leg_nats: Floats, most_split: float
) -> Floats:
    """Log-likelihoods by group of its hosts' distances on its other ports, behind a split against none; 0 at most.

    `split` is how probable a split of each group is by what else is known, `leg_nats` the log posterior of each
    member's leg. Groups are asked that are split more probably than beforehand. Ports count that are split with
    `most_split` at most, each as much as another (the nearest would be so by chance), and hosts whose acknowledgements
    time the near leg.
    """
    priors, groups = PRIORS[side], len(places.network)
    network = np.unique(places.network, return_inverse=True)[1].astype(np.int64)
    address = np.unique(places.member_address, return_inverse=True)[1].astype(np.int64)
    host = numbered([network[places.member_group], address])[0]
    varies_s, connections = member_variation_s(timing, places), timing.timed_connections
    before = priors.split / (1 - priors.split)
    # Of the others nothing is taken away.
    asked = (split[places.member_group] > priors.split) & ~np.isnan(timing.plain_s)
    summed, ports = np.zeros(groups), np.zeros(groups)
    for reference in reference_members(network, places.member_group, connections, host):
        known = np.flatnonzero((reference >= 0) & asked)
        other = split[places.member_group[reference[known]]]
        known = known[~np.isnan(timing.near_s[reference[known]]) & (other <= most_split)]
        if not len(known):
            continue
        nats = farther_nats(timing.near_s, varies_s, connections, known, reference[known], priors.elsewhere)
        legs = np.exp(leg_nats[known] - leg_nats[known].max(axis=1, keepdims=True))
        of_member = (legs * np.exp(np.minimum(nats, 0.0))).sum(axis=1) / legs.sum(axis=1)
        group = places.member_group[known]
        # A leg too short to show makes no port nearer.
        too_short = float(np.mean(priors.too_short))
        shown = np.log((1 - too_short) * of_member + too_short)
        apart = np.exp(np.bincount(group, weights=shown, minlength=groups))
        other = np.zeros(groups)
        other[group] = split[places.member_group[reference[known]]]
        both, alone = priors.all_ports * other / (1 - other) / before, 1 - priors.all_ports
        is_there = np.bincount(group, minlength=groups) > 0
        summed += np.where(is_there, (both + alone * apart) / (both + alone), 0.0)
        ports += is_there
    mean = np.where(ports > 0, summed / np.maximum(ports, 1), 1.0)
    found: Floats = np.log((1 - _PLAYS_HOSTS) * mean + _PLAYS_HOSTS)
    return found
