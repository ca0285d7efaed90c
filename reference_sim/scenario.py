"""Scenarios: what a run simulates, read from TOML, checked by the engine, immutable."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from pepscope import _core, settings
from pepscope.errors import ScenarioError

#: A value of a scenario: what JSON can say, with read-only tables and lists.
Value: TypeAlias = str | int | float | bool | Mapping[str, Any] | tuple[Any, ...] | None
#: Scenarios that come with pepscope, and their traces.
SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario with every default filled in; its fields are those of the engine's contract (docs/scenarios.md)."""

    name: str
    description: str
    seed: int
    #: When the run stops at the latest, in simulated seconds.
    duration_s: float
    #: How long it goes on after all flows have finished; -1 for the whole duration.
    stop_after_finish_s: float
    server: Mapping[str, Value]
    mobile: Mapping[str, Value]
    #: The hops from the server to the mobile.
    path: tuple[Mapping[str, Value], ...]
    traffic: tuple[Mapping[str, Value], ...]
    record: Mapping[str, Value]
    #: As it was given, traces included: what the engine reads.
    given: Mapping[str, Value] = field(repr=False, compare=False)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Scenario:
        """Check a scenario. Raises ScenarioError, whose sentence names the field, its value and what is allowed."""
        _check_values(given)
        resolved = _freeze(json.loads(_core.check_scenario(_dumps(given))))
        return cls(**resolved, given=_freeze(given))

    @classmethod
    def from_toml(cls, path: str | Path) -> Scenario:
        """Read a scenario file; `file = "..."` in a table of rates names a trace beside it, or one of pepscope's own.

        Raises ScenarioError, OSError.
        """
        return cls.from_mapping(read_toml(path))

    def to_json(self) -> str:
        """What the engine reads, on one line with its fields in order: equal scenarios give equal text."""
        return _dumps({**self.given, "seed": self.seed})

    def with_seed(self, seed: int) -> Scenario:
        """The same scenario with other random numbers."""
        return replace(self, seed=seed)

    def with_values(self, changes: Mapping[str, Any]) -> Scenario:
        """The same scenario with other values, by name: `{"path[0].down.delay_s": 0.1, "seed": 7}`.

        Raises ScenarioError where a name leads nowhere or a value is refused.
        """
        document = _thaw({**self.given, "seed": self.seed})
        for name, value in changes.items():
            settings.assign(document, name, _thaw(value), ScenarioError)
        return type(self).from_mapping(document)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file, traces and times that it names read in. Raises ScenarioError, OSError."""
    document = settings.read_toml(path, ScenarioError)
    _read_files(document, Path(path).parent)
    return document


def _read_files(value: Any, directory: Path) -> None:
    if isinstance(value, dict):
        times = value.get("times")
        if isinstance(times, dict) and isinstance(times.get("file"), str):
            value["times"] = _times(times, directory)
        if isinstance(value.get("file"), str) and "text" not in value:
            trace = _trace(directory, value.pop("file"))
            try:
                value["text"] = trace.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise ScenarioError(f"{trace} must be text, with one time or rate in each line") from None
        for inner in value.values():
            _read_files(inner, directory)
    elif isinstance(value, list):
        for inner in value:
            _read_files(inner, directory)


def _trace(directory: Path, name: str) -> Path:
    """The file of that name beside the scenario; without it the trace of that name that comes with pepscope."""
    beside = directory / name
    own = SCENARIOS / Path(name).name
    return own if Path(name).name == name and not beside.exists() and own.is_file() else beside


def _times(times: dict[str, Any], directory: Path) -> dict[str, Any]:
    """What a file says, and before it what stands beside the file's name."""
    beside = {name: value for name, value in times.items() if name != "file"}
    return {**settings.read_toml(directory / times["file"], ScenarioError), **beside}


def _check_values(value: Any, name: str = "") -> None:
    """Raise ScenarioError for what a scenario's text (JSON) does not have, as TOML's `nan` and its dates."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_values(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, inner in enumerate(value):
            _check_values(inner, f"{name}[{place}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{name} must be a finite number, got {value}")
    elif isinstance(value, str) and value.encode("utf-8", "replace").decode() != value:
        raise ScenarioError(f"{name} must be text in UTF-8, got {value!r}")
    elif not isinstance(value, str | float | int | None):
        raise ScenarioError(f"{name} must be a number, a text, true or false, got {value}")


def _dumps(value: Any) -> str:
    return json.dumps(_thaw(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({key: _freeze(inner) for key, inner in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_freeze(inner) for inner in value)
    return value


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thaw(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_thaw(inner) for inner in value]
    return value
