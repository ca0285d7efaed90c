"""A plan: which server, which applications, which experiments, within which bounds; read from TOML and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from pepscope.captures.direction import Direction
from pepscope.settings import read_settings, read_toml
from pepscope.strict_reading import Table, between
from prober.errors import PlanError
from prober.experiments.registry import experiments
from prober.protocol.application import Application
from prober.protocol.control_messages import DEFAULT_CONTROL_PORT
from prober.protocol.json_documents import Json

SCHEMA: Final = 1

DirectionName: TypeAlias = Literal["up", "down"]


class ServerTable(Table, frozen=True):
    """Where the server is, and the key that it printed when it started."""

    host: str = ""
    control_port: Annotated[int, between(1, 65_535)] = DEFAULT_CONTROL_PORT
    key: str = ""

    def __repr__(self) -> str:
        """All but the key, which is a secret."""
        return f"ServerTable(host={self.host!r}, control_port={self.control_port})"


class LimitsTable(Table, frozen=True):
    """What a run may cost."""

    #: A plan that is expected to move more is refused before anything is sent.
    total_bytes: Annotated[int, between(1, 10**12)] = 500_000_000
    #: How long one task may take.
    task_s: Annotated[float, between(1, 86_400)] = 300.0
    #: How long to wait for a path that went away, before the run ends with what it has.
    patience_s: Annotated[float, between(0, 86_400)] = 120.0
    #: How often a task that failed is tried in all.
    tries: Annotated[int, between(1, 100)] = 2


class RatesTable(Table, frozen=True):
    """What to assume of the path before it was measured: only for estimating how long a run will take."""

    down_bit_s: Annotated[float, between(1, 1e12)] = 10e6
    up_bit_s: Annotated[float, between(1, 1e12)] = 2e6
    round_trip_time_s: Annotated[float, between(0, 60)] = 0.1


class CaptureTable(Table, frozen=True):
    """The captured part of each packet."""

    snap_bytes: Annotated[int, between(68, 262_144)] = 256
    #: Whether the mobile keeps all that passes its device, not only what comes from the server and goes there.
    everything: bool = False


class _PlanDocument(Table, frozen=True):
    """A plan as it is written; the tables of experiments are checked one by one."""

    schema: Literal[1] = SCHEMA
    server: ServerTable = ServerTable()
    limits: LimitsTable = LimitsTable()
    rates: RatesTable = RatesTable()
    capture: CaptureTable = CaptureTable()
    applications: Annotated[tuple[Application, ...], Meta(min_length=1)] = tuple(Application)
    directions: Annotated[tuple[DirectionName, ...], Meta(min_length=1)] = ("up", "down")
    experiments: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """Settings of an experiment as they were written, and why they cannot be read, as one sentence."""

    settings: Mapping[str, Json]
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked plan; equal plans have equal `digest`s."""

    server: ServerTable = field(default_factory=ServerTable)
    limits: LimitsTable = field(default_factory=LimitsTable)
    rates: RatesTable = field(default_factory=RatesTable)
    capture: CaptureTable = field(default_factory=CaptureTable)
    applications: tuple[Application, ...] = tuple(Application)
    directions: tuple[Direction, ...] = (Direction.DOWN, Direction.UP)
    #: Settings of each experiment that is to run, defaults filled in.
    experiments: Mapping[str, Table] = field(default_factory=dict)
    #: Of an archive's plan: settings as written, of experiments that are not installed here or had other options.
    unread: Mapping[str, UnreadTable] = field(default_factory=dict)

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Read a plan. Raises PlanError, OSError."""
        document = read_toml(path, PlanError)
        try:
            return cls.from_mapping(document)
        except PlanError as error:
            raise PlanError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, document: Mapping[str, Json]) -> Plan:
        """Check a plan. Raises PlanError, whose sentence names the field, its value and what is allowed."""
        plan = cls.from_archive(document)
        for table in plan.unread.values():
            raise PlanError(table.why)
        return plan

    @classmethod
    def from_archive(cls, document: Mapping[str, Json]) -> Plan:
        """Check the plan of a run that is over: experiments that cannot be read stay `unread`. Raises PlanError."""
        read = read_settings(_PlanDocument, document, PlanError)
        experiments, unread = _experiments(read.experiments)
        return cls(
            server=read.server,
            limits=read.limits,
            rates=read.rates,
            capture=read.capture,
            applications=tuple(item for item in Application if item in read.applications),
            directions=tuple(item for item in Direction if item.name.lower() in read.directions),
            experiments=experiments,
            unread=unread,
        )

    def to_mapping(self) -> dict[str, Json]:
        """What `from_mapping` takes, without the key, which is a secret."""
        document: dict[str, Json] = {
            "schema": SCHEMA,
            **{name: msgspec.structs.asdict(getattr(self, name)) for name in ("server", "limits", "rates", "capture")},
            "applications": [str(item) for item in self.applications],
            "directions": [item.name.lower() for item in self.directions],
            "experiments": {
                **{name: msgspec.to_builtins(table) for name, table in self.experiments.items()},
                **{name: dict(table.settings) for name, table in self.unread.items()},
            },
        }
        document["server"]["key"] = ""
        return document

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits: a run is only resumed under the plan it was begun with."""
        text = json.dumps(self.to_mapping(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _experiments(
    given: Mapping[str, Mapping[str, Json]],
) -> tuple[dict[str, Table], dict[str, UnreadTable]]:
    """The settings of experiments in the order in which they run, and those that cannot be read."""
    known = {item.name: item for item in experiments()}
    unread = {
        name: UnreadTable(settings, f"an experiment must be one of {', '.join(sorted(known))}, got experiments.{name}")
        for name, settings in given.items()
        if name not in known
    }
    read: dict[str, Table] = {}
    for name, experiment in known.items():
        if name in given:
            try:
                read[name] = read_settings(experiment.options, given[name], PlanError, place=f"experiments.{name}")
            except PlanError as error:
                unread[name] = UnreadTable(given[name], str(error))
    return read, unread
