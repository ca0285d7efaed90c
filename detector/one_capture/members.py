"""Numbers of connections as those of members, the far hosts that connections of one group lead to; and of groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def seconds(time_ns: npt.NDArray[np.int64]) -> Floats:
    """Seconds; NaN where negative, which stands for what was not seen."""
    found: Floats = np.where(time_ns < 0, np.nan, time_ns / 1e9)
    return found


def quantiles(values: Floats, member: Ints, members: int, share: float) -> Floats:
    """The lower quantile of the known values of each member; NaN where there is none. Negative members are left out."""
    known = np.flatnonzero(~np.isnan(values) & (member >= 0))
    order = known[np.lexsort((values[known], member[known]))]
    count = np.bincount(member[order], minlength=members)
    first = np.cumsum(count) - count
    some = np.flatnonzero(count)
    found = np.full(members, np.nan)
    found[some] = values[order[first[some] + ((count[some] - 1) * share).astype(np.int64)]]
    return found


def shares(happens: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_], member: Ints, members: int) -> Floats:
    """Of the connections of each member of which it is known, the share to which something happens; NaN of none."""
    counts = np.bincount(member[known & (member >= 0)], minlength=members)
    found = np.bincount(member[known & happens & (member >= 0)], minlength=members)
    share = np.full(members, np.nan)
    np.divide(found, counts, out=share, where=counts > 0)
    return share


def most_frequent(values: Ints, member: Ints, members: int) -> Ints:
    """The most frequent value of each member's connections, the lowest of equally frequent ones; -1 where none is known
    (negative values are not)."""
    known = (values >= 0) & (member >= 0)
    pairs, count = np.unique(np.stack([member[known], values[known]]), axis=1, return_counts=True)
    found = np.full(members, -1, np.int64)
    order = np.lexsort((-pairs[1], count, pairs[0])) if len(count) else np.zeros(0, np.int64)
    found[pairs[0, order]] = pairs[1, order]  # of several rows of one member the last counts
    return found
