"""Answers of one moment in several connections of a host: whether they are late by the same.

What queues in a hidden leg delays all that crosses it at one moment by about the same, whichever connection it belongs
to. Programs, people and slow devices draw each answer's delay by itself, as far as nothing that they share delays it.
So two answers of one host and kind, in two connections, to questions that were asked within `_TOGETHER_NS`, are
compared: how far apart they are (of the logarithm of their excess) beside how far apart answers of the same host are
that have nothing to do with each other. The rank among these is uniform where each is drawn by itself, whatever the
shape of delays is. Where answers hardly vary, it tells nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints, numbered

#: Questions that are asked within this time find the same queue: it drains by no more.
_TOGETHER_NS = 50_000_000

#: Answers that have nothing to do with each other are at least so far apart.
_APART_NS = 500_000_000

#: What two clocks' ticks and processors add to any answer (s): differences below it tell nothing.
_FINEST_S = 0.001

#: Answers vary where those that are apart differ by so much (median of the logarithm's differences); and where so many
#: pairs that are apart show by how much.
_LEAST_SPREAD, _FEWEST_APART = 0.2, 3

#: Bounds of the classes of ranks, and how frequent each is where something shared delays answers: fitted by EM to 234
#: groups behind legs (simulated seeds 5801, 5802, kernels of seed 3923), of which a part has something shared. Alone,
#: each is as frequent as it is wide.
_RANK_EDGES = np.array([0.1, 0.25, 0.5, 0.75])
_SHARED = np.array([0.46, 0.2, 0.12, 0.12, 0.1])
_ALONE = np.diff(np.concatenate([[0.0], _RANK_EDGES, [1.0]]))

#: Correlation of pairs of one host: n of them count as n / (1 + r (n - 1)).
_CORRELATION = 0.2

#: How often answers that vary are late together. Behind legs: in that fit all of 30 groups over UMTS, 43 and 70 % of 38
#: over LTE. Of devices that delay closes as well: 57 % of simulated ones. Of clients that are late in another way: none
#: of 81 that think, credited as one in ten.
_SHARED_BY_QUEUES, _SHARED_BY_DEVICES, _SHARED_BY_LATE = 0.8, 0.57, 0.1

#: Differences of logarithms are below this.
_MOST_DIFFERENCE = 64.0


class AnswerPairs(Struct, frozen=True):
    """Two answers of one moment: the exchange that was asked `later`, and its `rank` among differences of answers that
    have nothing to do with each other (0: they are alike, 1: nothing is further apart)."""

    later: Ints
    rank: Floats


def answer_pairs(timing: ExchangeTiming, question_ns: Ints) -> AnswerPairs:
    """The pairs of all hosts whose answers vary; `question_ns` is when each exchange of `timing` was asked."""
    host, _ = numbered([timing.member, timing.kind])
    order = np.lexsort((question_ns, host))
    # Questions that a coarse clock saw at once have no order.
    order = order[~_are_tied(host[order], question_ns[order])]
    host, asked_ns = host[order], question_ns[order]
    lateness = np.log(timing.excess_s[order] + _FINEST_S)
    apart = _apart(host, asked_ns, lateness)
    same = (host[1:] == host[:-1]) & (np.diff(asked_ns) <= _TOGETHER_NS)
    connection = timing.connection[order]
    (first,) = np.nonzero(same & (connection[1:] != connection[:-1]))
    first = first[apart.varies[host[first]]]
    differs = np.abs(lateness[first + 1] - lateness[first])
    return AnswerPairs(order[first + 1], apart.rank(host[first], differs))


def _are_tied(host: Ints, asked_ns: Ints) -> npt.NDArray[np.bool_]:
    """Which of the questions, ascending by host and time, another one of their host has the time of."""
    as_before = (host[1:] == host[:-1]) & (asked_ns[1:] == asked_ns[:-1])
    tied = np.zeros(len(host), np.bool_)
    tied[1:] |= as_before
    tied[:-1] |= as_before
    return tied


class _Apart(Struct, frozen=True):
    """Differences of answers that have nothing to do with each other, ascending by `host` and difference; and whether a
    host's answers `varies`."""

    host: Ints
    keys: Floats
    varies: npt.NDArray[np.bool_]

    def rank(self, host: Ints, differs: Floats) -> Floats:
        """The share of its host's differences below each of these, the half of equal ones among them."""
        begin, end = (np.searchsorted(self.host, host, side) for side in ("left", "right"))
        below, up_to = (np.searchsorted(self.keys, _keys(host, differs), side) for side in ("left", "right"))
        rank: Floats = ((below + up_to) / 2 - begin + 0.5) / (end - begin + 1)
        return rank


def _keys(host: Ints, differs: Floats) -> Floats:
    keys: Floats = host * _MOST_DIFFERENCE + np.round(differs, 9)
    return keys


def _apart(host: Ints, asked_ns: Ints, lateness: Floats) -> _Apart:
    """Each answer against the one that its host gave half of its answers later."""
    count = np.bincount(host)
    begin = np.cumsum(count) - count
    place = np.arange(len(host)) - begin[host]
    other = begin[host] + (place + count[host] // 2) % np.maximum(count[host], 1)
    far = np.abs(asked_ns[other] - asked_ns) >= _APART_NS
    keys = np.sort(_keys(host[far], np.abs(lateness[other] - lateness)[far]))
    hosts = (keys // _MOST_DIFFERENCE).astype(np.int64)
    pairs = np.bincount(hosts, minlength=len(count))
    middle = np.minimum(np.searchsorted(hosts, np.arange(len(count))) + pairs // 2, max(len(keys) - 1, 0))
    spread = keys[middle] - np.arange(len(count)) * _MOST_DIFFERENCE if len(keys) else np.zeros(len(count))
    return _Apart(hosts, keys, (pairs >= _FEWEST_APART) & (spread >= _LEAST_SPREAD))


class MomentNats(Struct, frozen=True):
    """By unit, how much more probable its pairs are where something queues in its leg, and where its device delays all
    of a moment, than for clients that draw each answer's delay by itself (nats)."""

    queue: Floats
    device: Floats

    def of(self, units: slice | Ints) -> MomentNats:
        """Those of some units."""
        return MomentNats(self.queue[units], self.device[units])


def moment_nats(pairs: AnswerPairs, unit: Ints, units: int) -> MomentNats:
    """What the pairs of units say; `unit` is that of each exchange."""
    of_pair = unit[pairs.later]
    nats = np.log(_SHARED / _ALONE)[np.searchsorted(_RANK_EDGES, pairs.rank, side="right")]
    count = np.bincount(of_pair, minlength=units)
    shared: Floats = np.bincount(of_pair, weights=nats, minlength=units) / (1 + _CORRELATION * np.maximum(count - 1, 0))
    late = _some_shared(shared, _SHARED_BY_LATE)
    return MomentNats(_some_shared(shared, _SHARED_BY_QUEUES) - late, _some_shared(shared, _SHARED_BY_DEVICES) - late)


def _some_shared(nats: Floats, share: float) -> Floats:
    """The same of groups of which a share has something shared."""
    either: Floats = np.logaddexp(np.log1p(-share), np.log(share) + nats)
    return either
