"""What a split is worth: the same object through a port that is split and through one that is not, by turns.

Table II of Wei et al. (UMass TR 2005-59, section IV-A) for one's own network. A gain is no evidence for a split:
queues that favour a port do the same. So it is a fact for reports, and speaks for no verdict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from pepscope.packets import Direction
from pepscope.results import Evidence
from prober.costs import transfer_cost
from prober.errors import ImpossibleError, MeasurementError, PlanError
from prober.experiment import Application, Experiment, Json, Measurement, Seen, Task
from prober.measured import number, text
from prober.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES
from prober.transfer import Transfer

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: File sizes of Table II.
TABLE_II_BYTES = (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
CONFIDENCE = 0.95
RESAMPLES = 5_000
#: With fewer pairs no interval can hold a median with 95 %: all of n lie on one side of it with probability 2^(1-n).
LEAST_PAIRS = 6
#: Resampling is chance; equal measurements are to give equal intervals.
_SEED = 2005


class Gain(Experiment):
    """Times pairs of downloads, one from the application's usual port and one from a free port."""

    name = "gain"
    summary = "Time downloads from the application's port against a free port, by turns (Table II)."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"applications": ("http-data",), "sizes_bytes": TABLE_II_BYTES, "repeats": 20}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One task a pair; all sizes in turn, so that a slow hour touches every size alike."""
        settings = plan.experiments[self.name]
        if Direction.DOWN not in plan.directions:
            return
        for repeat in range(1, int(settings["repeats"]) + 1):
            for application in _applications(settings):
                if application not in plan.applications:
                    continue
                for size_bytes in _sizes(settings, application):
                    cost = transfer_cost(application, Direction.DOWN, size_bytes, plan.rates)
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        Direction.DOWN,
                        {"size_bytes": size_bytes},
                        bytes_up=2 * cost.bytes_up,
                        bytes_down=2 * cost.bytes_down,
                        expected_s=2 * cost.expected_s,
                        captured=False,
                    )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """One pair. Which port comes first changes from repeat to repeat."""
        assert task.application is not None
        usual_port, free_port = end.port(task.application), _free_port(task.application, end)
        order = [usual_port, free_port] if task.repeat % 2 else [free_port, usual_port]
        moved = {port: self._download(task, end, port) for port in order}
        usual, free = moved[usual_port], moved[free_port]
        values = {
            "size_bytes": usual.size_bytes,
            "first": "usual" if order[0] == usual_port else "free",
            "usual_port": usual_port,
            "free_port": free_port,
            "usual_total_s": usual.total_s,
            "free_total_s": free.total_s,
            "usual_first_byte_s": usual.first_byte_s,
            "free_first_byte_s": free.first_byte_s,
            "usual_moved_bytes": usual.moved_bytes,
            "free_moved_bytes": free.moved_bytes,
        }
        return Measurement(values, (*usual.flows, *free.flows))

    def _download(self, task: Task, end: MobileEnd, port: int) -> Transfer:
        assert task.application is not None
        moved = end.transfer(task.application, Direction.DOWN, int(task.parameters["size_bytes"]), port=port)
        if not moved.complete:
            raise MeasurementError(
                f"the download from port {port} ended with {moved.status} after {moved.moved_bytes} of "
                f"{moved.size_bytes} bytes"
            )
        return moved

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: a port may be faster for other reasons than a split."""
        return ()

    def facts(self, seen: Sequence[Seen]) -> Mapping[str, Json]:
        """A row for each size: medians of both ports, and by how much the usual one is faster, with its interval."""
        pairs: dict[int, list[tuple[float, float]]] = defaultdict(list)
        changed, ports = 0, set()
        for item in seen:
            values = item.observation.measurement.values
            size_bytes = number(values, "size_bytes")
            if text(values, "first") not in ("usual", "free") or size_bytes < 1:
                continue
            times = number(values, "usual_total_s"), number(values, "free_total_s")
            if min(times) <= 0:
                continue
            ports.add((int(number(values, "usual_port")), int(number(values, "free_port"))))
            changed += number(values, "usual_moved_bytes") != size_bytes
            pairs[int(size_bytes)].append(times)
        if not pairs:
            return {}
        return {
            "gain": [gain_row(size_bytes, pairs[size_bytes]) for size_bytes in sorted(pairs)],
            "confidence": CONFIDENCE,
            "ports": [{"usual": usual, "free": free} for usual, free in sorted(ports)],
            "arrived_in_another_size": changed,
        }


def gain_row(size_bytes: int, pairs: Sequence[tuple[float, float]]) -> dict[str, Json]:
    """One row of the table from pairs of times (usual port, free port) in seconds.

    `gain` is the throughput through the usual port over that through the free one, less 1, of medians; `gain_low` and
    `gain_high` bound it with `CONFIDENCE` and are `None` below `LEAST_PAIRS` pairs. `reading` is the row in a sentence.
    """
    times = np.asarray(pairs, dtype=np.float64)
    usual_s, free_s = np.median(times, axis=0)
    gain = float(free_s / usual_s - 1.0)
    interval = gain_interval(times) if len(pairs) >= LEAST_PAIRS else None
    return {
        "size_bytes": size_bytes,
        "pairs": len(pairs),
        "usual_median_s": float(usual_s),
        "free_median_s": float(free_s),
        "usual_rate_bit_s": size_bytes * 8 / float(usual_s),
        "free_rate_bit_s": size_bytes * 8 / float(free_s),
        "gain": gain,
        "gain_low": None if interval is None else interval[0],
        "gain_high": None if interval is None else interval[1],
        "reading": _reading(gain, interval, len(pairs)),
    }


def gain_interval(times: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Percentile bootstrap of the gain of medians (Efron and Tibshirani 1993, chapter 13); whole pairs are drawn.

    Both times of a pair were measured one after the other, so what slowed the path then slowed both.
    """
    chance = np.random.default_rng(_SEED)
    drawn = chance.integers(0, len(times), size=(RESAMPLES, len(times)))
    usual_s, free_s = (np.median(times[:, column][drawn], axis=1) for column in (0, 1))
    low, high = np.quantile(free_s / usual_s - 1.0, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _reading(gain: float, interval: tuple[float, float] | None, pairs: int) -> str:
    if interval is None:
        return f"too few pairs to tell: {pairs}, at least {LEAST_PAIRS} are needed for an interval"
    low, high = interval
    bounds = f"{_percent(low)} to {_percent(high)}"
    if low <= 0 <= high:
        return f"no difference shown: the interval, {bounds}, includes 0"
    return f"the usual port is {'faster' if gain > 0 else 'slower'} by {_percent(abs(gain))} ({bounds})"


def _percent(share: float) -> str:
    """Two digits at least where a whole percent would hide the sign."""
    return f"{100 * share:.1f} %" if abs(share) < 0.1 and not math.isclose(share, 0) else f"{100 * share:.0f} %"


def _applications(settings: Mapping[str, Json]) -> tuple[Application, ...]:
    try:
        chosen = tuple(Application(name) for name in settings["applications"])
    except ValueError as error:
        raise PlanError(f"experiments.gain.applications: {error}") from None
    if Application.TCP in chosen:
        raise PlanError("experiments.gain.applications holds tcp, whose usual port is the free one")
    return chosen


def _sizes(settings: Mapping[str, Json], application: Application) -> list[int]:
    least = LEAST_PICTURE_BYTES if application is Application.HTTP_IMAGE else 1
    return sorted({max(least, int(size)) for size in settings["sizes_bytes"]})


def _free_port(application: Application, end: MobileEnd) -> int:
    ports = end.about.ports
    free = {Application.FTP: ports.ftp_free, Application.HTTPS: ports.https_free}.get(application, ports.http_free)
    if not free:
        raise ImpossibleError(f"the server offers {application} at no free port to compare with")
    return free
