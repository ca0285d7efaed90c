"""Settings of a command: TOML and flags become one document, and the document a checked `Table`.

A settings type is a `pepscope.strict_reading.Table`: its fields with their bounds and defaults are declared once, as
types; the tables of the TOML file are fields that are `Table`s themselves. Each room passes its own type of error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import inspect

from pepscope.errors import PepscopeError, UsageError
from pepscope.sizes import parse_size
from pepscope.strict_reading import Table, read_as

S = TypeVar("S", bound=Table)

_STEP = re.compile(r"([A-Za-z0-9_-]+)|\[(\d+)\]|(\.)")


def read_toml(path: str | Path, error: type[PepscopeError]) -> dict[str, Any]:
    """The document in a TOML file. Raises `error`, OSError."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise error(f"{path} must be TOML: {reason}") from None


def read_settings(kind: type[S], document: Any, error: type[PepscopeError], *, place: str = "") -> S:
    """Settings from a document; what it leaves out keeps its default.

    Beside what `read_as` takes, a list of one entry may be written as that entry, a whole number as `5e8`, and one
    whose name ends in `_bytes` with a unit, `2GiB`. Raises `error`, whose sentence names the place, what must be there,
    and what was given.
    """
    return read_as(kind, _in_full(inspect.type_info(kind), document, ""), error, place=place)


def _in_full(kind: inspect.Type, value: Any, name: str) -> Any:
    match kind:
        case inspect.StructType() if isinstance(value, Mapping):
            types = {field.encode_name: field.type for field in kind.fields}
            return {key: _in_full(types[key], item, key) if key in types else item for key, item in value.items()}
        case inspect.VarTupleType():
            is_single = isinstance(value, str | int) and not isinstance(value, bool)
            items = [value] if is_single else value
            return (
                [_in_full(kind.item_type, item, name) for item in items] if isinstance(items, list | tuple) else value
            )
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)
        case inspect.IntType() if isinstance(value, str) and name.endswith("_bytes"):
            try:
                return parse_size(value)
            except (UsageError, OverflowError):
                return value
    return value


def parse_change(text: str, read: Callable[[str], Any]) -> tuple[str, Any]:
    """Field and value of `--set FIELD=VALUE`; what `read` refuses with ValueError is text. Raises UsageError."""
    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--set must be FIELD=VALUE, got {text}")
    try:
        return name.strip(), read(value.strip())
    except ValueError:
        return name.strip(), value.strip()


def toml_value(text: str) -> Any:
    """A value as TOML writes it. Raises ValueError."""
    return tomllib.loads(f"value = {text}")["value"]


def assign(document: Any, name: str, value: Any, error: type[PepscopeError]) -> None:
    """Set the field called `name` (`path[0].down.delay_s`), making tables on the way but no list entries.

    Raises `error` where the name leads nowhere.
    """
    steps = _steps(name, error)
    place = document
    for step in steps[:-1]:
        if isinstance(step, str) and isinstance(place, dict):
            place = place.setdefault(step, {})
        else:
            place = _entry(place, step, name, error)
    if not (isinstance(steps[-1], str) and isinstance(place, dict)):
        _entry(place, steps[-1], name, error)
    place[steps[-1]] = value


def _steps(name: str, error: type[PepscopeError]) -> list[str | int]:
    steps: list[str | int] = []
    position = 0
    while position < len(name):
        found = _STEP.match(name, position)
        if found is None:
            raise error(f"the name of a field must be like path[0].down.delay_s, got {name!r}")
        position = found.end()
        if found[1] is not None:
            steps.append(found[1])
        elif found[2] is not None:
            steps.append(int(found[2]))
    if not steps:
        raise error("the name of a field must be like path[0].down.delay_s, got an empty one")
    return steps


def _entry(place: Any, step: str | int, name: str, error: type[PepscopeError]) -> Any:
    if isinstance(place, list) and isinstance(step, int) and step < len(place):
        return place[step]
    raise error(f"{name} must name a field that exists: there is no {step!r} at that place")
