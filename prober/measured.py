"""Reading measurements back: an archive may come from anywhere, so every value is looked at before it is believed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

from prober.errors import ArchiveError
from prober.experiment import Json


def number(values: Mapping[str, Json], name: str) -> float:
    """A finite number. Raises ArchiveError."""
    value = values.get(name)
    if not isinstance(value, bool) and isinstance(value, int | float):
        with contextlib.suppress(OverflowError):  # JSON's whole numbers know no bounds
            if math.isfinite(made := float(value)):
                return made
    raise ArchiveError(f"the measurement's {name} is a number, not {_short(value)}")


def optional_number(values: Mapping[str, Json], name: str) -> float | None:
    """A finite number, or `None` where there is none. Raises ArchiveError."""
    return None if values.get(name) is None else number(values, name)


def text(values: Mapping[str, Json], name: str) -> str:
    """A text. Raises ArchiveError."""
    value = values.get(name)
    if not isinstance(value, str):
        raise ArchiveError(f"the measurement's {name} is a text, not {_short(value)}")
    return value


def truth(values: Mapping[str, Json], name: str) -> bool:
    """True or false. Raises ArchiveError."""
    value = values.get(name)
    if not isinstance(value, bool):
        raise ArchiveError(f"the measurement's {name} is true or false, not {_short(value)}")
    return value


def table(values: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A table. Raises ArchiveError."""
    value = values.get(name)
    if not isinstance(value, Mapping):
        raise ArchiveError(f"the measurement's {name} is a table, not {_short(value)}")
    return value


def entries(values: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """A list of tables. Raises ArchiveError."""
    value = values.get(name)
    if not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
        raise ArchiveError(f"the measurement's {name} is a list of tables, not {_short(value)}")
    return list(value)


def _short(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
