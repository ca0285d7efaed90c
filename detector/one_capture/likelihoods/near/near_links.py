"""The slowest link of the near leg, by how far acknowledgements of data that left back to back lie apart.

At the server's side a near leg that ends at a split point is a wire between machines; one that ends at the client holds
the client's access link, which spreads the segments of a train and so their acknowledgements (`crates/evidence`,
trains.rs). What a client takes to answer, always or sometimes, changes nothing of it: acknowledgements are the stack's.

Shares of spreads are learned from networks of known truth (`python -m benchmarks.one_ended_learning.links`), by the
bytes of the trains, since links that bundle acknowledgements make short ones look fast, and by whether round trips are
steady, since both measure one path. What a fast near leg says for a split is bounded: clients in data centres and on
fast fibre have one, too, how many depends on the service, and no table can hold it.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import Any

import numpy as np
from msgspec import json

from detector.one_capture.likelihoods.other_ports import ALL_SPLIT
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from pepscope.captures.senders import Senders

#: Payload of a full segment, for spreads in seconds a segment.
FULL_SEGMENT_BYTES = 1460

#: Bounds of the classes of spread (s a full segment), of bytes in trains, and of steady round trips (s).
SPREAD_EDGES_S = (2e-5, 4e-5, 8e-5, 1.5e-4, 3e-4, 6e-4, 1.2e-3)
BYTES_EDGES = (8_000, 30_000)
STEADY_S = 0.0015

#: Bounds of what a spread says against a split and for it, in nats: wires may be full, and clients may have one.
_MOST_AGAINST, _MOST_FOR = -3.0, 1.2


def group_link_nats(senders: Senders, side: int, group: Ints, network: Ints, variation_s: Floats) -> Floats:
    """Log-likelihood ratio by group, split against end to end, of the spread of trains that this side acknowledged.

    `group` is by connection; `network` and `variation_s` are by group. A group without trains is judged by those of its
    network's other ports, as far as a split of one is one of all.
    """
    groups = len(network)
    train_bytes, spread_s = spreads_s(senders, side, group, groups)
    others_bytes, others_s = spreads_s(senders, side, network[group], groups)
    of_others = link_nats(others_s[network], others_bytes[network], variation_s)
    borrowed = np.log(ALL_SPLIT * np.exp(of_others) + 1 - ALL_SPLIT)
    found: Floats = np.where(np.isnan(spread_s), borrowed, link_nats(spread_s, train_bytes, variation_s))
    return found


def spreads_s(senders: Senders, side: int, group: Ints, groups: int) -> tuple[Floats, Floats]:
    """By group the bytes of trains that this side acknowledged, and their spread (s a full segment, NaN of none);
    `group` is by connection."""
    rows = slice(side, None, 2)
    train_bytes, spread_ns = (
        np.bincount(group, weights=column[rows].astype(np.float64), minlength=groups).astype(np.float64)
        for column in (senders.train_bytes, senders.train_spread_ns)
    )
    spread_s = np.full(groups, np.nan)
    np.divide(spread_ns * (FULL_SEGMENT_BYTES / 1e9), train_bytes, out=spread_s, where=train_bytes > 0)
    return train_bytes, spread_s


def link_class(spread_s: Floats, train_bytes: Floats, variation_s: Floats) -> tuple[Ints, Ints, Ints]:
    """The classes of groups: whether round trips are not known to be steady, of bytes, and of spread."""
    restless = ~(variation_s < STEADY_S)
    return (
        restless.astype(np.int64),
        np.searchsorted(BYTES_EDGES, train_bytes, side="right").astype(np.int64),
        np.searchsorted(SPREAD_EDGES_S, spread_s, side="right").astype(np.int64),
    )


def link_nats(spread_s: Floats, train_bytes: Floats, variation_s: Floats) -> Floats:
    """Log-likelihood ratio by group, split against end to end, of the spread; 0 where no train was seen."""
    nats = _ratios()[link_class(np.nan_to_num(spread_s), train_bytes, variation_s)]
    found: Floats = np.where(np.isnan(spread_s), 0.0, nats)
    return found


@cache
def _ratios() -> Floats:
    learned: dict[str, Any] = json.decode(get_data(__package__, "near_links.json") or b"{}")
    nats: Floats = np.clip(np.log(learned["split"]) - np.log(learned["end"]), _MOST_AGAINST, _MOST_FOR)
    return nats
