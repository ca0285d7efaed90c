"""What captures say of the times of a machine, as the table `times` of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.capture import Capture
from reference_sim.host_times.acts import Act, Acts, End, acts_of
from reference_sim.host_times.fitting import (
    LEAST_SAMPLES,
    Cooling,
    Floats,
    LogNormal,
    fit_cooling,
    fit_log_normal,
    fit_persistence,
    fit_time,
    rounded,
    slower_mode,
)

#: What a scenario has where nothing else is said: pauses, and the share of them that openings have.
_USUAL_COOLING = Cooling(0.02, 1.0, 4.0)
_USUAL_OPENING_SHARE = 1.1 / 3.0
#: Acts that took longer than this many standard deviations waited for something else.
_INTERRUPTED = 3.0
_USUAL_INTERRUPTED = 0.00135
_LEAST_FOR_SHARE = 200
#: Captures that the spread between runs rests on, and acts in each.
_LEAST_CAPTURES = 4
_LEAST_ACTS = 15
#: Variance of a median of normally distributed numbers, times their count, in units of their variance.
_MEDIAN_VARIANCE = np.pi / 2
_LEAST_TIME_S = 1e-7
#: Packets so many typical times apart do not wait for one another.
_ALONE = 10.0
_MOST_SENDING = 8.0


@dataclass(slots=True)
class Measured:
    """Times of a machine; what is `None` or missing had too few samples, and the scenario's default holds."""

    captures: int = 0
    times: dict[str, LogNormal] = field(default_factory=dict)
    cooling: Cooling | None = None
    cold_opening: float | None = None
    first_data: float | None = None
    interrupted_share: float | None = None
    persistence: float | None = None
    machine_spread: float | None = None
    #: What each field rests on: numbers of acts, of captures for `machine_spread`.
    samples: dict[str, int] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """The table `times` of a scenario: fields that were measured."""
        numbers: dict[str, float | None] = {
            "cooling_s": self.cooling.full_s if self.cooling else None,
            "cooling_exponent": self.cooling.exponent if self.cooling else None,
            "cold_receiving": self.cooling.most if self.cooling else None,
            "cold_opening": self.cold_opening,
            "first_data": self.first_data,
            "interrupted_share": self.interrupted_share,
            "persistence": self.persistence,
            "machine_spread": self.machine_spread,
        }
        table: dict[str, Any] = {name: rounded(value) for name, value in numbers.items() if value is not None}
        for name, time in self.times.items():
            table[name] = time.table()
        return table

    def not_measured(self) -> tuple[str, ...]:
        """Fields whose samples were too few."""
        return tuple(name for name in self.samples if name not in self.table())


def measure_host_times(captures: Iterable[tuple[Capture, End]]) -> Measured:
    """The times of one machine, from captures that were made at it, each with the end that it is."""
    acts = [acts_of(capture, end) for capture, end in captures]
    measured = Measured(captures=len(acts))
    kernel = _Kernel(measured, acts)
    _measure_openings(measured, acts, kernel.cooling)
    _measure_sending(measured, acts)
    kernel.measure_out_of_order(*_pooled(acts, Act.OUT_OF_ORDER))
    kernel.measure_reading()
    kernel.measure_first_data(*_pooled(acts, Act.FIRST_ACKNOWLEDGEMENT))
    opening = measured.times.get("opening")
    for act in (Act.WAKING, Act.CONNECTED, Act.ACCEPTED, Act.CLOSING):
        times_s, pauses_s = _pooled(acts, act)
        before = opening if act is Act.CONNECTED and opening else kernel.receiving
        _measure(measured, act.value, kernel.program_times(times_s, pauses_s, before))
    return measured


class _Kernel:
    """How long the kernel takes for packets that arrive, which is a part of what programs take."""

    def __init__(self, measured: Measured, acts: Sequence[Acts]) -> None:
        self._measured = measured
        self.cooling = _USUAL_COOLING
        self.receiving: LogNormal | None = None
        self._read_s, self._read_pauses_s = np.zeros(0), np.zeros(0)
        self._pooled: LogNormal | None = None
        self._usual_logs = 0.0, 0.0
        released = [_one_by_one(*_seconds(one, Act.RELEASE)) for one in acts]
        acknowledged = [_one_by_one(*_seconds(one, Act.ACKNOWLEDGEMENT)) for one in acts]
        quick = [_one_by_one(*_seconds(one, Act.QUICK_ACKNOWLEDGEMENT)) for one in acts]
        if sum(len(times_s) for times_s, _ in released) < LEAST_SAMPLES:
            self._fit([self._quick(times_s, pauses_s) for times_s, pauses_s in acknowledged])
        else:
            self._fit(released)
        self._split(acknowledged, quick)

    def _quick(self, times_s: Floats, pauses_s: Floats) -> tuple[Floats, Floats]:
        if len(times_s) < LEAST_SAMPLES:
            return times_s[:0], pauses_s[:0]
        rows = ~slower_mode(np.log(times_s))
        return times_s[rows], pauses_s[rows]

    def _fit(self, released: Sequence[tuple[Floats, Floats]]) -> None:
        measured = self._measured
        times_s, pauses_s = _together(released)
        measured.samples |= dict.fromkeys(("receiving", "cooling_s", "interrupted_share", "persistence"), len(times_s))
        measured.samples["machine_spread"] = 0
        if len(times_s) < LEAST_SAMPLES:
            return
        measured.cooling = fit_cooling(times_s, pauses_s)
        self.cooling = measured.cooling or _USUAL_COOLING
        warm_s = times_s / self.cooling.factors(pauses_s)
        first = fit_log_normal(warm_s)
        is_interrupted = _is_late(first, warm_s)
        self.receiving = self._pooled = measured.times["receiving"] = fit_time(warm_s[~is_interrupted])
        self._usual_logs = _typical_logs(warm_s[~is_interrupted])
        if len(times_s) >= _LEAST_FOR_SHARE:
            measured.interrupted_share = max(0.0, float(is_interrupted.mean()) - _USUAL_INTERRUPTED)
        _measure(measured, "interruption", times_s[is_interrupted])
        runs = [times_s / self.cooling.factors(pauses_s) for times_s, pauses_s in released]
        self._measure_runs(runs)
        measured.persistence = fit_persistence(runs)

    def _measure_runs(self, runs: Sequence[Floats]) -> None:
        """How much captures differ as a whole."""
        receiving = self.receiving
        if receiving is None:
            return
        known = [np.log(run) for run in runs if len(run) >= _LEAST_ACTS]
        typical = [float(np.median(run)) for run in known]
        noise = [_MEDIAN_VARIANCE * _spread_of(run) ** 2 / len(run) for run in known]
        self._measured.samples["machine_spread"] = len(typical)
        if len(typical) < _LEAST_CAPTURES:
            return
        variance = max(0.0, float(np.var(typical, ddof=1)) - float(np.mean(noise)))
        self._measured.machine_spread = min(float(np.sqrt(variance)), 2.0)
        self._measured.times["receiving"] = _within_runs(receiving, [run[~_is_late(receiving, run)] for run in runs])

    def _split(self, acknowledged: Sequence[tuple[Floats, Floats]], quick: Sequence[tuple[Floats, Floats]]) -> None:
        """Acknowledgements of the kernel alone, and those that came after the program had read.

        What the kernel alone takes is what it took for the `quick` ones: it wakes the program before it acknowledges,
        which releases do not do.
        """
        times_s, pauses_s = _together(acknowledged)
        if self._pooled is None or len(times_s) < LEAST_SAMPLES:
            return
        alone_s, alone_pauses_s = _together(quick)
        if len(alone_s) >= LEAST_SAMPLES:
            self._usual_logs = _typical_logs(alone_s / self.cooling.factors(alone_pauses_s))
        warm_s = times_s / self.cooling.factors(pauses_s)
        rows = slower_mode(np.log(warm_s), self._usual_logs)
        is_quick = ~rows & (np.log(warm_s) < self._usual_logs[0] + _INTERRUPTED * max(self._usual_logs[1], 0.2))
        if not rows.any():
            # Few had to wait for the program, but what else makes an ACK of all data late is as rare.
            rows = ~is_quick & (np.log(warm_s) > self._usual_logs[0])
        self._read_s, self._read_pauses_s = times_s[rows], pauses_s[rows]
        _measure(self._measured, "receiving_data", warm_s[is_quick])
        time = self._measured.times.get("receiving_data")
        if time is not None and self._measured.machine_spread is not None:
            ends = np.cumsum([len(part) for part, _ in acknowledged])[:-1]
            runs = [run[kept] for run, kept in zip(np.split(warm_s, ends), np.split(is_quick, ends), strict=True)]
            self._measured.times["receiving_data"] = _within_runs(time, runs)

    def measure_reading(self) -> None:
        """Of programs that only read and were asleep.

        One at work when data come reads later, by how much it has still to do, which no drawn time is like.
        """
        before = self._measured.times.get("receiving_data", self.receiving)
        read_s = self.program_times(self._read_s, self._read_pauses_s, before)
        _measure(self._measured, "reading", _of_one_act(read_s))

    def measure_out_of_order(self, times_s: Floats, pauses_s: Floats) -> None:
        """Of data behind a gap: the kernel wakes no program."""
        warm_s = times_s / self.cooling.factors(pauses_s)
        _measure(self._measured, "receiving_out_of_order", _of_one_act(warm_s))

    def measure_first_data(self, times_s: Floats, pauses_s: Floats) -> None:
        """How many times as long the first data of a connection take as later packets."""
        self._measured.samples["first_data"] = len(times_s)
        later = self._measured.times.get("receiving_data", self.receiving)
        if later is not None and len(times_s) >= LEAST_SAMPLES:
            shares = times_s / (later.median_s * self.cooling.factors(pauses_s))
            self._measured.first_data = max(1.0, float(np.median(shares)))

    def program_times(self, times_s: Floats, pauses_s: Floats, before: LogNormal | None) -> Floats:
        """What a program took, without what the kernel takes `before` it."""
        if before is None:
            return times_s[:0]
        factors = self.cooling.factors(pauses_s)
        return np.maximum(times_s - before.median_s * np.minimum(factors, times_s / before.median_s), _LEAST_TIME_S)


def _within_runs(time: LogNormal, runs: Sequence[Floats]) -> LogNormal:
    """The distribution within runs, each brought to the same typical time above the least."""
    brought = [run * (time.median_s / float(np.median(run))) for run in runs if len(run) >= _LEAST_ACTS]
    within_s = np.concatenate(brought) if brought else np.zeros(0)
    return fit_time(within_s) if len(within_s) >= LEAST_SAMPLES else time


def _typical_logs(times_s: Floats) -> tuple[float, float]:
    """Median and spread of natural logarithms."""
    logs = np.log(times_s)
    return float(np.median(logs)), _spread_of(logs)


def _spread_of(logs: Floats) -> float:
    """Standard deviation, by quantiles."""
    low, high = np.quantile(logs, (0.16, 0.84))
    return float(high - low) / 2


def _is_late(usual: LogNormal, times_s: Floats) -> npt.NDArray[np.bool_]:
    """Which acts waited for something else."""
    return usual.above(times_s) > _INTERRUPTED * max(usual.spread, 0.2)


def _measure_sending(measured: Measured, acts: Sequence[Acts]) -> None:
    """Of packets that leave together; where few follow on a second one, those and the second ones are alike."""
    another, second, later = (
        _of_one_act(_pooled(acts, act)[0]) for act in (Act.SENDING, Act.SENDING_SECOND, Act.SENDING_IN_BURST)
    )
    _measure(measured, "sending", another)
    if min(len(second), len(later)) < LEAST_SAMPLES:
        _measure(measured, "sending_in_burst", _of_one_act(np.concatenate([second, later])))
    else:
        _measure(measured, "sending_second", second)
        _measure(measured, "sending_in_burst", later)


def _measure_openings(measured: Measured, acts: Sequence[Acts], cooling: Cooling) -> None:
    """Of SYNs, most of which come after a pause: where few do not, a pause counts as much as it usually does."""
    times_s, pauses_s = _pooled(acts, Act.OPENING)
    is_first = pauses_s < 0
    _measure(measured, "first_opening", times_s[is_first])
    if "first_opening" in measured.times:
        times_s, pauses_s = times_s[~is_first], pauses_s[~is_first]
    measured.samples |= dict.fromkeys(("opening", "cold_opening"), len(times_s))
    if len(times_s) < LEAST_SAMPLES:
        return
    most = 1 + (cooling.most - 1) * _USUAL_OPENING_SHARE
    share = Cooling(cooling.full_s, cooling.exponent, 2.0).factors(pauses_s) - 1
    is_warm = share < 0.5
    enough = min(np.count_nonzero(is_warm), np.count_nonzero(~is_warm)) >= LEAST_SAMPLES
    if enough and measured.cooling is not None:
        factors = np.geomspace(1.0, 60.0, 120)
        errors = [float(np.std(np.log(times_s / (1 + (one - 1) * share)))) for one in factors]
        most = float(factors[int(np.argmin(errors))])
    if measured.cooling is not None:
        measured.cold_opening = most
    _measure(measured, "opening", times_s / (1 + (most - 1) * share))


def _measure(measured: Measured, name: str, times_s: Floats) -> None:
    measured.samples[name] = len(times_s)
    if len(times_s) >= LEAST_SAMPLES:
        measured.times[name] = fit_time(times_s)


def _of_one_act(gaps_s: Floats) -> Floats:
    """Gaps without those in which the machine waited for something to do: far above the typical one."""
    kept = gaps_s[gaps_s < 1e-3]
    for _ in range(5):
        if len(kept) == 0:
            break
        kept = kept[kept <= _MOST_SENDING * np.median(kept)]
    return kept


def _seconds(acts: Acts, act: Act) -> tuple[Floats, Floats]:
    times_ns, pauses_ns = acts[act].arrays()
    return times_ns.astype(np.float64) * 1e-9, pauses_ns.astype(np.float64) * 1e-9


def _pooled(acts: Sequence[Acts], act: Act) -> tuple[Floats, Floats]:
    return _together([_seconds(one, act) for one in acts])


def _one_by_one(times_s: Floats, pauses_s: Floats) -> tuple[Floats, Floats]:
    """Without acts whose packet may have found the one before it still under way."""
    if len(times_s) == 0:
        return times_s, pauses_s
    rows = (pauses_s < 0) | (pauses_s > _ALONE * np.median(times_s))
    return times_s[rows], pauses_s[rows]


def _together(parts: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    if not parts:
        return np.zeros(0), np.zeros(0)
    return np.concatenate([times_s for times_s, _ in parts]), np.concatenate([pauses_s for _, pauses_s in parts])
