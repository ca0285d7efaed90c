"""Rooms meet here: commands, writers and library functions are found by entry point, and loaded when used."""

from __future__ import annotations

from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import TypeVar

from pepscope.errors import PepscopeError

Plugin = TypeVar("Plugin")

_OURS = "pepscope"


def find(group: str, name: str) -> EntryPoint | None:
    """The entry point of that group and name, not loaded; `None` where no installed room offers it.

    Ours come first: reading the metadata of one distribution is quick, that of all takes most of a command's start.
    """
    try:
        own = distribution(_OURS).entry_points.select(group=group, name=name)
    except PackageNotFoundError:
        own = None
    return next(iter(own or entry_points(group=group, name=name)), None)


def names(group: str) -> tuple[str, ...]:
    """All names in an entry point group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def loaded(group: str, kind: type[Plugin]) -> tuple[Plugin, ...]:
    """What the entry points of a group name, in the order of their names.

    Raises PepscopeError where one cannot be imported, or names something that is not a `kind`.
    """
    found = []
    for entry in sorted(entry_points(group=group), key=lambda each: each.name):
        try:
            plugin = entry.load()
        except Exception as error:  # a module may raise anything while it is imported
            raise PepscopeError(
                f"the plug-in {entry.name} ({entry.value}) of {group} cannot be loaded "
                f"({type(error).__name__}: {' '.join(str(error).split())})"
            ) from error
        if not isinstance(plugin, kind):
            raise PepscopeError(f"the plug-in {entry.name} ({entry.value}) of {group} must be a {kind.__name__}")
        found.append(plugin)
    return tuple(found)
