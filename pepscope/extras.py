"""Packages that are not installed: which `pip install` brings them, by this distribution's own metadata."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

_DISTRIBUTION = "pepscope"
_REQUIREMENT = re.compile(r"""^([A-Za-z0-9._-]+).*?(?:extra *== *["']([a-z0-9]+)["'])?\s*$""")
#: Extras for work on pepscope; they repeat what others have.
_FOR_DEVELOPMENT = frozenset({"test", "lint", "dev"})


def missing_package(name: str, *, extra: str | None = None) -> str:
    """A sentence for a module that could not be imported: what is missing, and the command that installs it.

    `extra` is the one to name where several bring the package and what is to be done needs more of that one's.
    """
    package = name.partition(".")[0]
    command = _command(package) if extra is None else f"pip install '{_DISTRIBUTION}[{extra}]'"
    return f"this needs the package {package}, which is not installed: {command}"


def _command(package: str) -> str:
    try:
        requirements = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        requirements = []
    wanted = _normalised(package)
    extras = []
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is not None and _normalised(found[1]) == wanted:
            extras.append(found[2])
    if None in extras:
        return f"pip install {_DISTRIBUTION}"
    for extra in extras:
        if extra not in _FOR_DEVELOPMENT:
            return f"pip install '{_DISTRIBUTION}[{extra}]'"
    # A room of ours: the installation is not whole.
    return f"pip install --force-reinstall {_DISTRIBUTION}"


def _normalised(name: str) -> str:
    """As package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
