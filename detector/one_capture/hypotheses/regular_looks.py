"""Programs that look for work at regular times: all that they say lies on one grid, whichever connection says it.

Such a program is answered at once and says the next thing at its next look: its answers take the period less the round
trip, as steadily as behind a wire, and its closes do, too. Its period and the sum of round trip and leg look alike
within a conversation. What tells them apart is time without a conversation: a client that a leg makes late begins when
it likes, while one that looks at regular times goes on at a multiple of its period.

So of each client the *gaps* are taken between two things that it says one after the other, whatever the port, where the
first did not lead to the second: in another connection, or long after. With a period P a gap is k P but for a blur b,
which grows with k, and without one it lies anywhere:

    ln P(gaps | looks) / P(gaps | none) = ln E_P prod_gaps ((1 - o) P h(gap mod P; b) + o)

The expectation is over periods as the intervals within conversations show them, by which alone nothing is said for or
against looks: a leg gives such intervals as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints, quantiles
from detector.one_capture.networks import distinct_addresses
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import Exchanges

#: What the path and the machine add to a look (s), one as probable as the other, and to each period since the last one
#: (s): sleeps overshoot by some 50 us, and a walk of k of them is as long as the square root of k.
_BLURS_S, _DRIFT_S = (0.001, 0.004), 5e-5

#: Share of what such a program says that waits for no look.
_ASIDE = 0.05

#: Periods lie within this share of the 30 % quantile of the intervals within conversations (the fast ones, which took
#: one look), or of a half or third of it, where the round trip is longer than the period.
_AROUND, _FAST = 0.06, 0.3
_MOST_LOOKS = 3

#: Answers that come so little (s) after a round trip waited for no look; those that come later than the second did so
#: for something else.
_LEAST_WAIT_S, _LONGEST_S = 0.008, 1.0

#: A gap within one connection is so many periods long, and between connections so many: what began meanwhile was no
#: answer. Beyond so many periods a sleeper's walk and the period's own error hide the grid.
_WITHIN, _BETWEEN, _MOST_PERIODS = 8.0, 2.0, 300.0

#: Gaps are another one's repetition within this time (s): a client that begins every five seconds tells one gap.
_SAME_S = 0.004

#: Things said within this time (s) of one connection were said at one look.
_AT_ONCE_S = 0.001

#: Fewer intervals within conversations show no period.
_FEWEST_INTERVALS = 3

#: Intervals and gaps that are weighed of one client, and clients of one group: more cost time and show no more.
_MOST_WEIGHED, MOST_CLIENTS = 64, 32

#: Of clients that are late in all answers, those that look at regular times and close at a look as well; of those that
#: are as steady as a leg whenever they close; of devices that delay closes as well, one of three sorts. All is assumed.
OF_LATE, _OF_STEADY, _OF_DEVICES = 0.02, 0.5, 1 / 3


class LooksNats(Struct, frozen=True):
    """By unit, how much more probable what its clients say when is than if they say it at any time (nats): for those
    that look at regular times, and for those that are late as steadily as a leg and that have devices which delay, some
    of which do."""

    looks: Floats
    steady: Floats
    device: Floats

    @classmethod
    def of_gaps(cls, nats: Floats) -> LooksNats:
        """Given what gaps say for looks; 0 where there are none, and then looks are not thought of by themselves."""
        steady, device = (np.logaddexp(np.log1p(-share), np.log(share) + nats) for share in (_OF_STEADY, _OF_DEVICES))
        return cls(np.where(nats == 0, -np.inf, nats), steady, device)

    def of(self, units: slice) -> LooksNats:
        """Those of some units."""
        return LooksNats(self.looks[units], self.steady[units], self.device[units])


class SpeechTimes(Struct, frozen=True):
    """When clients said anything, by client, connection and time: first words, answers, ends of connections (s)."""

    client: Ints
    connection: Ints
    time_s: Floats

    def of(self, client: int) -> SpeechTimes:
        """What one client said."""
        rows = slice(*np.searchsorted(self.client, [client, client + 1]))
        return SpeechTimes(self.client[rows], self.connection[rows], self.time_s[rows])

    def without(self, these: npt.NDArray[np.bool_]) -> SpeechTimes:
        """All but some of it."""
        return SpeechTimes(*(getattr(self, name)[~these] for name in SpeechTimes.__struct_fields__))


class Clients(Struct, frozen=True):
    """The clients of a capture: their connections' exchanges and `columns`, the `member` of each connection, and its
    transport's round trip (s)."""

    exchanges: Exchanges
    columns: Mapping[str, npt.NDArray[Any]]
    member: Ints
    round_trip_s: Floats

    def looks(self, member: Ints, group: Ints) -> Floats:
        """What gaps say for looks (nats) of these members, which ascend, of groups: of `MOST_CLIENTS` that say most."""
        address = distinct_addresses(self.columns["client_address"])[1]
        connection = np.flatnonzero(np.isin(self.member, member))
        client = np.zeros(len(member), np.int64)
        client[np.searchsorted(member, self.member[connection])] = address[connection]
        wanted = np.isin(address, client)
        count = int(address.max(initial=-1)) + 1
        said = said_by(self.exchanges, self.columns, np.where(wanted, address, -1))
        round_trip_s = quantiles(self.round_trip_s, np.where(wanted, address, -1), count, 0.0)
        words = np.bincount(said.client, minlength=count)[client]
        order = np.lexsort((-words, group))
        place = np.arange(len(order)) - np.searchsorted(group[order], group[order])
        weighed = client[order[place < MOST_CLIENTS]]
        nats = {each: looks_nats(said.of(each), float(round_trip_s[each])) for each in set(weighed.tolist())}
        return np.asarray([nats.get(each, 0.0) for each in client.tolist()])


def said_by(exchanges: Exchanges, columns: Mapping[str, npt.NDArray[Any]], client: Ints) -> SpeechTimes:
    """What the `client` of each connection said, those with negative numbers left out."""
    answers = (exchanges.asked == Direction.DOWN.value) & ~exchanges.repeated
    asks = (exchanges.asked == Direction.UP.value) & ~exchanges.repeated
    ends = np.flatnonzero(columns["up_fin_time_ns"] >= 0)
    connection = np.concatenate([exchanges.connection[answers], exchanges.connection[asks], ends]).astype(np.int64)
    time_ns = np.concatenate([
        exchanges.answered_ns[answers],
        exchanges.question_ns[asks] - np.maximum(exchanges.question_span_ns[asks], 0),
        columns["up_fin_time_ns"][ends],
    ])  # fmt: skip
    wanted = client[connection] >= 0
    connection, time_ns = connection[wanted], time_ns[wanted]
    order = np.lexsort((time_ns, connection, client[connection]))
    connection, time_ns = connection[order], time_ns[order]
    time_s = (time_ns - (time_ns.min() if len(time_ns) else 0)) / 1e9
    new = np.append(True, (np.diff(connection) != 0) | (np.diff(time_s) > _AT_ONCE_S))[: len(order)]
    return SpeechTimes(client[connection[new]], connection[new], time_s[new])


def looks_nats(said: SpeechTimes, round_trip_s: float) -> float:
    """What one client's gaps say for looks at regular times (nats); 0 where there are none, or no intervals.

    Some such programs say at a look what opens a connection, others at once, as one as the other.
    """
    step_s, goes_on = np.diff(said.time_s), np.diff(said.connection) == 0
    (within,) = np.nonzero(goes_on & (step_s > round_trip_s + _LEAST_WAIT_S) & (step_s < _LONGEST_S))
    if len(within) < _FEWEST_INTERVALS:  # or no round trip is known
        return 0.0
    within_s = step_s[within[np.argsort(said.time_s[within], kind="stable")][:_MOST_WEIGHED]]
    opens = np.append(True, ~goes_on)
    every = [_of_gaps(said, within_s, round_trip_s), _of_gaps(said.without(opens), within_s, round_trip_s)]
    return float(np.logaddexp.reduce(every) - np.log(len(every)))


def _of_gaps(said: SpeechTimes, within_s: Floats, round_trip_s: float) -> float:
    """What the gaps between these words say, given the intervals within conversations; 0 where there are none."""
    usual_s = float(np.quantile(within_s, _FAST, method="lower"))
    order = np.argsort(said.time_s, kind="stable")
    gap_s, other = np.diff(said.time_s[order]), np.diff(said.connection[order]) != 0
    most_looks = min(_MOST_LOOKS, int(usual_s / (usual_s - round_trip_s)))
    every = [
        found
        for looks in range(1, most_looks + 1)
        for blur_s in _BLURS_S
        if (found := _by_period(usual_s / looks, within_s, gap_s, other, blur_s)) is not None
    ]
    if not every:
        return 0.0
    weights, nats = (np.concatenate(parts) for parts in zip(*every, strict=True))
    return float(np.logaddexp.reduce(weights + nats) - np.logaddexp.reduce(weights))


def _by_period(
    period_s: float, within_s: Floats, gap_s: Floats, other: npt.NDArray[np.bool_], blur_s: float
) -> tuple[Floats, Floats] | None:
    """By period around this one, what intervals within conversations say for it, and what gaps do; None without gaps.

    `other` says of each gap whether another connection ends it.
    """
    most_s = period_s * (1 + _AROUND)
    unrelated = (other & (gap_s > _BETWEEN * most_s)) | (gap_s > _WITHIN * most_s)
    gaps_s = _distinct(gap_s[unrelated & (gap_s < _MOST_PERIODS * period_s)])[:_MOST_WEIGHED]
    if not len(gaps_s):
        return None
    steps = 2 * _AROUND * gaps_s.max() / blur_s * 1.5
    periods_s = np.linspace(period_s * (1 - _AROUND), most_s, int(steps) + 2)
    shown = _grid_nats(within_s[within_s > period_s * (1 - 2 * _AROUND)], periods_s, blur_s)
    return shown - np.log(len(periods_s)), _grid_nats(gaps_s, periods_s, blur_s)


def _grid_nats(times_s: Floats, periods_s: Floats, blur_s: float) -> Floats:
    """Log-likelihoods of times being multiples of each period, beside being anything."""
    nats = np.zeros(len(periods_s))
    for time_s in times_s.tolist():
        looks = np.maximum(np.round(time_s / periods_s), 1.0)
        blurs_s = np.sqrt(2.0) * blur_s + _DRIFT_S * np.sqrt(looks)
        within = 1 - np.exp(-periods_s / (2 * blurs_s))
        density = np.exp(-np.abs(time_s - looks * periods_s) / blurs_s) / (2 * blurs_s * within)
        nats += np.log((1 - _ASIDE) * periods_s * density + _ASIDE)
    return nats


def _distinct(gaps_s: Floats) -> Floats:
    """Gaps in ascending order without those that repeat another one."""
    ascending: Floats = np.sort(gaps_s)
    is_new = np.append(True, np.diff(ascending) > _SAME_S)[: len(ascending)]
    return np.asarray(ascending[is_new], np.float64)
