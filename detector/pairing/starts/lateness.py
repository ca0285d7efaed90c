"""Whether starts by a timetable are late by the same in two captures, as those of one transfer each are.

Strangers may share a timetable, but each program wakes, and each host lets it run, in its own time. What a timetable
predicts of a start is when an earlier one of the same lengths was, plus the interval that most starts repeat. The
rests, what the intervals of either capture differ by, are alike in both, up to what the path between varies by, if
these are one transfer's; those of strangers have half of their causes in common at most.

How much of that is luck is asked of the ranks of the rests, whose correlation r an outlier cannot make. With m
independent rests and r_0 the correlation of strangers (Fisher 1915, "Frequency distribution of the values of the
correlation coefficient", Biometrika 10; and the number of orders),

    P(correlation of r or more)  =  exp(-(m - 3) (artanh r - artanh r_0)^2 / 2),  and no less than 1 / m!

The rests may follow each other by a rule: `starts.ranks` says how many are independent.

A probability is no likelihood ratio: p is worth 1 / (p ln^2 p), less than the mean over all powers of p, of which
strangers expect 1 (Vovk and Wang 2021, "E-values: calibration, combination and applications", Ann. Stat. 49).
"""

from __future__ import annotations

import math

import numpy as np

from detector.pairing.starts.agreement import TOGETHER_NS
from detector.pairing.starts.clock_bounds import TIME_ERROR_NS
from detector.pairing.starts.ranks import SUREST, rank_correlation
from pepscope.captures.packets import Int64Array

#: So many starts show whether they are late together; their intervals grow with the square.
_MOST = 512

#: Intervals that differ by more than what begins together are not equal.
_WIDEST_NS = 2 * TOGETHER_NS

#: With fewer, no order is rare.
_FEWEST = 4

#: Correlation of strangers' lateness at most (assumed): hosts of one machine, or asked by one, are late together.
_STRANGERS = 0.5

#: An interval is the timetable's if no more than this share of it is as near again: others differ by what the timetable
#: says, which strangers share.
_NEAR_SHARE = 0.1


def lateness_nats(starts: Int64Array, kinds: Int64Array) -> float:
    """Log-likelihood ratio (nats) for one transfer each against strangers of one timetable; never negative.

    `starts` (ns) of pairs, in the first and the second capture (columns), in order; `kinds` tells which may be of one
    program.
    """
    times, kinds = starts[:_MOST], kinds[:_MOST]
    earlier, later = np.triu_indices(len(times), 1)
    alike = kinds[earlier] == kinds[later]
    chosen = _repeated(times[later[alike], 0] - times[earlier[alike], 0])
    if len(chosen) < _FEWEST:
        return 0.0
    later, first = np.unique(later[alike][chosen], return_index=True)
    earlier = earlier[alike][chosen][first]
    return _nats(times[later] - times[earlier])


def _repeated(intervals: Int64Array) -> Int64Array:
    """Places of those intervals (ns) that are equal, as most are, and have no others near; none where there are none.

    By how much equal ones differ is tried from the most to the error of times.
    """
    order = np.argsort(intervals, kind="stable")
    intervals = intervals[order]
    width_ns = _WIDEST_NS
    while len(intervals) and width_ns >= TIME_ERROR_NS:
        ends = np.searchsorted(intervals, intervals + width_ns, "right")
        begin = int(np.argmax(ends - np.arange(len(intervals))))
        end = int(ends[begin])
        around = intervals[begin] + width_ns * np.array([-1, 2])
        near = int(np.diff(np.searchsorted(intervals, around))[0]) - (end - begin)
        if near <= _NEAR_SHARE * (end - begin):
            return order[begin:end]
        width_ns //= 2
    return order[:0]


def _nats(rests: Int64Array) -> float:
    """What it is worth that starts are late together; never negative."""
    correlation, independent = rank_correlation(rests)
    if correlation <= _STRANGERS or independent <= _FEWEST - 1:
        return 0.0
    beyond = math.atanh(min(correlation, SUREST)) - math.atanh(_STRANGERS)
    luck_nats = min((independent - 3) / 2 * beyond**2, math.lgamma(independent + 1))
    return max(0.0, luck_nats - 2 * math.log(luck_nats)) if luck_nats > 1 else 0.0
