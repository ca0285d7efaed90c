"""Numbers of connections as those of members, the far hosts that connections of one group lead to; and of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope._core import member_quantiles, row_codes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def seconds(time_ns: npt.NDArray[np.int64]) -> Floats:
    """Seconds; NaN where negative, which stands for what was not seen."""
    found: Floats = np.where(time_ns < 0, np.nan, time_ns / 1e9)
    return found


def quantiles(values: Floats, member: Ints, members: int, share: float) -> Floats:
    """The lower quantile of the known values of each member; NaN where there is none. Negative members are left out."""
    columns = np.ascontiguousarray(values, np.float64), np.ascontiguousarray(member, np.int64)
    return member_quantiles(*columns, members, share)


def pooled_quantiles(values: Floats, count: Floats, member: Ints, members: int, share: float | Floats) -> Floats:
    """The same where each value stands for so many samples; `share` may be one for each member."""
    known = np.flatnonzero(~np.isnan(values) & (count > 0) & (member >= 0))
    # Equal values may stand in any order, and small numbers are sorted by their digits: both are faster than `lexsort`.
    order = known[np.argsort(values[known])]
    owner = member[order]
    order = order[np.argsort(owner.astype(np.uint16) if members <= 1 << 16 else owner, kind="stable")]
    owner, samples = member[order], np.cumsum(count[order])
    first, last = np.searchsorted(owner, np.arange(members)), np.searchsorted(owner, np.arange(members), side="right")
    found, some = np.full(members, np.nan), np.flatnonzero(last > first)
    before = samples[first[some]] - count[order[first[some]]]
    wanted = before + np.floor(np.broadcast_to(share, members)[some] * (samples[last[some] - 1] - before - 1))
    found[some] = values[order[np.searchsorted(samples, wanted, side="right")]]
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
    known = np.flatnonzero((values >= 0) & (member >= 0))
    code, first = numbered([member[known], values[known]])
    count, owner, value = np.bincount(code), member[known][first], values[known][first]
    order = np.lexsort((-value, count, owner))
    found = np.full(members, -1, np.int64)
    found[owner[order]] = value[order]  # of several rows of one member the last counts
    return found


def codes(columns: Iterable[npt.NDArray[Any]]) -> Ints:
    """A number for each row of these columns, equal for equal rows."""
    return numbered(columns)[0]


def numbered(columns: Iterable[npt.NDArray[Any]]) -> tuple[Ints, Ints]:
    """A number for each row of these columns, equal for equal rows, and the first row of each number.

    Numbers count the distinct rows from 0, by the first column, then by the second and so on.
    """
    return row_codes([np.ascontiguousarray(column, _WIDEST.get(column.dtype.str[1:], np.int64)) for column in columns])


#: What holds the numbers of a type that 64 bits with a sign do not.
_WIDEST: Mapping[str, type[Any]] = {"u8": np.uint64, "f8": np.float64, "f4": np.float64}
