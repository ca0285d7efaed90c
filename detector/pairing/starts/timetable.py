"""Whether starts repeat intervals, as those of timers do, so that agreement of them is one coincidence and no more.

Programs that begin by a timetable in several places agree throughout once they agree at all. Of the starts of one
capture, in order, each from the third on is *repeated* if its interval to an earlier start is an interval between two
earlier ones, else *new*. Two hypotheses predict which:

- a timetable: a start is repeated with an unknown probability, any alike (Laplace's rule of succession);
- chance: it is repeated with the probability that the next start is near any that earlier intervals predict, which is
  the share of the time after the last one, twice the mean interval long, that these predictions cover.

Where starts are so dense that any would be repeated, chance predicts that as well. Starts are looked at some at a
time, since many predict any time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.pairing.starts.agreement import TOGETHER_NS
from pepscope.captures.packets import Int64Array

#: Starts that predict each other: more cover all of the time that follows.
_AT_A_TIME = 16
#: So many starts show whether they repeat.
_MOST = 32 * _AT_A_TIME

#: Chance is never surer than this of what comes next: programs may be late.
_LEAST_SHARE = 1e-3


class Repetition(Struct, frozen=True):
    """What starts show for a timetable against chance, as a log-likelihood ratio (nats), and how many are new."""

    nats: float
    new: int


def repetition(starts_ns: Sequence[int], tolerance_ns: float) -> Repetition:
    """How starts (ns, in order) repeat intervals, which are equal if they differ by no more than a tolerance (ns)."""
    repeated = new = 0
    by_chance = 0.0
    for begin in range(0, min(len(starts_ns), _MOST), _AT_A_TIME):
        starts = np.array(starts_ns[begin : begin + _AT_A_TIME], np.int64)
        for number in range(2, len(starts)):
            mean_ns = (starts[-1] - starts[0]) / (len(starts) - 1)
            is_repeated, share = _predicted(starts[:number], int(starts[number]), float(mean_ns), tolerance_ns)
            share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
            by_chance += math.log(share if is_repeated else 1 - share)
            repeated, new = repeated + is_repeated, new + (not is_repeated)
    by_timetable = math.lgamma(repeated + 1) + math.lgamma(new + 1) - math.lgamma(repeated + new + 2)
    return Repetition(by_timetable - by_chance, new)


def _predicted(earlier: Int64Array, start: int, mean_ns: float, tolerance_ns: float) -> tuple[bool, float]:
    """Whether intervals between earlier starts predict one, and the share of the time after them that they predict."""
    intervals = np.subtract.outer(earlier, earlier)
    predicted = np.add.outer(earlier, intervals[intervals > 0]).ravel()
    is_repeated = bool((np.abs(predicted - start) <= tolerance_ns).any())
    begin_ns = float(earlier[-1]) + TOGETHER_NS
    end_ns = float(earlier[-1]) + max(2 * mean_ns, TOGETHER_NS + 2 * tolerance_ns)
    near = np.sort(predicted[(predicted > begin_ns - tolerance_ns) & (predicted < end_ns + tolerance_ns)])
    begins, ends = np.maximum(near - tolerance_ns, begin_ns), np.minimum(near + tolerance_ns, end_ns)
    covered_ns = np.maximum(np.minimum(ends[:-1], begins[1:]) - begins[:-1], 0).sum() + (ends - begins)[-1:].sum()
    return is_repeated, float(covered_ns) / max(end_ns - begin_ns, 1.0)
