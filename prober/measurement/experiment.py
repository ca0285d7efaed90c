"""What an experiment is: tasks that are measured one by one, and a rule that reads evidence off what was measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding
from pepscope.results.verdicts import Evidence, PairResult
from pepscope.strict_reading import Table, read_as
from prober.client.mobile_end import MobileEnd
from prober.errors import ArchiveError
from prober.measurement.cost_estimate import PathRates
from prober.measurement.measured import Measured
from prober.measurement.task import Measurement, Observation, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json

Options = TypeVar("Options", bound=Table)
Kept = TypeVar("Kept", bound=Measured)


class Scope(Protocol):
    """A plan's settings for all experiments: what to measure, and the assumed rates of the path."""

    @property
    def applications(self) -> tuple[Application, ...]:
        """The rows of the matrix that are measured."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Its columns."""

    @property
    def rates(self) -> PathRates:
        """Assumed rates, for estimates of a run's cost only."""


@dataclass(frozen=True, slots=True)
class ObservedTask:
    """An observation beside what the detector found in its captures: all that a rule may look at."""

    observation: Observation
    #: Verdicts on the connections of the task, those of `Measurement.flows` first; empty without captures.
    pairs: tuple[PairResult, ...] = ()
    #: The captures as files to look into; `None` where none was taken.
    mobile_capture: Path | None = None
    server_capture: Path | None = None


class Experiment(ABC, Generic[Options, Kept]):
    """One file in `prober/experiments` and one line in its registry, or a class in a package of its own.

    Another package registers its class by an entry point in the group `pepscope.experiments`, under the class's `name`.
    `measure` touches the network and concludes nothing; `examine` concludes and touches nothing, so that an archive
    gives the same findings later.
    """

    #: As plans and archives write it.
    name: ClassVar[str]
    #: As reports write it, in prose.
    title: ClassVar[str]
    #: One line for lists and plans.
    summary: ClassVar[str]
    #: What `examine` may find.
    findings: ClassVar[tuple[type[Finding], ...]] = ()
    #: Written into archives. It grows whenever `measure` keeps, or `examine` reads, something else.
    version: ClassVar[int] = 1
    #: Rules for archives of earlier versions that can still be judged, by version.
    earlier: ClassVar[Mapping[int, Experiment[Any, Any]]] = MappingProxyType({})
    #: The experiment's options with their defaults, as the plan's `[experiments.NAME]` table writes them.
    options: type[Options]
    #: What `measure` keeps and `examine` reads.
    measured: type[Kept]

    @abstractmethod
    def tasks(self, options: Options, scope: Scope) -> Iterable[Task]:
        """What is to be measured, in order. Raises PlanError for options that make no sense."""

    @abstractmethod
    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Measure one task. Raises MeasurementError, ImpossibleError, UnreachableError, OSError."""

    @abstractmethod
    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Read evidence off all done observations of this experiment for one application and direction.

        Empty where the captures' own verdicts say everything. Measurements may come from anywhere: raises ArchiveError
        where they are not what `measure` writes.
        """

    def kept(self, item: ObservedTask) -> Kept:
        """What a task measured. Raises ArchiveError where an archive holds something else."""
        return read_as(self.measured, item.observation.measurement.values, ArchiveError, place="measurement")

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:  # noqa: ARG002
        """Measurements that are no evidence for or against a split, such as a table of gains, for reports."""
        return {}
