"""Whether the answers that two captures show vary alike, as those of one transfer each do.

Programs that one cause starts, or one timetable, begin together, and agree on a clock relation though they are
strangers'. But their hosts answer each in its own time. How long an answer takes at the server's side is part of how
long it takes at the client's, which varies by the path and by a proxy as well: the answers of one transfer each
correlate by the ratio of their spreads, those of strangers do not. With z = artanh r of the correlation of ranks, z_1
of the ratio of their quartile ranges, less its error, and m independent answers (Fisher 1915, "Frequency distribution
of the values of the correlation coefficient", Biometrika 10), the log-likelihood ratio is

    (m - 3) (z^2 - (z - z_1)^2) / 2.

It only speaks against one transfer: answers of strangers vary alike where the same content takes its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from detector.pairing.starts.clock_bounds import TIME_ERROR_NS, Pair
from detector.pairing.starts.quantiles import quantiles
from detector.pairing.starts.ranks import SUREST, rank_correlation
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array

#: What is asked fits in one segment of any path (IPv6 carries 1,280 bytes, RFC 8200): more of it may arrive at the
#: server with other gaps than it left with, which no answer at the client's side shows.
_MOST_ASKED_BYTES = 1_200

#: With fewer, no correlation is rare.
_FEWEST = 4

#: By how much the logarithm of the ratio of two quartile ranges errs, times the root of how many values they are of:
#: less than the 1.17 of one range of a normal distribution, since ranges that are alike err alike.
_RANGES_ERROR = 1.0


def answers_nats(pairs: Sequence[Pair]) -> float:
    """Log-likelihood ratio (nats) for one transfer each against strangers, by their answers; never positive.

    Answers are compared with others of the same lengths; where lengths differ between the captures, a proxy has a
    dialogue of its own.
    """
    of_lengths: dict[tuple[int, int], list[tuple[int, int]]] = {}
    # The order tells how many are independent: that of neither capture alone, so that either may be the first.
    for one, two in sorted(pairs, key=lambda pair: pair[0].first_time_ns + pair[1].first_time_ns):
        answers = _answered_ns(one), _answered_ns(two)
        if _lengths(one) == _lengths(two) and answers[0] is not None and answers[1] is not None:
            of_lengths.setdefault(_lengths(one), []).append((answers[0], answers[1]))
    rests = [_about_median(np.array(each, np.int64)) for each in of_lengths.values() if len(each) >= _FEWEST]
    return min(0.0, _nats(np.concatenate(rests))) if rests else 0.0


def _nats(rests: Int64Array) -> float:
    correlation, independent = rank_correlation(rests)
    lower, upper = quantiles(rests, [0.25, 0.75])
    less_ns, more_ns = sorted((upper - lower).tolist())
    if independent < _FEWEST or not more_ns:
        return 0.0
    found = math.atanh(max(-SUREST, min(correlation, SUREST)))
    ratio = less_ns / math.hypot(more_ns, TIME_ERROR_NS)
    same = math.atanh(ratio * math.exp(-_RANGES_ERROR / math.sqrt(independent)))
    return (independent - 3) / 2 * (found**2 - (found - same) ** 2)


def _about_median(answers: Int64Array) -> Int64Array:
    rests: Int64Array = answers - np.median(answers, axis=0).astype(np.int64)
    return rests


def _lengths(connection: Connection) -> tuple[int, int]:
    return connection.up.stream_bytes, connection.down.stream_bytes


def _answered_ns(connection: Connection) -> int | None:
    """From the first data up to the first data down, or the other way round, negative, where the server speaks first;
    None where something lacks, or what is asked is long."""
    up, down = connection.up, connection.down
    if up.first_data_time_ns is None or down.first_data_time_ns is None:
        return None
    answered_ns = down.first_data_time_ns - up.first_data_time_ns
    asked = up if answered_ns >= 0 else down
    return answered_ns if asked.stream_bytes <= _MOST_ASKED_BYTES else None
