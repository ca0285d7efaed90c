"""What a check measures: for each address the distance, then every experiment at each of its ports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, PlaceObservation
from prober.check.given import Given
from prober.check.probes.distances import Distance, datagram_distance
from prober.check.registry import check_experiments
from prober.check.targets import Place

#: Hosts that are asked at the same time; ports of one host are asked one after the other.
_AT_ONCE = 6
_PROBE_S = 1.0


@dataclass(frozen=True, slots=True)
class Observations:
    """All that a check saw: places of targets, and those that experiments ask beside them."""

    places: tuple[PlaceObservation, ...]
    unresolved: dict[str, str] = field(default_factory=dict)


def measure(
    places: Sequence[Place],
    deadline_s: float,
    given: Given | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Observations:
    """Measure all places, `_AT_ONCE` hosts at a time, and begin nothing new `deadline_s` seconds from now."""
    given = given or Given()
    work = _work(places, given)
    targets = frozenset(place.address for place in places)
    hosts: dict[str, dict[Place, list[CheckExperiment[Any]]]] = {}
    for place, experiments in work.items():
        hosts.setdefault(place.address, {})[place] = experiments
    runner = _Runner(time.monotonic() + deadline_s, given, targets, len(hosts), progress)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="check") as pool:
        found = {each.place: each for task in pool.map(runner.host, hosts.values()) for each in task}
    return Observations(tuple(found[place] for place in work))


def _work(places: Sequence[Place], given: Given) -> dict[Place, list[CheckExperiment[Any]]]:
    """Which experiments measure at which place, in order; the targets' places come first."""
    work: dict[Place, list[CheckExperiment[Any]]] = {place: [] for place in places}
    for experiment in check_experiments():
        for place in experiment.subjects(places, given):
            work.setdefault(place, []).append(experiment)
    return work


class _Runner:
    """Measures one host after the other on each thread, and counts those that are done for a bar of progress."""

    def __init__(
        self,
        end: float,
        given: Given,
        targets: frozenset[str],
        total: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self._end, self._given, self._targets = end, given, targets
        self._lock, self._done, self._total, self._progress = threading.Lock(), 0, total, progress

    def host(self, work: Mapping[Place, Sequence[CheckExperiment[Any]]]) -> list[PlaceObservation]:
        """All ports of one address."""
        distance: Distance | None = None
        found = []
        for place, experiments in work.items():
            if time.monotonic() > self._end:
                found.append(PlaceObservation(place, distance or Distance.unknown(), error="there was no time left"))
                continue
            try:
                if distance is None:
                    is_target = place.address in self._targets
                    distance = datagram_distance(place.address, _PROBE_S) if is_target else Distance.unknown()
            except OSError as error:
                found.append(PlaceObservation(place, Distance.unknown(), error=_why(error)))
                continue
            found.append(self._place(place, distance, experiments))
        with self._lock:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
        return found

    def _place(self, place: Place, distance: Distance, experiments: Sequence[CheckExperiment[Any]]) -> PlaceObservation:
        """Every experiment at one port; where the first one fails, the others would as well."""
        measured: dict[str, object] = {}
        failed: dict[str, str] = {}
        for experiment in experiments:
            if measured and time.monotonic() > self._end:
                failed[experiment.name] = "there was no time left"
                continue
            try:
                found = experiment.measure(Asked(place, distance, self._given, measured))
            except OSError as error:
                if not measured:
                    return PlaceObservation(place, distance, error=_why(error))
                failed[experiment.name] = _why(error)
                continue
            if found is not None:
                measured[experiment.name] = found
        return PlaceObservation(place, distance, measured, failed=failed)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
