"""Where results come from, as every report states it: the tool with its options, and times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

_EPOCH = datetime(1970, 1, 1)  # the text names the zone


class Tool(NamedTuple):
    """What made a result: the version of pepscope, and the options on which the result depends, by name."""

    version: str
    options: Mapping[str, float | int | str | bool | None] = MappingProxyType({})


def tool_document(tool: Tool | None) -> dict[str, Any] | None:
    """What made a result as `detect-2` and `inspect-1` write it."""
    return None if tool is None else {"name": "pepscope", "version": tool.version, "options": dict(tool.options)}


def time_text(time_ns: int | None) -> str | None:
    """A Unix time as RFC 3339 has it, in UTC and to the nanosecond."""
    if time_ns is None:
        return None
    seconds, rest_ns = divmod(int(time_ns), 1_000_000_000)
    return f"{_second_text(seconds)}.{rest_ns:09d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """A whole second: packets that are named one after the other often share it."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()
