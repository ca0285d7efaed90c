"""Whether connections of two captures start in one rhythm, as the same transfers do and others hardly would.

Pairs whose only ground is size are doubtful, each by itself. Several of them give more evidence: the first data of the
same transfers pass both places after the same intervals, whatever the offset between the clocks, while other transfers
keep intervals of their own. Three hypotheses predict the intervals b of the second capture, given those of the first,
a:

- the same transfers: b is a plus what two delays differ by, a Cauchy distribution as in `starts.times`;
- other transfers, at random: b is exponentially distributed with the mean interval;
- other transfers, of a program that repeats itself: b is distributed about the other intervals of the first capture.

What is counted is the logarithm of the first likelihood against the mean of the others, in which mixtures of the two
take part. If other transfers were shown, the expectation of the ratio would be 1, so that by Markov's inequality it
exceeds e^x with a probability of at most e^-x. Periodic starts gain nothing. Pairings of n connections that were chosen
out of more pay the logarithm of the number of choices. Connections that start together count as one: one cause may
start all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from detector.pairing.starts.times import START_SPREAD_NS, start_nats
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array
from pepscope.results.verdicts import FloatArray

#: Starts nearer to each other than this are one event: what two starts spread by.
TOGETHER_NS = 2 * START_SPREAD_NS

#: The difference of two starts' delays is Cauchy distributed with the sum of their widths.
_INTERVAL_SPREAD_S = 2 * START_SPREAD_NS / 1e9

#: How much of the other transfers starts at random, in the hypotheses that they do: all, half, none.
_RANDOM_SHARES = (1.0, 0.5, 0.0)


def first_data_ns(connection: Connection) -> int:
    """When the first data passed, else the first packet.

    A split opens its second connection in its own time, and a radio link may take seconds to carry the first SYN.
    """
    times = (connection.up.first_data_time_ns, connection.down.first_data_time_ns)
    return min((time for time in times if time is not None), default=connection.first_time_ns)


def agreement_nats(starts: Sequence[tuple[int, int]], choices: int) -> list[float]:
    """Log-likelihood ratio (nats) for one transfer against two, by pair, from the starts (ns) of all pairs.

    `starts` are the start times of each pair in the first and the second capture; `choices` is how many connections of
    the capture with more of them the pairs were chosen from. What all pairs show together is lowered for each by how
    far its own start difference is from the others' median. Never negative.
    """
    if len(starts) < 2:
        return [0.0] * len(starts)
    times = np.array(starts, np.int64)
    together = _intervals_nats(starts_apart(times)) - math.log(math.comb(max(choices, len(starts)), len(starts)))
    gaps = times[:, 1] - times[:, 0]
    late = gaps - int(np.median(gaps))
    return [max(0.0, together + start_nats(gap)) for gap in late.tolist()]


def starts_apart(times: Int64Array) -> Int64Array:
    """Starts (ns) of pairs in both captures, in order, without those that begin together with the one before in either
    capture."""
    kept: list[tuple[int, int]] = []
    for one, two in times[np.lexsort((times[:, 1], times[:, 0]))].tolist():
        if not kept or (one - kept[-1][0] > TOGETHER_NS and abs(two - kept[-1][1]) > TOGETHER_NS):
            kept.append((one, two))
    return np.array(kept, np.int64)


def _intervals_nats(events: Int64Array) -> float:
    """Log-likelihood ratio of all intervals."""
    ones, twos = np.diff(events[:, 0]) / 1e9, np.diff(events[:, 1]) / 1e9
    if len(ones) < 2:
        return 0.0  # one interval is its own mean, and there is no other
    mean_s = max(float(np.abs(twos).mean()), _INTERVAL_SPREAD_S)
    # Intervals are negative where pairs are crossed: starts at random explain them no worse than short ones.
    at_random = np.exp(-np.abs(twos) / mean_s) / mean_s
    again = _density(twos[:, None] - ones[None, :])
    np.fill_diagonal(again, 0.0)
    repeated = again.sum(axis=1) / (len(ones) - 1)
    other = [float(np.log(share * at_random + (1.0 - share) * repeated).sum()) for share in _RANDOM_SHARES]
    return float(np.log(_density(twos - ones)).sum()) - float(np.logaddexp.reduce(other)) + math.log(len(other))


def _density(difference_s: FloatArray) -> FloatArray:
    return 1.0 / (math.pi * _INTERVAL_SPREAD_S * (1.0 + (difference_s / _INTERVAL_SPREAD_S) ** 2))
