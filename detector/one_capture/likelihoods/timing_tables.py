"""How long exchanges take beyond the transport's round trip: densities learned from networks whose truth is known.

The *excess* of an exchange is the time that its answer took beyond a round trip of the transport. End to end it is what
the answering application took, and what the path varies; with a hidden leg it is the leg's round trip on top of that.
The tables hold, by side and kind of exchange and by how much the transport's own round trips vary, the density of the
excess end to end, and of what a hidden leg leaves above its round trip. Late answers have no table, because any delay
may be a habit of an application: they take a common delay and up to `LATE_RATIOS` times as long, as slow processors and
timers with other work beside them do; or one of `TIMERS_S`, and hardly longer, as programs that sleep between looks do;
or they are irregular: a person takes part, and they take anything, or a program has now little, now much to do.

The tables are made by `python -m benchmarks.one_ended_learning`; docs/methods/exchange_timing.md draws them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pkgutil import get_data
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct, json

from pepscope.results.verdicts import GroupSide

Floats = npt.NDArray[np.float64]

#: Classes of exchanges with a table each, in the order of their codes: TLS handshake flights, which libraries answer by
#: themselves; line protocols; HTTP/1; encrypted turns; other turns.
CLASSES = ("handshake", "line", "http", "encrypted", "turn")

#: What is added to the code of a class where the exchange is the first that a server answers in its connection.
OPENING = len(CLASSES)

#: The codes of closes, which have no table of their own: they take as long as answers in line protocols. The second is
#: of those that nothing but the client can have begun.
CLOSE = 2 * OPENING
CLIENT_CLOSE = CLOSE + 1
_LIKE_CLOSES = CLASSES.index("line")

#: Share of closes that have nothing to do with the other side's last words: timers, persons, connections that are kept.
#: They take anything, log-uniform (s). Of simulated clients that are end to end 32 % close more than 0.1 s late.
_UNRELATED_SHARE, _UNRELATED_S = 0.4, (0.001, 300.0)

#: How often the first answer crosses the hidden leg, and the share of split points where it does. Once where the split
#: point connects to the server beside the client's handshake, twice where it does so afterwards, and once more where it
#: sends a head and waits before it sends the rest.
CROSSINGS = {1: 0.4, 2: 0.4, 3: 0.2}

#: Round trips of hidden legs that are told apart (s), each standing for all legs that are nearer to it than to others.
HIDDEN_S: Floats = np.geomspace(0.004, 2.0, 128)

#: How probable legs are beside each other beforehand, by what they are longer than (s). A fibre around half of the
#: earth takes 0.2 s, its detours and an access link 0.1 s more. Geostationary satellites, whose terminals split, take
#: 0.48 s, 0.56 s from the edge of their view, and 0.25 s on the ground. Longer paths have two such hops, or queues
#: that vary.
_PROBABLE_FROM_S, _PROBABLE = (0.0, 0.3, 0.47, 0.8), np.array([1.0, 0.2, 1.0, 0.02])

#: The same in nats; legs' mean probability is one.
LEG_NATS: Floats = np.log(_PROBABLE[np.searchsorted(_PROBABLE_FROM_S, HIDDEN_S) - 1])
LEG_NATS -= np.log(np.exp(LEG_NATS).mean())

#: Legs that one of `HIDDEN_S` stands for reach from it by this factor: long ones are further apart than answers vary.
_WITHIN = float(np.sqrt(HIDDEN_S[1] / HIDDEN_S[0]))

#: Natures of hidden legs, by how much answers vary that cross one, and of paths and hosts that are end to end: each has
#: a density of its own.
NATURES = 4
END_NATURES = 5

#: Bounds of the classes of shifts end to end (s), which have natures of their own.
SHIFT_EDGES_S = (0.008,)

#: Shortest delays that may be common to all answers of an application (s), and how many times as long it may take; the
#: delay is uniform in between. What thinks varies: a delay that is nearly constant is rare.
LATE_S: Floats = np.geomspace(0.003, 4.0, 40)
LATE_RATIOS = (1.25, 1.6, 2.2, 4.0)
_RATIO_SHARES = (0.1, 0.4, 0.4, 0.1)

#: What programs sleep before they look again (s): round times, no less but for what clocks differ by, and hardly more.
#: Captures of real programs have 0.1, 0.2 and 1 s. Shorter ones, as every leg is near to one, would leave no leg to be
#: found.
TIMERS_S: Floats = np.array([0.1, 0.2, 0.25, 0.5, 1.0, 2.0])
_LEAST_OF_TIMERS, _MOST_OF_TIMERS, _TIMERS_SHARE = 0.998, 1.02, 0.1

#: How probable delays are, by delay and then by ratio, then timers: a host that takes ten times as long is half as
#: frequent.
LATE_SHARES: Floats = np.concatenate(
    [
        (1 - _TIMERS_SHARE) * np.outer(LATE_S**-0.3 / (LATE_S**-0.3).sum(), _RATIO_SHARES).ravel(),
        np.full(len(TIMERS_S), _TIMERS_SHARE / len(TIMERS_S)),
    ]
)

#: The same of legs in which something queues, so that answers take them or some times as long: legs are no timers, and
#: as probable as other legs. Ratios are those of what is late, so that no shape of queues proves a leg.
QUEUED_SHARES: Floats = np.concatenate(
    [
        np.outer(_PROBABLE[np.searchsorted(_PROBABLE_FROM_S, LATE_S) - 1], _RATIO_SHARES).ravel(),
        np.zeros(len(TIMERS_S)),
    ]
)
QUEUED_SHARES /= QUEUED_SHARES.sum()

#: Between what the delays of `LATE_SHARES` are uniform (s).
LATE_LEAST_S: Floats = np.concatenate([np.repeat(LATE_S, len(LATE_RATIOS)), TIMERS_S * _LEAST_OF_TIMERS])
_LATE_MOST_S: Floats = np.concatenate([np.outer(LATE_S, LATE_RATIOS).ravel(), TIMERS_S * _MOST_OF_TIMERS])

#: What people take to answer (s), log-uniform.
_PERSON_S = (0.1, 100.0)

#: How many times as long as the least of `LATE_S` programs may take that have now little, now much to do, log-uniform:
#: one as probable as another, and people as probable as all of them. Assumed, so that no shape of what work takes
#: proves a leg (docs/decisions/130).
_WORK_RATIOS = (6.0, 12.0, 30.0, 100.0)
_PEOPLE = 0.5

#: How probable irregular answers are of people, then of programs by least delay and then by ratio.
IRREGULAR_SHARES: Floats = np.concatenate(
    [
        [_PEOPLE],
        (1 - _PEOPLE) * np.repeat(LATE_S**-0.3 / (LATE_S**-0.3).sum() / len(_WORK_RATIOS), len(_WORK_RATIOS)),
    ]
)

#: What such programs take behind a hidden leg on top of it (s), log-uniform, one as probable as another.
WORK_BEHIND_S = ((0.001, 0.1), (0.001, 3.0))

#: Share of the answers of a late application that come as if it were not.
PROMPT_SHARE = 0.03

#: Share of the answers behind a hidden leg that come as if there were none: they answer something else.
UNASKED_SHARE = 0.003

#: Excess is looked up in bins, as fine as the densities can differ: 3 % wide, symmetric around zero. Timers begin at an
#: edge, so that what comes earlier is in another bin.
_FINEST_S = 0.0002
_BINS_S: Floats = np.geomspace(_FINEST_S, 60.0, 400)
_BINS_S[np.abs(np.log(np.divide.outer(_BINS_S, TIMERS_S))).argmin(axis=0)] = TIMERS_S * _LEAST_OF_TIMERS
_EDGES_S: Floats = np.concatenate([-_BINS_S[::-1], [0.0], _BINS_S])
_MIDDLES_S: Floats = (_EDGES_S[1:] + _EDGES_S[:-1]) / 2

#: Density (per second) of what lies beyond all that was ever seen.
_NEVER = 1e-9


class TimingTables:
    """Log densities (nats per second of excess) of one side by hypothesis, looked up by bins of the excess.

    Hypotheses are a hidden leg of each of `HIDDEN_S` in each nature (natures of one leg beside each other), answers
    that are late by each of `LATE_S` and `LATE_RATIOS` and by each of `TIMERS_S`, irregular ones by each of
    `IRREGULAR_SHARES`, end to end in each nature, and irregular ones behind each of `HIDDEN_S` by `WORK_BEHIND_S`.
    `variation_edges_s` bound the classes of variation of round trips. By class, `nature_nats` and `end_nature_nats` are
    the log probabilities of natures, `shift_nats` those of answers that are shifted end to end: by nothing, then as
    behind each of `HIDDEN_S` in each nature.
    """

    HIDDEN = slice(0, len(HIDDEN_S) * NATURES)
    LATE = slice(HIDDEN.stop, HIDDEN.stop + len(LATE_SHARES))
    IRREGULAR = slice(LATE.stop, LATE.stop + len(IRREGULAR_SHARES))
    END_BY_NATURE = slice(IRREGULAR.stop, IRREGULAR.stop + END_NATURES)
    WORK_BEHIND = slice(END_BY_NATURE.stop, END_BY_NATURE.stop + len(HIDDEN_S) * len(WORK_BEHIND_S))
    HYPOTHESES = WORK_BEHIND.stop

    columns = HYPOTHESES

    def __init__(self, content: Mapping[str, Any], side: GroupSide) -> None:
        """Tables of one side from what the learning wrote."""
        self._learned = content["sides"][side.value]
        self._edges_s = np.asarray(content["excess_edges_s"], np.float64)
        self._made: defaultdict[tuple[int, int], _Rows] = defaultdict(partial(_Rows, self.HYPOTHESES))
        self._crossed: defaultdict[tuple[str, int], _Rows] = defaultdict(partial(_Rows, len(HIDDEN_S) * NATURES))
        self.variation_edges_s = np.asarray(content["variation_edges_s"], np.float64)
        self.nature_nats: Floats = np.log(self._learned["natures"])
        self.end_nature_nats: Floats = np.log(self._learned["end_natures"])
        self.shift_nats: Floats = _shift_nats(self._learned)

    @cached_property
    def by_habit(self) -> Sequence[TimingRows]:
        """The same where each first answer crosses legs by itself, and where all do as often as each of `CROSSINGS`: of
        these the columns of hidden legs, since the others are the same."""
        return self, *(_OfHabit(self, times) for times in CROSSINGS)

    def nats(self, kind: int, variation: int) -> Floats:
        """Log densities of a class (`CLASSES`, then the same as `OPENING`, then closes) and variation: a row a bin of
        `excess_bin`, a column a hypothesis."""
        return self.rows(kind, variation, np.arange(len(_MIDDLES_S)))

    def rows(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        """Rows of `nats` of some bins; each bin is computed when it is first asked for."""
        return self._made[kind, variation].of(bins, lambda missing: self._nats(kind, variation, missing))

    def crossing(self, kind: int, variation: int, bins: npt.NDArray[np.intp], crossings: Mapping[int, float]) -> Floats:
        """Densities of some bins behind each hidden leg (`HIDDEN`), which is crossed so many times with these shares: a
        row a hypothesis."""
        name, excess_s = CLASSES[kind % OPENING], _MIDDLES_S[bins]
        crossed: Floats = np.sum(
            [share * self._by_leg(name, times, bins) for times, share in crossings.items()], axis=0
        )
        return (1 - UNASKED_SHARE) * crossed.T + UNASKED_SHARE * self._end(kind, variation).density(excess_s)

    def variation_class(self, variation_s: Floats) -> npt.NDArray[np.intp]:
        """The class of each variation; the last one, of all paths together, where nothing is known (NaN)."""
        return variation_class(self.variation_edges_s, variation_s)

    def _nats(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        return self._of_closes(variation, bins) if kind >= CLOSE else self._hypotheses(kind, variation, bins)

    def _of_closes(self, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        related = np.exp(self.rows(_LIKE_CLOSES, variation, bins))
        unrelated = _log_uniform(*_UNRELATED_S, _MIDDLES_S[bins])[:, None]
        nats: Floats = np.log((1 - _UNRELATED_SHARE) * related + _UNRELATED_SHARE * unrelated)
        return nats

    def _hypotheses(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        opening, name, excess_s = kind >= OPENING, CLASSES[kind % OPENING], _MIDDLES_S[bins]
        end = self._end(kind, variation)
        late = end.moved(LATE_LEAST_S, _LATE_MOST_S, excess_s)
        late_or_irregular = np.concatenate([late, _irregular(excess_s)])
        mixed = (1 - PROMPT_SHARE) * late_or_irregular + PROMPT_SHARE * end.density(excess_s)
        tables = self._learned["end_by_nature"][name][END_NATURES * opening :][:END_NATURES]
        end_by_nature = np.stack([_Histogram.of(self._edges_s, table).density(excess_s) for table in tables])
        above = self.crossing(kind, variation, bins, CROSSINGS if opening else {1: 1.0})
        behind = (1 - UNASKED_SHARE) * _work_behind(excess_s) + UNASKED_SHARE * end.density(excess_s)
        return _log(np.concatenate([above, mixed, end_by_nature, behind]))

    def _end(self, kind: int, variation: int) -> _Histogram:
        """The density end to end."""
        of = self._learned["end_opening" if kind >= OPENING else "end"]
        return _Histogram.of(self._edges_s, of[CLASSES[kind % OPENING]][variation])

    def _by_leg(self, name: str, times: int, bins: npt.NDArray[np.intp]) -> Floats:
        """Densities of what crosses each leg so many times, and nothing else: a row a bin, whatever the variation."""
        return self._crossed[name, times].of(bins, lambda missing: self._moved(name, times, missing))

    def _moved(self, name: str, times: int, bins: npt.NDArray[np.intp]) -> Floats:
        natures = [_Histogram.of(self._edges_s, table) for table in self._learned["hidden"][name]]
        least_s, most_s = times * HIDDEN_S / _WITHIN, times * HIDDEN_S * _WITHIN
        by_nature = [hidden.moved(least_s, most_s, _MIDDLES_S[bins]) for hidden in natures]
        return np.stack(by_nature, axis=1).reshape(len(HIDDEN_S) * NATURES, -1).T


class _OfHabit:
    """`TimingTables` of first answers that all cross a hidden leg so many times: the columns of hidden legs alone."""

    columns = TimingTables.HIDDEN.stop

    def __init__(self, usual: TimingTables, times: int) -> None:
        self._usual, self._times = usual, times
        self._made: defaultdict[tuple[int, int], _Rows] = defaultdict(partial(_Rows, self.columns))

    def rows(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        """As `TimingTables.rows`."""
        return self._made[kind, variation].of(bins, lambda missing: self._nats(kind, variation, missing))

    def _nats(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        return _log(self._usual.crossing(kind, variation, bins, {self._times: 1.0}))


class TimingRows(Protocol):
    """Log densities of one side by hypothesis: the first so many `columns` of `TimingTables`."""

    columns: int

    def rows(self, kind: int, variation: int, bins: npt.NDArray[np.intp]) -> Floats:
        """As `TimingTables.rows`."""


class _Rows:
    """Rows of a table with a row a bin, each of which is computed, and takes memory, when it is first asked for."""

    def __init__(self, columns: int) -> None:
        self._place = np.full(len(_MIDDLES_S), -1, np.intp)  # of each bin among the rows; -1 before it is asked for
        self._table: Floats = np.empty((0, columns))

    def of(self, bins: npt.NDArray[np.intp], compute: Callable[[npt.NDArray[np.intp]], Floats]) -> Floats:
        """Those of some bins."""
        asked = np.zeros(len(self._place), np.bool_)
        asked[bins] = True
        (missing,) = np.nonzero(asked & (self._place < 0))
        if len(missing):
            made, before = np.ascontiguousarray(compute(missing)), len(self._table)
            self._table = np.concatenate([self._table, made]) if before else made
            self._place[missing] = before + np.arange(len(missing))
        rows: Floats = self._table[self._place[bins]]
        return rows


def _log(densities: Floats) -> Floats:
    """Log densities: a row a bin, where `densities` have a row a hypothesis."""
    nats: Floats = np.ascontiguousarray(np.log(densities + _NEVER).T)
    return nats


class _Histogram(Struct, frozen=True):
    """A density that is constant between edges, by its distribution function at the edges."""

    edges_s: Floats
    below: Floats

    @classmethod
    def of(cls, edges_s: Floats, probability: Sequence[float]) -> _Histogram:
        return cls(edges_s, np.concatenate([[0.0], np.cumsum(probability)]))

    def density(self, excess_s: Floats) -> Floats:
        """At these excesses."""
        place = np.clip(np.searchsorted(self.edges_s, excess_s, side="right") - 1, 0, len(self.below) - 2)
        density: Floats = (np.diff(self.below) / np.diff(self.edges_s))[place]
        return density

    def moved(self, least_s: Floats, most_s: Floats, excess_s: Floats) -> Floats:
        """There, if a delay is added that is uniform between these: a row a pair of bounds."""
        at_least, at_most = (
            np.interp(excess_s[None] - bound_s[:, None], self.edges_s, self.below) for bound_s in (least_s, most_s)
        )
        density: Floats = (at_least - at_most) / (most_s - least_s)[:, None]
        return density


def variation_class(edges_s: Floats, variation_s: Floats) -> npt.NDArray[np.intp]:
    """The class of each variation between these edges; one more, the last, where it is not known (NaN)."""
    known = np.searchsorted(edges_s, np.nan_to_num(variation_s), side="right")
    return np.where(np.isnan(variation_s), len(edges_s) + 1, known)


def excess_bin(excess_s: Floats) -> npt.NDArray[np.intp]:
    """The bin of each excess, as `TimingTables.nats` has them."""
    return np.clip(np.searchsorted(_EDGES_S, excess_s, side="right") - 1, 0, len(_EDGES_S) - 2)


@cache
def timing_tables(side: GroupSide) -> TimingTables:
    """The tables for captures at this side (client or server), as they are installed with the program."""
    return TimingTables(json.decode(get_data(__package__, "timing_tables.json") or b"{}"), side)


def _shift_nats(learned: Mapping[str, Any]) -> Floats:
    """Log probabilities by class of variation of answers that are shifted: by nothing, then as behind each leg of
    `HIDDEN_S` in each nature. Where what shifts answers has no natures of its own, they are those of legs."""
    shares = np.maximum(learned["shifts"], _NEVER)
    natures = np.asarray(learned["natures"])[:, None]
    if "shift_natures" in learned:
        of_shift = np.asarray(learned["shift_natures"])
        natures = of_shift[np.searchsorted(SHIFT_EDGES_S, HIDDEN_S, side="right")][None]
    joint = (shares[:, 1:, None] * natures).reshape(len(shares), -1)
    nats: Floats = np.log(np.concatenate([shares[:, :1], joint], axis=1))
    return nats


def _irregular(excess_s: Floats) -> Floats:
    """The densities of irregular answers at these excesses: a row each of `IRREGULAR_SHARES`."""
    least_s = np.repeat(LATE_S, len(_WORK_RATIOS))[:, None]
    most_s = np.outer(LATE_S, _WORK_RATIOS).reshape(-1, 1)
    return np.concatenate([_log_uniform(*_PERSON_S, excess_s)[None], _log_uniform(least_s, most_s, excess_s)])


def _work_behind(excess_s: Floats) -> Floats:
    """The densities at these excesses of irregular answers behind hidden legs: a row a leg and `WORK_BEHIND_S`."""
    beyond_s = excess_s - (HIDDEN_S / _WITHIN)[:, None]
    of_work = [_log_uniform(least_s, most_s, beyond_s) for least_s, most_s in WORK_BEHIND_S]
    return np.stack(of_work, axis=1).reshape(-1, len(excess_s))


def _log_uniform(least_s: float | Floats, most_s: float | Floats, excess_s: Floats) -> Floats:
    """The density of what takes anything between these, as people do, at these excesses."""
    taken = np.clip(excess_s, least_s, None)
    return np.where((taken > least_s) & (taken <= most_s), 1 / (taken * np.log(most_s / least_s)), 0.0)
