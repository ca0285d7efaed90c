"""Packages that are not installed: which `pip install` brings them, by this distribution's own metadata."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pepscope.errors import MissingPackageError

_DISTRIBUTION = "pepscope"
_REQUIREMENT = re.compile(r"""^([A-Za-z0-9._-]+).*?(?:extra *== *["']([a-z0-9]+)["'])?\s*$""")
#: Extras for work on pepscope; they repeat what others have.
_FOR_DEVELOPMENT = frozenset({"test", "lint", "docs", "dev"})

#: Extras with everything that a command needs, so that one `pip install` is enough.
EXTRA_OF_COMMAND = {
    "audit-captures": "corpora",
    "emulate": "emulate",
    "probe": "probe",
    "proxy": "proxy",
    "query": "corpora",
    "reproduce": "simulate",
    "simulate": "simulate",
    "site": "corpora",
    "watch": "watch",
}


def missing_package(name: str, extra: str | None = None) -> str:
    """A sentence for a module that could not be imported: what is missing, and the command that installs it.

    Of several extras with that package `extra` is named if it is among them, and otherwise the first.
    """
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return f"this does not run on {sys.platform}, whose Python has no module {package}"
    return f"this needs the package {package}, which is not installed: {_command(package, extra)}"


@contextmanager
def needed(extra: str | None = None) -> Iterator[None]:
    """Around an import of a package that an extra brings: raises MissingPackageError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(missing_package(error.name or str(error), extra)) from None


def requirements() -> dict[str | None, list[str]]:
    """Names of the packages of each extra, without those for development; `None` is what every installation has."""
    from importlib.metadata import PackageNotFoundError, requires

    found: dict[str | None, list[str]] = {None: []}
    try:
        lines = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        lines = []
    for line in lines:
        matched = _REQUIREMENT.match(line)
        if matched is not None and matched[2] not in _FOR_DEVELOPMENT and _normalised(matched[1]) != _DISTRIBUTION:
            found.setdefault(matched[2], []).append(matched[1])
    return found


def _command(package: str, preferred: str | None) -> str:
    wanted = _normalised(package)
    extras = [extra for extra, packages in requirements().items() if wanted in map(_normalised, packages)]
    if None in extras:
        return f"pip install {_DISTRIBUTION}"
    if extras:
        return f"pip install '{_DISTRIBUTION}[{preferred if preferred in extras else extras[0]}]'"
    # A room of ours: the installation is not whole.
    return f"pip install --force-reinstall {_DISTRIBUTION}"


def _normalised(name: str) -> str:
    """As package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
