"""HTTP answers of which only some are late: a cache answers the others, or some pages are slow to make.

A cache in the network answers what it holds at the near leg's speed; what it must fetch crosses the hidden leg, always
by the same time. A server's slow pages take times that vary, and answers over a path that varies vary as much as its
round trips do, at all hosts. So hits say nothing against a leg where HTTP is in clear, and what tells a cache from a
server is how alike misses are, and where the transport to several servers ends. How alike they are tells so much and no
more of each server: one that holds some answers, and calls a service for the others, is as steady as a cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.hypotheses.natures import Paths
from detector.one_capture.hypotheses.sums import any_leg, log, sum_nats
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.timing_tables import (
    CLASSES,
    HIDDEN_S,
    LATE_SHARES,
    LEG_NATS,
    NATURES,
    OPENING,
    Floats,
    TimingTables,
    excess_bin,
)
from detector.one_capture.members import Ints, quantiles

#: Shares of answers that come at once, of a cache and of a server that is slow sometimes; one as probable as another.
_AT_ONCE = (0.2, 0.4, 0.6, 0.8)

#: Some answers are late and others not where the latest takes so much (s) and so many times as long as the first, and
#: so many times what round trips vary: over a path whose waits are exponential their 60 and 10 % quantiles are 0.81
#: means apart, and the longest of 25 is 3.2 means.
_LATE_S, _TIMES, _VARIATIONS = 0.01, 2.0, 4.0

#: Members that are weighed at once: some ten kilobytes each.
_TOGETHER = 256

_HTTP = CLASSES.index("http")


class CacheNats(Struct, frozen=True):
    """What HTTP answers say of members of which some answers are late and others not; `known` are these, and the others
    have zeros.

    `legs` are log-likelihoods of a cache by each of `HIDDEN_S` that its misses cross, its prior included; `sometimes`
    those of a server that is late sometimes, in a way of its own or as steadily as a leg would make it.
    """

    known: npt.NDArray[np.bool_]
    legs: Floats
    sometimes: Floats

    def of(self, members: slice | Ints) -> CacheNats:
        """What they say of these members."""
        return CacheNats(self.known[members], self.legs[members], self.sometimes[members])


def cache_nats(
    tables: TimingTables,
    timing: ExchangeTiming,
    unit: Ints,
    varies_s: Floats,
    variation: Ints,
    paths: Paths,
    *,
    steady: float,
) -> CacheNats:
    """Weigh the exchanges of each unit: `unit` is that of each exchange and ascends, `varies_s` how much the round
    trips of each unit vary (NaN: unknown), `variation` the class of that, `paths` what is known of each beforehand, and
    `steady` how many servers that are late sometimes are so as steadily as a leg: they ask another host for what they
    do not hold."""
    units = len(variation)
    known = answer_at_once_and_late(timing, unit, varies_s)
    legs, sometimes = np.zeros((units, len(HIDDEN_S))), np.zeros(units)
    (members,) = np.nonzero(known)
    for start in range(0, len(members), _TOGETHER):
        part = members[start : start + _TOGETHER]
        rows = np.flatnonzero(np.isin(unit, part))
        sums = _mixtures(tables, timing, rows, np.searchsorted(part, unit[rows]), variation[part], paths.of(part))
        by_nature = sums[:, :, TimingTables.HIDDEN].reshape(len(_AT_ONCE), len(part), len(HIDDEN_S), NATURES)
        by_nature += paths.natures[part][:, None]
        legs[part] = _any_share(sum_nats(by_nature)) + LEG_NATS
        by_delay = _any_share(sum_nats(sums[:, :, TimingTables.LATE] + np.log(LATE_SHARES)))
        sometimes[part] = np.logaddexp(log(1 - steady) + by_delay, log(steady) + any_leg(legs[part]))
    return CacheNats(known, legs, sometimes)


def answer_at_once_and_late(timing: ExchangeTiming, unit: Ints, varies_s: Floats) -> npt.NDArray[np.bool_]:
    """The units of which some HTTP answers are late and others not, by more than `varies_s`, what the round trips of
    each vary, and that have no other exchanges; what cannot be read may be HTTP."""
    units = len(varies_s)
    of_http = (timing.kind % OPENING == _HTTP) | (timing.unread > 0)
    http_s = np.where(of_http, timing.excess_s, np.nan)
    least_s, most_s = (quantiles(http_s, unit, units, share) for share in (0.0, 1.0))
    are_apart = most_s > _LATE_S + _TIMES * least_s + _VARIATIONS * np.nan_to_num(varies_s)
    return np.asarray(are_apart & (np.bincount(unit[~of_http], minlength=units) == 0))


def _mixtures(
    tables: TimingTables, timing: ExchangeTiming, rows: Ints, member: Ints, variation: Ints, paths: Paths
) -> Floats:
    """Sums of log-likelihoods by share of answers that come at once (first axis), member (from 0, ascending) and
    hypothesis of the tables for the others."""
    bins = excess_bin(timing.excess_s[rows])
    _, first, place = np.unique(
        np.stack([member, timing.kind[rows], bins]), axis=1, return_index=True, return_inverse=True
    )
    weight = np.bincount(place.ravel(), weights=timing.weight[rows])
    member, kind, bins = member[first], timing.kind[rows][first], bins[first]
    nats = np.empty((len(first), TimingTables.HYPOTHESES))
    classes = int(variation.max(initial=0)) + 1
    table = kind * classes + variation[member]
    for number in np.flatnonzero(np.bincount(table)).tolist():
        which = np.flatnonzero(table == number)
        nats[which] = tables.nats(*divmod(number, classes))[bins[which]]
    at_once = np.exp(sum_nats(nats[:, TimingTables.END_BY_NATURE] + paths.end_natures[member]))
    late = np.exp(nats)
    begins = np.flatnonzero(np.diff(member, prepend=-1))
    return np.stack([
        np.add.reduceat(np.log(share * at_once[:, None] + (1 - share) * late) * weight[:, None], begins, axis=0)
        for share in _AT_ONCE
    ])  # fmt: skip


def _any_share(nats: Floats) -> Floats:
    """With any of the shares, which the first axis counts."""
    summed: Floats = np.logaddexp.reduce(nats, axis=0) - np.log(len(_AT_ONCE))
    return summed
