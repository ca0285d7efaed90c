"""Values as documents: plain Python objects, and JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from prober.lean.msgspec_subset.struct_class import UNSET, Struct, asdict


def to_builtins(value: Any) -> Any:
    """A value of structs, enumerations and containers as what JSON can say; tuples stay tuples.

    Raises TypeError for what is neither.
    """
    if isinstance(value, Struct):
        return {name: to_builtins(item) for name, item in asdict(value).items() if item is not UNSET}
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {to_builtins(key): to_builtins(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(to_builtins, value))
    if isinstance(value, list | set | frozenset):
        return list(map(to_builtins, value))
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def json_encode(value: Any) -> bytes:
    """JSON as UTF-8; numbers that are none are null."""
    return json.dumps(_finite(to_builtins(value)), ensure_ascii=False, separators=(",", ":")).encode()


def json_decode(data: bytes | str) -> Any:
    """The document in JSON. Raises ValueError."""
    return json.loads(data)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
