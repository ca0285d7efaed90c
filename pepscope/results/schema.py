"""The JSON Schemas of what the commands write, as packaged with the program."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from pepscope.errors import UsageError

NAMES = ("annotate-1", "audit-1", "detect-2", "detect-lines-2", "doctor-1", "inspect-1", "validate-1")


def load_schema(name: str) -> dict[str, Any]:
    """The schema of that name, one of `NAMES`, which holds those that it refers to. Raises UsageError."""
    if name not in NAMES:
        raise UsageError(f"the schema must be one of {', '.join(NAMES)}, got {name!r}")
    text = files("pepscope").joinpath("schemas", f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    for other in NAMES:
        if other != name and f'"pepscope:{other}#' in text:
            schema["$defs"][other] = load_schema(other)
    return schema
