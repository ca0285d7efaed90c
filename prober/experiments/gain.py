"""Gain of a split: the same object, alternately through a port that is split and through one that is not.

Table II of Wei et al. (UMass TR 2005-59, section IV-A) for one's own network. A gain is no evidence for a split:
queues that prefer a port cause one, too. So it is a metric for reports, and affects no verdict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from pepscope.captures.direction import Direction
from pepscope.results.verdicts import Evidence
from pepscope.strict_reading import Table, WholeNumber
from prober.client.transfer import Transfer
from prober.errors import ImpossibleError, MeasurementError, PlanError
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured import Count, FiniteNumber, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json
from prober.protocol.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: File sizes of Table II.
TABLE_II_BYTES = (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
CONFIDENCE = 0.95
RESAMPLES = 5_000
#: With fewer pairs no interval can hold a median with 95 %: all n values are on one side of it with probability
#: 2^(1-n).
LEAST_PAIRS = 6
#: Resampling is chance; equal measurements are to give equal intervals.
_SEED = 2005


class GainOptions(Table, frozen=True):
    """What a plan may set."""

    applications: Annotated[tuple[str, ...], Meta(min_length=1)] = ("http-data",)
    sizes_bytes: Annotated[tuple[WholeNumber, ...], Meta(min_length=1)] = TABLE_II_BYTES
    repeats: WholeNumber = 20


class GainMeasured(Measured, frozen=True, kw_only=True):
    """A pair of downloads of one size, through the application's usual port and through a free one."""

    size_bytes: FiniteNumber
    #: Which port came first.
    first: Literal["usual", "free"]
    usual_port: Count
    free_port: Count
    usual_total_s: FiniteNumber
    free_total_s: FiniteNumber
    usual_first_byte_s: FiniteNumber = 0.0
    free_first_byte_s: FiniteNumber = 0.0
    usual_moved_bytes: FiniteNumber
    free_moved_bytes: FiniteNumber = 0.0


class Gain(Experiment[GainOptions, GainMeasured]):
    """Times pairs of downloads, one from the application's usual port and one from a free port."""

    name = "gain"
    title = "gain of a split"
    summary = "Time downloads from the application's port and from a free port alternately (Table II)."
    options = GainOptions
    measured = GainMeasured

    def tasks(self, options: GainOptions, scope: Scope) -> Iterable[Task]:
        """One task a pair; all sizes in turn, so that a slow hour touches every size alike."""
        if Direction.DOWN not in scope.directions:
            return
        for repeat in range(1, options.repeats + 1):
            for application in _applications(options):
                if application not in scope.applications:
                    continue
                for size_bytes in _sizes(options, application):
                    cost = transfer_cost(application, Direction.DOWN, size_bytes, scope.rates)
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        Direction.DOWN,
                        {"size_bytes": size_bytes},
                        connections=2 * cost.connections,
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
        values = GainMeasured(
            size_bytes=usual.size_bytes,
            first="usual" if order[0] == usual_port else "free",
            usual_port=usual_port,
            free_port=free_port,
            usual_total_s=usual.total_s,
            free_total_s=free.total_s,
            usual_first_byte_s=usual.first_byte_s,
            free_first_byte_s=free.first_byte_s,
            usual_moved_bytes=usual.moved_bytes,
            free_moved_bytes=free.moved_bytes,
        )
        return Measurement.of(values, (*usual.flows, *free.flows))

    def _download(self, task: Task, end: MobileEnd, port: int) -> Transfer:
        assert task.application is not None
        moved = end.transfer(task.application, Direction.DOWN, int(task.parameters["size_bytes"]), port=port)
        if not moved.complete:
            raise MeasurementError(
                f"the download from port {port} ended with {moved.status} after {moved.moved_bytes} of "
                f"{moved.size_bytes} bytes"
            )
        return moved

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:  # noqa: ARG002
        """Nothing: a port may be faster for other reasons than a split."""
        return ()

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """A row for each size: medians of both ports, and by how much the usual one is faster, with its interval."""
        pairs: dict[int, list[tuple[float, float]]] = defaultdict(list)
        changed, ports = 0, set()
        for item in observed:
            values = self.kept(item)
            size_bytes = values.size_bytes
            if size_bytes < 1:
                continue
            times = values.usual_total_s, values.free_total_s
            if min(times) <= 0:
                continue
            ports.add((values.usual_port, values.free_port))
            changed += values.usual_moved_bytes != size_bytes
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
    `simulated` is the cell of the simulated table whose object and time through the free port are nearest, if one is.
    """
    import msgspec
    import numpy as np

    from prober.measurement.simulated_gain import nearest_simulated_gain

    times = np.asarray(pairs, dtype=np.float64)
    usual_s, free_s = np.median(times, axis=0)
    gain = float(free_s / usual_s - 1.0)
    interval = gain_interval(times) if len(pairs) >= LEAST_PAIRS else None
    simulated = nearest_simulated_gain(size_bytes, float(free_s))
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
        "simulated": None if simulated is None else {**msgspec.structs.asdict(simulated), "reading": simulated.reading},
    }


def gain_interval(times: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Percentile bootstrap of the gain of medians (Efron and Tibshirani 1993, chapter 13); whole pairs are drawn.

    Both times of a pair were measured one after the other, so what slowed the path then slowed both.
    """
    import numpy as np

    chance = np.random.default_rng(_SEED)
    drawn = chance.integers(0, len(times), size=(RESAMPLES, len(times)))
    usual_s, free_s = (np.median(times[:, column][drawn], axis=1) for column in (0, 1))
    low, high = np.quantile(free_s / usual_s - 1.0, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _reading(gain: float, interval: tuple[float, float] | None, pairs: int) -> str:
    if interval is None:
        return f"too few pairs for an interval: at least {LEAST_PAIRS} are needed, got {pairs}"
    low, high = interval
    bounds = f"{_percent(low)} to {_percent(high)}"
    if low <= 0 <= high:
        return f"no difference shown: the interval, {bounds}, includes 0"
    return f"the usual port is {'faster' if gain > 0 else 'slower'} by {_percent(abs(gain))} ({bounds})"


def _percent(share: float) -> str:
    """Two digits at least where a whole percent would hide the sign."""
    return f"{100 * share:.1f} %" if abs(share) < 0.1 and not math.isclose(share, 0) else f"{100 * share:.0f} %"


def _applications(options: GainOptions) -> tuple[Application, ...]:
    try:
        chosen = tuple(Application(name) for name in options.applications)
    except ValueError as error:
        raise PlanError(f"experiments.gain.applications: {error}") from None
    if Application.TCP in chosen:
        raise PlanError("experiments.gain.applications must not hold tcp, whose usual port is the free one")
    return chosen


def _sizes(options: GainOptions, application: Application) -> list[int]:
    least = LEAST_PICTURE_BYTES if application is Application.HTTP_IMAGE else 1
    return sorted({max(least, int(size)) for size in options.sizes_bytes})


def _free_port(application: Application, end: MobileEnd) -> int:
    ports = end.about.ports
    free = {Application.FTP: ports.ftp_free, Application.HTTPS: ports.https_free}.get(application, ports.http_free)
    if not free:
        raise ImpossibleError(f"the server offers {application} at no free port to compare with")
    return free
