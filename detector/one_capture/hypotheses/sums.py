"""Sums of log-likelihoods: over what may be, over legs and delays, over the members of groups."""

from __future__ import annotations

from math import prod

import numpy as np

from detector.one_capture.likelihoods.timing_tables import (
    HIDDEN_S,
    IRREGULAR_SHARES,
    LATE_LEAST_S,
    LATE_SHARES,
    QUEUED_SHARES,
    WORK_BEHIND_S,
    Floats,
    TimingTables,
)
from detector.one_capture.members import Ints

#: Columns that are no more than this, of so many numbers in all, are summed across rows: NumPy takes several times as
#: long along a short last axis.
_FEW_COLUMNS, _MANY_NUMBERS = 8, 512

#: How probable delays are that are no shorter than each leg (nats).
DELAYS_BEYOND: Floats = np.log([LATE_SHARES[leg_s <= LATE_LEAST_S].sum() for leg_s in HIDDEN_S])


def sum_nats(rows: Floats) -> Floats:
    """The logarithm of the sum of the probabilities along the last axis."""
    if rows.shape[-1] < _FEW_COLUMNS and rows.size >= _MANY_NUMBERS:
        return _sum_of_first_axis(np.array(np.moveaxis(rows, -1, 0), order="C"))
    most = np.maximum.reduce(rows, axis=-1, keepdims=True)
    shares = rows - most
    np.exp(shares, out=shares)
    summed: Floats = np.log(np.add.reduce(shares, axis=-1))
    summed += most[..., 0]
    return summed


def _sum_of_first_axis(columns: Floats) -> Floats:
    """The same along the first axis; `columns` are written over."""
    most = np.maximum.reduce(columns, axis=0)
    columns -= most
    np.exp(columns, out=columns)
    summed: Floats = np.log(np.add.reduce(columns, axis=0))
    summed += most
    return summed


def any_leg(nats: Floats) -> Floats:
    """Any leg of the last axis, one as probable as another."""
    mean: Floats = sum_nats(nats) - np.log(nats.shape[-1])
    return mean


def any_delay(nats: Floats, closes: Floats | float = 0.0) -> Floats:
    """Log-likelihoods by member of answers that are late by any one delay, given those of `closes` by delay."""
    return sum_nats(nats[:, TimingTables.LATE] + closes + np.log(LATE_SHARES))


def any_irregular(nats: Floats) -> Floats:
    """Log-likelihoods by member of irregular answers, of people or of programs that have now little, now much to do."""
    return sum_nats(nats[:, TimingTables.IRREGULAR] + np.log(IRREGULAR_SHARES))


def any_irregular_behind(nats: Floats) -> Floats:
    """The same by member and leg behind a leg: people take what they take without one, and programs as well, or on top
    of the leg, one as often as the other."""
    irregular = nats[:, TimingTables.IRREGULAR] + np.log(IRREGULAR_SHARES)
    on_top = nats[:, TimingTables.WORK_BEHIND].reshape(len(nats), -1, len(WORK_BEHIND_S))
    by_work = np.logaddexp(
        sum_nats(irregular[:, 1:])[:, None], sum_nats(on_top) + np.log((1 - IRREGULAR_SHARES[0]) / len(WORK_BEHIND_S))
    )
    found: Floats = np.logaddexp(irregular[:, :1], by_work - np.log(2.0))
    return found


def any_queue(nats: Floats) -> Floats:
    """Any delay of a queue in the leg, given the log-likelihoods by delay."""
    possible = QUEUED_SHARES > 0
    return sum_nats(nats[:, possible] + np.log(QUEUED_SHARES[possible]))


def delays_beyond_legs(late: Floats) -> Floats:
    """Log-likelihoods by member and leg, given those by delay: of any delay but those that are shorter than the leg."""
    order = np.argsort(-LATE_LEAST_S, kind="stable")
    shares = LATE_SHARES[order]
    summed = np.logaddexp.accumulate(late[:, order] + np.log(shares), axis=1) - np.log(np.cumsum(shares))
    count = np.searchsorted(-LATE_LEAST_S[order], -HIDDEN_S, side="right")
    return summed[:, count - 1]


def by_group(values: Floats, group: Ints, groups: int) -> Floats:
    """Sums over the members of each group; members are the last axis of `values`."""
    rows = values.reshape(prod(values.shape[:-1]), len(group))
    place = group + groups * np.arange(len(rows))[:, None]
    summed = np.bincount(place.ravel(), weights=rows.ravel(), minlength=groups * len(rows))
    return np.asarray(summed, np.float64).reshape(*values.shape[:-1], groups)


def by_common_habit(habit_nats: Floats, nats: Floats, group: Ints, groups: int) -> Floats:
    """Sums over the members of each group, which have one habit in common.

    `habit_nats` are the log probabilities of habits, `nats` by habit (rows) and member.
    """
    return sum_nats(by_group(nats, group, groups).T + habit_nats)


def legs_by_group(rows: Floats, group: Ints, groups: int) -> Floats:
    """The same by leg, which columns count; `group` ascends."""
    summed = np.zeros((groups, rows.shape[1]))
    first = np.flatnonzero(np.diff(group, prepend=-1))
    summed[group[first]] = np.add.reduceat(rows, first, axis=0)
    return summed


def log(probability: float) -> float:
    """The logarithm of a probability, which may be zero."""
    return float(np.log(probability)) if probability > 0 else -np.inf
