"""The oldest versions that setup.cfg admits of each package that users need, as pip's constraints.

`make test-lowest` runs the tests with them: a bound that is too low lets pip keep a package with which commands fail.
"""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

_BOUND = re.compile(r"(?P<name>[\w-]+) *>= *(?P<version>[\d.]+)$")
#: Extras of those who develop pepscope; their tools may be as new as they are.
_OF_DEVELOPERS = frozenset({"bench", "dev", "docs", "lint", "test"})


def lowest_versions(text: str) -> list[str]:
    """`NAME==VERSION` of each package that the text of a setup.cfg names for users, by name.

    Of a package that several extras name the highest bound counts, since an installation may have all of them.
    Raises ValueError for a requirement that is neither a lower bound nor an extra of this package.
    """
    settings = configparser.ConfigParser()
    settings.read_string(text)
    named = settings["options"]["install_requires"].split("\n")
    for extra, requirements in settings["options.extras_require"].items():
        named += requirements.split("\n") if extra not in _OF_DEVELOPERS else []
    lowest: dict[str, tuple[int, ...]] = {}
    for requirement in filter(None, named):
        if requirement.startswith(("pepscope[", "#")):
            continue
        if (bound := _BOUND.match(requirement)) is None:
            raise ValueError(f"setup.cfg: {requirement!r} is no lower bound")
        version = tuple(map(int, bound["version"].split(".")))
        lowest[bound["name"]] = max(version, lowest.get(bound["name"], version))
    return [f"{name}=={'.'.join(map(str, version))}" for name, version in sorted(lowest.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest_versions(Path("setup.cfg").read_text(encoding="utf-8"))) + "\n")
