"""Settings of a service: from TOML and flags to frozen dataclasses, every value checked with one sentence.

A settings class is a dataclass of texts, numbers, booleans, enumerations, tuples of these, and other such classes,
which are the tables of the TOML file. Each room passes its own kind of error.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pepscope.errors import PepscopeError, UsageError
from pepscope.sizes import parse_size

T = TypeVar("T")

_WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def bounded(default: float, low: float, high: float) -> Any:
    """A field of numbers with bounds, both allowed."""
    return field(default=default, metadata={"low": low, "high": high})


def read_toml(path: str | Path, error: type[PepscopeError]) -> dict[str, Any]:
    """The document in a TOML file. Raises `error`, OSError."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise error(f"{path} is not TOML: {reason}") from None


def merge(document: dict[str, Any], name: str, value: Any, error: type[PepscopeError]) -> None:
    """Set the field called `name` (`limits.connections`) in a document. Raises `error`."""
    *tables, last = name.split(".")
    place: Any = document
    for table in tables:
        place = place.setdefault(table, {})
        if not isinstance(place, dict):
            raise error(f"{name} leads nowhere: {table} is a value, not a table")
    place[last] = value


def read_settings(kind: type[T], document: Any, error: type[PepscopeError]) -> T:
    """A settings class from a document; what is not said keeps its default.

    Numbers obey the bounds of their field, and those whose name ends in `_bytes` may be written with a unit (`2GiB`).
    Raises `error`, whose sentence names the field, its value and what is allowed.
    """
    return _Reading(error).table(kind, document, "")


@dataclass(frozen=True, slots=True)
class _Reading:
    error: type[PepscopeError]

    def table(self, kind: type[T], document: Any, place: str) -> T:
        if not isinstance(document, Mapping):
            raise self.error(f"{place.removesuffix('.')} must be a table, but is {document!r}")
        known = {entry.name: entry for entry in fields(cast(Any, kind))}
        for name in document:
            if name not in known:
                raise self.error(f"there is no field {place}{name}; there are {', '.join(sorted(known))}")
        hints = get_type_hints(kind)
        values: dict[str, Any] = {}
        for name, entry in known.items():
            if name in document:
                values[name] = self._value(hints[name], document[name], place + name, entry.metadata)
            elif entry.default is MISSING:
                raise self.error(f"{place}{name} is missing")
        return kind(**values)

    def _value(self, kind: Any, value: Any, name: str, bounds: Mapping[str, Any]) -> Any:
        if is_dataclass(kind):
            return self.table(cast(Any, kind), value, f"{name}.")
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._choice(kind, value, name)
        if get_origin(kind) is tuple:
            listed = [value] if isinstance(value, str | int) and not isinstance(value, bool) else value
            if not isinstance(listed, list | tuple):
                raise self.error(f"{name} must be a list, but is {value!r}")
            return tuple(self._value(get_args(kind)[0], item, name, bounds) for item in listed)
        return self._scalar(kind, value, name, bounds)

    def _choice(self, kind: type[Enum], value: Any, name: str) -> Enum:
        try:
            return value if isinstance(value, kind) else kind(value)
        except ValueError:
            allowed = ", ".join(str(member.value) for member in kind)
            raise self.error(f"{name} must be one of {allowed}, but is {value!r}") from None

    def _scalar(self, kind: Any, value: Any, name: str, bounds: Mapping[str, Any]) -> Any:
        if kind is int and isinstance(value, str) and name.endswith("_bytes"):
            try:
                value = parse_size(value)
            except UsageError as reason:
                raise self.error(f"{name}: {reason}") from None
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        is_wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
        if is_wrong or (kind is float and not math.isfinite(value)):
            raise self.error(f"{name} must be {_WANTED[kind]}, but is {value!r}")
        if bounds and not bounds["low"] <= value <= bounds["high"]:
            raise self.error(f"{name} must lie between {bounds['low']} and {bounds['high']}, but is {value}")
        return value
