"""Rooms meet here: commands, writers and library functions are found by entry point, and loaded when used."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points


def find(group: str, name: str) -> EntryPoint | None:
    """The entry point of that group and name, not loaded; `None` where no installed room offers it."""
    return next(iter(entry_points(group=group, name=name)), None)


def names(group: str) -> tuple[str, ...]:
    """All names in an entry point group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))
