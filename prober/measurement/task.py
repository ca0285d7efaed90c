"""Tasks and observations: what is measured one by one, how it ended, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

from pepscope.captures.direction import Direction
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.measurement.measured import Measured
from prober.protocol.application import Application
from prober.protocol.json_documents import Json


@dataclass(frozen=True, slots=True)
class Task:
    """One measurement of an experiment: done and stored as a whole, and not repeated when a run is resumed."""

    experiment: str
    #: Which of several measurements of the same kind, from 1.
    repeat: int
    #: The row and column of the matrix that it measures; `None` where it measures the path as such.
    application: Application | None
    direction: Direction | None
    #: Further fields that distinguish this task from others of the experiment, such as `{"size_bytes": 1_000_000}`.
    parameters: Mapping[str, Json] = field(default_factory=dict)
    #: What it is expected to send to the server, to fetch from it, and to take, at the plan's assumed rates.
    bytes_up: int = 0
    bytes_down: int = 0
    #: How many TCP connections it is expected to make; archives do not keep it.
    connections: int = field(default=1, compare=False)
    expected_s: float = 1.0
    #: Whether both ends capture during the measurement, if they can; `requires` holds what they must have.
    captured: bool = True
    requires: frozenset[Capability] = frozenset()

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
    #: It cannot run here, for the given reason.
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a task measured, nothing concluded yet. All of it JSON, so that rules can be applied again years later."""

    #: Numbers, texts and series, names with units.
    values: Mapping[str, Json] = field(default_factory=dict)
    flows: tuple[Flow, ...] = ()
    #: The delay that the receiver put on every ACK while it was measured, for Method 3; `None` where it put none.
    ack_delay_s: float | None = None

    @classmethod
    def of(cls, values: Measured, flows: Iterable[Flow] = (), ack_delay_s: float | None = None) -> Measurement:
        """A measurement from its type."""
        return cls(msgspec.json.decode(msgspec.json.encode(values)), tuple(flows), ack_delay_s)


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
    #: The version of the experiment that measured it.
    experiment_version: int = 1


def repeated(task: Task, repeats: Json) -> Iterator[Task]:
    """The same task so many times, at least once."""
    for number in range(1, max(1, int(repeats)) + 1):
        yield replace(task, repeat=number)


def _plain(part: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in part)
