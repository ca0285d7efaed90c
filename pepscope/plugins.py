"""Rooms meet here: commands, writers and library functions are found by entry point, and loaded when used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, TypeVar

from pepscope.errors import PepscopeError, UsageError

Plugin = TypeVar("Plugin")

_OURS = "pepscope"

#: Rooms register what writes their results.
_WRITERS = "pepscope.writers"


class Offer:
    """What an entry point names: a module, or an attribute of one; `package` is the distribution that offers it."""

    __slots__ = ("name", "package", "value")

    def __init__(self, name: str, value: str, package: str) -> None:
        self.name = name
        self.value = value
        self.package = package

    def load(self) -> Any:
        """Import it. Raises what importing raises, AttributeError where the module has no such attribute."""
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        found: Any = import_module(module)
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
        return found


def find(group: str, name: str) -> Offer | None:
    """The entry point of that group and name, not loaded; `None` where no installed room offers it.

    Ours come first, and are read without `importlib.metadata`: that module takes longer to import than all others that
    a command needs, and the metadata of all distributions takes most of a command's start.
    """
    if (own := find_own(group, name)) is not None:
        return own
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        return Offer(entry.name, entry.value, "" if entry.dist is None else entry.dist.name)
    return None


def find_own(group: str, name: str) -> Offer | None:
    """The same of our distribution alone."""
    value = _own_entry_points().get((group, name))
    return None if value is None else Offer(name, value, _OURS)


def names(group: str) -> tuple[str, ...]:
    """All names in an entry point group, sorted."""
    from importlib.metadata import entry_points

    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def writer(name: str) -> Callable[..., Any]:
    """What writes results in a format (group `pepscope.writers`), loaded. Raises UsageError where no installed room
    offers it."""
    entry = find(_WRITERS, name)
    if entry is None:
        raise UsageError(f"no writer for {name} is installed, only for {', '.join(names(_WRITERS)) or 'nothing'}")
    write: Callable[..., Any] = entry.load()
    return write


def is_offered(group: str) -> bool:
    """Whether any installed distribution may have entry points of a group; read as those of `find` are."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True  # it may know of distributions that stand in no directory
    for directory in sys.path:
        try:
            entries = os.listdir(directory or ".")
        except OSError:
            if os.path.isfile(directory):
                return True  # an archive
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info", ".egg")) and _names_group(
                os.path.join(directory, entry), group
            ):
                return True
    return False


def _names_group(distribution: str, group: str) -> bool:
    """Whether metadata have entry points of a group; also where it cannot be seen."""
    if distribution.endswith(".egg"):
        return True
    try:
        with open(os.path.join(distribution, "entry_points.txt"), encoding="utf-8") as file:
            return f"[{group}]" in file.read().replace(" ", "")
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def loaded(group: str, kind: type[Plugin]) -> tuple[Plugin, ...]:
    """What the entry points of a group name, in the order of their names.

    Raises PepscopeError where one cannot be imported, or names something that is not a `kind`.
    """
    if not is_offered(group):
        return ()
    from importlib.metadata import entry_points

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


def _own_entry_points() -> dict[tuple[str, str], str]:
    """What the metadata of our distribution names, by group and name: of the first one on the path, as Python finds it.

    Empty where there is no directory of metadata, as in an archive; then `importlib.metadata` knows.
    """
    for directory in sys.path:
        try:
            entries = os.listdir(directory or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(f"{_OURS}-") and entry.endswith(".dist-info"):
                try:
                    with open(os.path.join(directory, entry, "entry_points.txt"), encoding="utf-8") as file:
                        return _parsed(file.read())
                except OSError:
                    continue
    return {}


def _parsed(text: str) -> dict[tuple[str, str], str]:
    """The lines of an `entry_points.txt`: `[group]`, then `name = value`."""
    found = {}
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            found[group, name.strip()] = value.strip()
    return found
