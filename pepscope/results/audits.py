"""Results of an audit: a verdict for each application and direction, its evidence, and its course over runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pepscope.captures.packets import Direction
from pepscope.plugins import writer
from pepscope.results.verdicts import Evidence, Mechanism, PairResult, Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class AuditConnection:
    """One connection that a task made, with the detector's verdict on it."""

    task: str
    experiment: str
    #: What the task made it for: `data`, `control` (FTP), `probe`, ...
    role: str
    pair: PairResult
    #: Why it is no evidence for the cell, one sentence; empty where it counts.
    set_aside: str = ""
    #: When the task began, by the mobile's clock.
    started_unix_ns: int = 0


@dataclass(frozen=True, slots=True)
class AuditCell:
    """One application in one direction: the verdict on it with everything that it rests on."""

    application: str
    direction: Direction
    verdict: Verdict
    probability: Mapping[Verdict, float]  # regular, split-tcp and tcp-proxy, summing to 1
    reason: str
    #: Findings of active experiments.
    evidence: tuple[Evidence, ...] = ()
    connections: tuple[AuditConnection, ...] = ()
    tasks_done: int = 0
    tasks: int = 0
    #: Of a split that begins late: so many bytes of a connection are end to end. `None` from the first one on.
    from_bytes: int | None = None
    #: How it is split; `None` where the verdict is no split.
    mechanism: Mechanism | None = None


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Tasks of one experiment that were not measured, all for one reason."""

    experiment: str
    application: str | None
    direction: Direction | None
    #: `failed`, `impossible`, or `missing` where a run ended before its plan.
    status: str
    reason: str
    tasks: int


@dataclass(frozen=True, slots=True)
class AuditMetrics:
    """Measurements of an experiment that are not evidence, such as the gain of a split, as JSON values."""

    experiment: str
    application: str | None
    direction: Direction | None
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditRun:
    """One run of a plan, judged."""

    #: The archive or directory, as given.
    source: str
    started_unix_ns: int
    duration_s: float
    server: str
    plan_digest: str
    cells: tuple[AuditCell, ...]
    not_measured: tuple[NotMeasured, ...] = ()
    metrics: tuple[AuditMetrics, ...] = ()
    #: What was written down about hosts and clocks; JSON.
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    #: Finished and planned measurements; one that covers both directions counts once.
    tasks_done: int = 0
    tasks: int = 0
    #: What experiments are called in prose, by name; not part of the JSON.
    titles: Mapping[str, str] = field(default_factory=dict)

    def cell(self, application: str, direction: Direction) -> AuditCell | None:
        """The cell of that row and column, or `None`."""
        return next((c for c in self.cells if c.application == application and c.direction is direction), None)


@dataclass(frozen=True, slots=True)
class AuditChange:
    """A cell whose verdict became another one: between these two runs, with nothing but inconclusive ones between."""

    application: str
    direction: Direction
    before: Verdict
    after: Verdict
    last_before_unix_ns: int
    first_after_unix_ns: int


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Runs in order of time; the matrix is the last one's."""

    runs: tuple[AuditRun, ...]

    @property
    def latest(self) -> AuditRun:
        """The run whose matrix is shown."""
        return self.runs[-1]

    def rows(self) -> tuple[str, ...]:
        """Applications of all runs, in the order in which they come first."""
        return tuple(dict.fromkeys(cell.application for run in reversed(self.runs) for cell in run.cells))

    def columns(self) -> tuple[Direction, ...]:
        """Directions of all runs: download before upload, as auditors read it."""
        present = {cell.direction for run in self.runs for cell in run.cells}
        return tuple(direction for direction in (Direction.DOWN, Direction.UP) if direction in present)

    def history(self, application: str, direction: Direction) -> tuple[AuditCell | None, ...]:
        """The cell in each run; `None` where a run has no such cell."""
        return tuple(run.cell(application, direction) for run in self.runs)

    def changes(self) -> tuple[AuditChange, ...]:
        """Every change of a verdict into another, in order of time. Inconclusive runs change nothing."""
        found = [
            change
            for application in self.rows()
            for direction in self.columns()
            for change in _changes(self.runs, application, direction)
        ]
        return tuple(sorted(found, key=lambda change: change.first_after_unix_ns))

    def since_unix_ns(self, application: str, direction: Direction) -> int | None:
        """Start of the first run since when the latest run's verdict has stood; `None` where it is inconclusive."""
        cell = self.latest.cell(application, direction)
        if cell is None or cell.verdict is Verdict.INCONCLUSIVE:
            return None
        since = self.latest.started_unix_ns
        for run in reversed(self.runs):
            earlier = run.cell(application, direction)
            if earlier is None or earlier.verdict is Verdict.INCONCLUSIVE:
                continue
            if earlier.verdict is not cell.verdict:
                break
            since = run.started_unix_ns
        return since

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `audit-1` (see `pepscope/schemas`) as plain dictionaries and lists."""
        document: dict[str, Any] = writer("audit-document")(self)
        return document

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON text."""
        import json

        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """One row a run and cell: verdict, probabilities, numbers of tasks and connections, and the reason."""
        frame: pd.DataFrame = writer("audit-frame")(self)
        return frame


def _changes(runs: Sequence[AuditRun], application: str, direction: Direction) -> list[AuditChange]:
    found = []
    before: tuple[Verdict, int] | None = None
    for run in runs:
        cell = run.cell(application, direction)
        if cell is None or cell.verdict is Verdict.INCONCLUSIVE:
            continue
        if before is not None and before[0] is not cell.verdict:
            change = AuditChange(application, direction, before[0], cell.verdict, before[1], run.started_unix_ns)
            found.append(change)
        before = (cell.verdict, run.started_unix_ns)
    return found
