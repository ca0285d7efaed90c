"""What set-ups that are not scored say of this machine: the times of its ends, and of the devices between them.

Real runs pass two TUN devices and a thread that carries packets between them. A capture shows a packet before it enters
the first one and after it has left the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.real_or_simulated.passages import SENT, passages
from benchmarks.real_or_simulated.runs import Captures
from pepscope.captures.capture import open_capture
from reference_sim.host_times import End, Measured, measure_host_times
from reference_sim.host_times.fitting import (
    LEAST_SAMPLES,
    Cooling,
    Floats,
    LogNormal,
    fit_cooling,
    fit_log_normal,
    fit_time,
)

ENDS = {"server": End.SERVER, "mobile": End.CLIENT}
#: Times beyond so many standard deviations are those of packets that waited for something else.
_LATE = 3.0
#: The median of a log-normal distribution of this spread, beside that of the differences of two of its times.
_MEDIAN_OF_DIFFERENCES = 1.54
_USUAL_SPREAD = 0.7
_NO_COOLING = Cooling(0.02, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """Of a machine: the times of its ends, and the hops beside them."""

    ends: dict[str, Measured]
    #: From the machine on.
    devices: dict[str, list[dict[str, Any]]]

    def scenario(self, set_up: dict[str, Any]) -> dict[str, Any]:
        """A set-up with the machine's times."""
        timed = {end: {**set_up[end], "times": self.ends[end].table()} for end in ENDS}
        path = [*self.devices["server"], *set_up["path"], *reversed(self.devices["mobile"])]
        return {**set_up, **timed, "path": path}

    def document(self) -> dict[str, Any]:
        """For JSON."""
        ends = {end: {"times": one.table(), "samples": one.samples} for end, one in self.ends.items()}
        return {"ends": ends, "devices": self.devices}


def learn(set_ups: Sequence[dict[str, Any]], runs: Sequence[Captures]) -> Learned:
    """The machine's times, by real runs of these set-ups."""
    ends = {end: measure_host_times((open_capture(str(run[end])), side) for run in runs) for end, side in ENDS.items()}
    devices: dict[str, list[dict[str, Any]]] = {end: [] for end in ENDS}
    for end, other in (("server", "mobile"), ("mobile", "server")):
        passed = [passages(end, set_up, run) for set_up, run in zip(set_ups, runs, strict=True)]
        entering = [pair for passage in passed for pair in passage.entering]
        leaving_s = [late_s for passage in passed for late_s in passage.late_s]
        apart_s = np.array([gap_s for passage in passed for gap_s in passage.apart_s])
        devices[end].insert(0, _entrance(end, entering))
        devices[other].append(_exit(other, leaving_s) | _apart(apart_s))
    return Learned(ends, devices)


def _entrance(end: str, entering: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """A hop for what `end` sends, from times through it and the pauses before, in seconds."""
    hop: dict[str, Any] = {"kind": "device", "name": f"{end} sends"}
    if len(entering) < LEAST_SAMPLES:
        return hop
    times_s, pauses_s = (np.array(column) for column in zip(*entering, strict=True))
    cooling = fit_cooling(times_s, pauses_s) or _NO_COOLING
    warm_s = times_s / cooling.factors(pauses_s)
    first = fit_log_normal(warm_s)
    is_late = first.above(warm_s) > _LATE * max(first.spread, 0.2)
    hop[SENT[end][1]] = fit_time(warm_s[~is_late]).table()
    cold = {"cold": cooling.most, "cooling_s": cooling.full_s, "cooling_exponent": cooling.exponent}
    return hop | cold | _interruption(times_s, is_late)


def _exit(end: str, late_s: Sequence[float]) -> dict[str, Any]:
    """A hop for what arrives at `end`, from how much later than the one before it each packet was, in seconds."""
    hop: dict[str, Any] = {"kind": "device", "name": f"{end} receives"}
    differences_s = np.array(late_s)
    if len(differences_s) < LEAST_SAMPLES:
        return hop
    usual_s = float(np.median(np.abs(differences_s))) * _MEDIAN_OF_DIFFERENCES
    is_late = differences_s > 10 * usual_s
    way = "up" if end == "server" else "down"
    hop[way] = LogNormal(0.0, usual_s, _USUAL_SPREAD).table()
    return hop | _interruption(differences_s, is_late)


def _apart(gaps_s: Floats) -> dict[str, Any]:
    """How soon packets follow one another that waited for the device."""
    return {"apart": fit_time(gaps_s).table()} if len(gaps_s) >= LEAST_SAMPLES else {}


def _interruption(times_s: Floats, is_late: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Packets that waited for something else, if there were enough."""
    if np.count_nonzero(is_late) < LEAST_SAMPLES:
        return {}
    return {"interrupted_share": float(np.mean(is_late)), "interruption": fit_time(times_s[is_late]).table()}
