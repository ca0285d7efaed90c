"""Writers of results: rooms register them in the entry point group `pepscope.writers`, commands use them by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pepscope.errors import UsageError
from pepscope.plugins import find, names

GROUP = "pepscope.writers"


def writer(name: str) -> Callable[..., Any]:
    """The writer of that name, loaded. Raises UsageError where no installed room offers it."""
    entry = find(GROUP, name)
    if entry is None:
        raise UsageError(f"no writer for {name} is installed, only for {', '.join(names(GROUP)) or 'nothing'}")
    loaded: Callable[..., Any] = entry.load()
    return loaded
