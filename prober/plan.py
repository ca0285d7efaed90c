"""A plan: which server, which applications, which experiments, within which bounds; read from TOML and checked."""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pepscope.errors import UsageError
from pepscope.packets import Direction
from pepscope.sizes import parse_size
from prober.errors import PlanError
from prober.experiment import Application, Json

SCHEMA = 1
DEFAULT_CONTROL_PORT = 8443


@dataclass(frozen=True, slots=True)
class ServerTable:
    """Where the server is, and the key that it printed when it started."""

    host: str = ""
    control_port: int = DEFAULT_CONTROL_PORT
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class LimitsTable:
    """What a run may cost."""

    #: A plan that is expected to move more is refused before anything is sent.
    total_bytes: int = 500_000_000
    #: How long one task may take.
    task_s: float = 300.0
    #: How long to wait for a path that went away, before the run ends with what it has.
    patience_s: float = 120.0
    #: How often a task that failed is tried in all.
    tries: int = 2


@dataclass(frozen=True, slots=True)
class RatesTable:
    """What to assume of the path before it was measured: only for telling how long a run will take."""

    down_bit_s: float = 10e6
    up_bit_s: float = 2e6
    round_trip_time_s: float = 0.1


@dataclass(frozen=True, slots=True)
class CaptureTable:
    """What of each packet is kept."""

    snap_bytes: int = 256
    #: Whether the mobile keeps all that passes its device, not only what comes from the server and goes there.
    everything: bool = False


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
    experiments: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Read a plan. Raises PlanError, OSError."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(f"{path} is not TOML: {error}") from None
        return cls.from_mapping(document)

    @classmethod
    def from_mapping(cls, document: Mapping[str, Json]) -> Plan:
        """Check a plan. Raises PlanError, whose sentence names the field, its value and what is allowed."""
        known = {"schema", "server", "limits", "rates", "capture", "applications", "directions", "experiments"}
        _refuse_unknown(document, known, "")
        if document.get("schema", SCHEMA) != SCHEMA:
            raise PlanError(f"schema is {SCHEMA} for this version of pepscope, not {document['schema']!r}")
        plan = cls(
            server=_table(ServerTable, document, "server"),
            limits=_table(LimitsTable, document, "limits"),
            rates=_table(RatesTable, document, "rates"),
            capture=_table(CaptureTable, document, "capture"),
            applications=_chosen(document, "applications", {str(item): item for item in Application}),
            directions=_chosen(document, "directions", {item.name.lower(): item for item in Direction}),
            experiments=_experiments(document.get("experiments", {})),
        )
        _check_bounds(plan)
        return plan

    def to_mapping(self) -> dict[str, Json]:
        """What `from_mapping` takes, without the key, which is a secret."""
        document: dict[str, Json] = {
            "schema": SCHEMA,
            **{name: asdict(getattr(self, name)) for name in ("server", "limits", "rates", "capture")},
            "applications": [str(item) for item in self.applications],
            "directions": [item.name.lower() for item in self.directions],
            "experiments": json.loads(json.dumps({name: dict(table) for name, table in self.experiments.items()})),
        }
        document["server"]["key"] = ""
        return document

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits: a run is only resumed under the plan it was begun with."""
        text = json.dumps(self.to_mapping(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _refuse_unknown(table: Mapping[str, Json], known: set[str], prefix: str) -> None:
    for name in table:
        if name not in known:
            raise PlanError(f"{prefix}{name} is no field of a plan, only {', '.join(sorted(known))}")


def _table(kind: Callable[..., Any], document: Mapping[str, Json], name: str) -> Any:
    given = document.get(name, {})
    if not isinstance(given, Mapping):
        raise PlanError(f"{name} is a table, not {given!r}")
    defaults = kind()
    allowed = {item.name: getattr(defaults, item.name) for item in fields(defaults)}
    _refuse_unknown(given, set(allowed), f"{name}.")
    return kind(**{key: _like(value, allowed[key], f"{name}.{key}") for key, value in given.items()})


def _like(value: Json, default: Json, name: str) -> Json:
    """`value` as the type of `default`; sizes may carry a unit, lists hold what the default's list holds."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise PlanError(f"{name} is true or false, not {value!r}")
        return value
    if isinstance(default, int | float):
        return _number(value, default, name)
    if isinstance(default, str):
        if not isinstance(value, str):
            raise PlanError(f"{name} is a text, not {value!r}")
        return value
    if not isinstance(value, list | tuple) or not value:
        raise PlanError(f"{name} is a list with at least one entry, not {value!r}")
    return tuple(_like(item, default[0], f"{name}[{place}]") for place, item in enumerate(value))


def _number(value: Json, default: float, name: str) -> float:
    if isinstance(value, str) and name.split("[")[0].endswith("_bytes"):
        try:
            return parse_size(value)
        except (UsageError, OverflowError):
            raise PlanError(f"{name} is a size such as 512KiB or 2MB, not {value[:60]!r}") from None
    # An integer may be too large to be a float, which a finite one never is.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise PlanError(f"{name} is a number of at least 0, not {value!r:.60}")
    if isinstance(default, int) and value != int(value):
        raise PlanError(f"{name} is a whole number, not {value!r}")
    return type(default)(value)


def _chosen(document: Mapping[str, Json], name: str, choices: Mapping[str, Any]) -> tuple[Any, ...]:
    given = document.get(name, list(choices))
    if not isinstance(given, list | tuple) or not given:
        raise PlanError(f"{name} is a list with at least one of {', '.join(choices)}, not {given!r}")
    for item in given:
        if not isinstance(item, str) or item not in choices:
            raise PlanError(f"{name} holds {item!r}, which is none of {', '.join(choices)}")
    return tuple(choice for key, choice in choices.items() if key in given)


def _experiments(given: Json) -> Mapping[str, Mapping[str, Json]]:
    from prober.experiments import EXPERIMENTS

    if not isinstance(given, Mapping):
        raise PlanError(f"experiments is a table of tables, not {given!r}")
    known = {item.name: item.defaults for item in EXPERIMENTS}
    _refuse_unknown(given, set(known), "experiments.")
    chosen = {}
    for name in known:
        if name not in given:
            continue
        table = given[name]
        if not isinstance(table, Mapping):
            raise PlanError(f"experiments.{name} is a table, not {table!r}")
        _refuse_unknown(table, set(known[name]), f"experiments.{name}.")
        settings = {key: _like(value, known[name][key], f"experiments.{name}.{key}") for key, value in table.items()}
        chosen[name] = {**known[name], **settings}
    return chosen


def _check_bounds(plan: Plan) -> None:
    for name, value, least, most in (
        ("server.control_port", plan.server.control_port, 1, 65535),
        ("limits.total_bytes", plan.limits.total_bytes, 1, 10**12),
        ("limits.task_s", plan.limits.task_s, 1, 86_400),
        ("limits.patience_s", plan.limits.patience_s, 0, 86_400),
        ("limits.tries", plan.limits.tries, 1, 100),
        ("rates.down_bit_s", plan.rates.down_bit_s, 1, 1e12),
        ("rates.up_bit_s", plan.rates.up_bit_s, 1, 1e12),
        ("rates.round_trip_time_s", plan.rates.round_trip_time_s, 0, 60),
        ("capture.snap_bytes", plan.capture.snap_bytes, 68, 262_144),
    ):
        if not least <= value <= most:
            raise PlanError(f"{name} lies between {least:g} and {most:g}, not at {value:g}")
