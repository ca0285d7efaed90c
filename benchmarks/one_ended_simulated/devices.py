"""Client devices on which the answers of one moment wait together, whichever connections they belong to.

A program that thinks about each answer by itself delays each by itself. A device whose processor is busy, or whose
program looks for work only now and then, delays everything of one moment by about the same, as a queue in a link does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class DeviceKind(StrEnum):
    """What the answers of a device wait for."""

    LOADED = "loaded"  # its processor, which others use by turns: everything takes so many times as long
    LOOKS = "looks"  # its program's next look: sleeping between looks, or one turn of an event loop
    ONE_BY_ONE = "one-by-one"  # each other, and jobs that have nothing to do with them


#: What takes longer is a person's pause, which no processor slows (s).
_MOST_WORK_S = 0.2


@dataclass(frozen=True, slots=True)
class Device:
    """How a device delays answers: `period_s` is that of looks, of changes of load, or between jobs; `work_s` what an
    answer takes on an idle processor, or a job; `swing` the spread of load or jobs (of the logarithm), `varies` that of
    answers' work."""

    kind: DeviceKind
    period_s: float
    work_s: float
    swing: float
    varies: float


def draw_device(random: Random) -> Device:
    """A device of any kind."""
    kind = random.choice(tuple(DeviceKind))
    period_s = math.exp(random.uniform(math.log(0.03), math.log(0.3 if kind is DeviceKind.LOOKS else 3.0)))
    work_s = math.exp(random.uniform(math.log(0.004), math.log(0.06)))
    return Device(kind, period_s, work_s, random.uniform(0.3, 1.0), random.uniform(0.1, 0.5))


@dataclass(slots=True)
class Processor:
    """The state of a device."""

    random: Random
    device: Device
    free_at_s: float = 0.0
    load: float = field(default=1.0)
    next_change_s: float = 0.0

    def done_s(self, now_s: float, wait_s: float) -> float:
        """When an answer is said that would be said `wait_s` from now on an idle device."""
        begin_s = now_s + (wait_s if wait_s > _MOST_WORK_S else 0.0)
        work_s = self.device.work_s * self.random.lognormvariate(0.0, self.device.varies)
        work_s += wait_s if wait_s <= _MOST_WORK_S else 0.0
        if self.device.kind is DeviceKind.LOOKS:
            return math.ceil(begin_s / self.device.period_s) * self.device.period_s
        if self.device.kind is DeviceKind.LOADED:
            return begin_s + work_s * self._load(begin_s)
        self._take_jobs(begin_s)
        self.free_at_s = max(self.free_at_s, begin_s) + work_s
        return self.free_at_s

    def _load(self, time_s: float) -> float:
        if time_s >= self.next_change_s:
            self.load = self.random.lognormvariate(0.0, self.device.swing)
            self.next_change_s = time_s + self.random.expovariate(1 / self.device.period_s)
        return self.load

    def _take_jobs(self, time_s: float) -> None:
        """Jobs that came before this time, one after another."""
        while self.next_change_s <= time_s:
            job_s = 2 * self.device.work_s * self.random.lognormvariate(0.0, self.device.swing)
            self.free_at_s = max(self.free_at_s, self.next_change_s) + job_s
            self.next_change_s += self.random.expovariate(1 / self.device.period_s)
