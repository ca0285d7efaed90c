"""What a network's other ports say for a split of one: middleboxes seldom split a single port.

Hosts have one path on all ports, and so one near end, one hidden leg or one reason to be late. Ports that are alike,
all split or all end to end, are therefore judged as one group whose members are hosts, so that what causes all to be
late, or to close late, counts once. What each port shows by itself tells whether they are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.likelihoods.other_ports import ALL_SPLIT
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.networks import Places

#: Shares below this one are none; what one port says is never surer (nats).
_LEAST_SHARE, _MOST_NATS = 1e-300, 20.0


def without_ports(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Columns of connections as if all led to one port."""
    return {**columns, "server_port": np.zeros_like(columns["server_port"])}


def networks_of(where: Places) -> Ints:
    """The network of each group, as a number in the order of their names: as groups without ports are counted."""
    return np.asarray(np.unique(where.network, return_inverse=True)[1], np.int64)


def open_networks(split: Floats, answered: npt.NDArray[np.bool_], network: Ints, bounds: tuple[float, float]) -> Ints:
    """Networks with several ports that answered, one of which is open: its split is neither as improbable nor as
    probable as these bounds."""
    count = int(network.max(initial=-1)) + 1
    ports = np.bincount(network[answered], minlength=count)
    is_open = answered & (split > bounds[0]) & (split < bounds[1])
    return np.flatnonzero((ports > 1) & (np.bincount(network[is_open], minlength=count) > 0))


def with_alike_ports(
    groups: Posterior, answered: npt.NDArray[np.bool_], network: Ints, together: Floats, split_prior: float
) -> Posterior:
    """The posterior of groups given the other groups of their networks that `answered` anything.

    `network` is that of each group, `together` the probability by network that it is split if its ports are alike (NaN:
    they are not weighed); `split_prior` is what each group was given.
    """
    own = np.where(answered, _nats(groups.split, split_prior), 0.0)
    others = np.bincount(network, weights=own)[network] - own
    beyond_own = np.nan_to_num(_nats(together, split_prior)[network] - own)
    for_all = np.exp(np.clip(np.minimum(others, beyond_own), 0.0, None))
    not_all = split_prior * (1 - ALL_SPLIT)
    odds = (split_prior * ALL_SPLIT * for_all + not_all) / (1 - split_prior - not_all + not_all * for_all)
    odds *= np.exp(own)
    raised = answered & (for_all > 1)
    split = np.where(raised, odds / (1 + odds), groups.split)
    rest = np.where(raised, (1 - split) / np.maximum(1 - groups.split, _LEAST_SHARE), 1.0)
    names = ("end", "late", "fleet", "handshakes_answered", "holding", "site")
    return replace(groups, split=split, **{name: getattr(groups, name) * rest for name in names})


def _nats(split: Floats, prior: float) -> Floats:
    """What was seen says for a split, in nats, by its probability before and after."""
    share = np.clip(split, _LEAST_SHARE, 1 - 1e-16)
    nats: Floats = np.clip(np.log(share / (1 - share)) - np.log(prior / (1 - prior)), -_MOST_NATS, _MOST_NATS)
    return nats
