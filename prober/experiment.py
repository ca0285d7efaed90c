"""What an experiment is: tasks that are measured one by one, and a rule that reads evidence off what was measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pepscope.packets import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from pepscope.results import Evidence, PairResult
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: What JSON can say; measurements and parameters consist of it, so that an archive holds them as they are.
Json = Any


class Application(StrEnum):
    """What a transfer looks like to the network; the rows of the matrix."""

    FTP = "ftp"
    HTTP_DATA = "http-data"
    HTTP_IMAGE = "http-image"
    HTTPS = "https"
    TCP = "tcp"


class Want(StrEnum):
    """What a task cannot do without, beside a server that answers."""

    MOBILE_CAPTURE = "mobile-capture"
    SERVER_CAPTURE = "server-capture"
    MOBILE_HOLD = "mobile-hold"
    SERVER_HOLD = "server-hold"
    ERROR_QUEUE = "error-queue"


@dataclass(frozen=True, slots=True)
class Task:
    """One measurement of an experiment: done as a whole, kept as a whole, and not done again when a run is resumed."""

    experiment: str
    #: Which of several measurements of the same kind, from 1.
    repeat: int
    #: The row and column of the matrix that it speaks about; `None` where it is about the path as such.
    application: Application | None
    direction: Direction | None
    #: What else tells this task from others of the experiment, such as `{"size_bytes": 1_000_000}`.
    parameters: Mapping[str, Json] = field(default_factory=dict)
    #: What it is expected to send to the server, to fetch from it, and to take, at the plan's assumed rates.
    bytes_up: int = 0
    bytes_down: int = 0
    expected_s: float = 1.0
    #: Whether both ends capture while it is measured, where they can; `wants` says where they must.
    captured: bool = True
    wants: frozenset[Want] = frozenset()

    @property
    def key(self) -> str:
        """A name for files: the same for the same task of the same plan, different for every other task."""
        parts = [self.experiment]
        parts += [self.application.value] if self.application is not None else []
        parts += [self.direction.name.lower()] if self.direction is not None else []
        parts += [f"{name}={self.parameters[name]}" for name in sorted(self.parameters)]
        return "--".join([*(_plain(part) for part in parts), f"{self.repeat:03d}"])


class Status(StrEnum):
    """How a task ended."""

    DONE = "done"
    #: It was tried and did not come to its end; a resumed run tries it again.
    FAILED = "failed"
    #: It cannot run here; the reason says why.
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection that a task made, as the mobile's kernel named it, so that it can be found in the captures."""

    mobile_port: int
    server_port: int
    #: What it was for: `data`, `control` (FTP), `probe` (no answer expected), ...
    role: str = "data"
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a task measured, nothing concluded yet. All of it JSON, so that rules can be applied again years later."""

    #: Numbers, texts and series, names with units.
    values: Mapping[str, Json] = field(default_factory=dict)
    flows: tuple[Flow, ...] = ()
    #: The delay that the receiver put on every ACK while it was measured, for Method 3; `None` where it put none.
    ack_delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A task, how it ended, and what it measured."""

    task: Task
    status: Status
    #: Why it is not done, one sentence; empty where it is.
    reason: str
    started_unix_ns: int
    duration_s: float
    measurement: Measurement = field(default_factory=Measurement)
    #: Names of the captures within the archive; empty where none was taken, with the reason why.
    mobile_capture: str = ""
    server_capture: str = ""
    capture_note: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation beside what the detector found in its captures: all that a rule may look at."""

    observation: Observation
    #: Verdicts on the connections of the task, those of `Measurement.flows` first; empty without captures.
    pairs: tuple[PairResult, ...] = ()
    #: The captures as files to look into; `None` where none was taken.
    mobile_capture: Path | None = None
    server_capture: Path | None = None


class Experiment(ABC):
    """One file in `prober/experiments`, one line in its registry.

    `measure` touches the network and concludes nothing; `examine` concludes and touches nothing, so that an archive
    gives the same findings later.
    """

    name: ClassVar[str]
    #: One line for lists and plans.
    summary: ClassVar[str]
    #: The experiment's settings with their defaults, as the plan's `[experiments.NAME]` table writes them.
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType({})

    @abstractmethod
    def tasks(self, plan: Plan) -> Iterable[Task]:
        """What is to be measured under this plan, in order. Raises PlanError for settings that make no sense."""

    @abstractmethod
    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Measure one task. Raises MeasurementError, ImpossibleError, UnreachableError, OSError."""

    @abstractmethod
    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Read evidence off all done observations of this experiment for one application and direction.

        Empty where the captures' own verdicts say everything. Measurements may come from anywhere: raises ArchiveError
        where they are not what `measure` writes.
        """

    def facts(self, seen: Sequence[Seen]) -> Mapping[str, Json]:  # noqa: ARG002
        """What was learned that is no evidence for or against a split, such as a table of gains; for reports."""
        return {}


def repeated(task: Task, repeats: Json) -> Iterator[Task]:
    """The same task so many times, at least once."""
    for number in range(1, max(1, int(repeats)) + 1):
        yield replace(task, repeat=number)


def _plain(part: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in part)
