"""One check from targets to verdicts; the command and the file that runs without installation share it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pepscope.errors import PepscopeError, UsageError
from prober.check.given import Given
from prober.check.judging import Further, PortVerdict, judge
from prober.check.measuring import Observations, measure
from prober.check.targets import Place, Target, public_targets, read_targets, resolve
from prober.check.tunnels import tunnel_towards

DEFAULT_TIME_S = 60.0


def chosen_targets(file: str | None, ports: Sequence[int]) -> tuple[Target, ...]:
    """The targets of a file, or the public hosts on these ports. Raises UsageError."""
    if file is None:
        return public_targets(ports)
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return read_targets(lines, file)


def places_of(targets: Sequence[Target]) -> tuple[list[Place], dict[str, str]]:
    """Where the targets are, and names that were not resolved. Raises PepscopeError where no name was."""
    if sys.platform != "linux":
        raise PepscopeError("a check needs Linux: other systems do not tell how far packets travel without privileges")
    places, unresolved = resolve(targets)
    if not places:
        name, why = next(iter(unresolved.items()), ("any target", "it has no address"))
        raise PepscopeError(f"no target can be resolved; {name}: {why}")
    return places, unresolved


def run(
    places: Sequence[Place],
    unresolved: dict[str, str],
    deadline_s: float,
    given: Given | None = None,
    progress: Callable[[int, int], object] | None = None,
    further: Callable[[Observations], Further] | None = None,
) -> tuple[tuple[PortVerdict, ...], Observations]:
    """Measure and judge; `further` gives findings of other measurements once the experiments are done."""
    observations = dataclasses.replace(measure(places, deadline_s, given, progress), unresolved=unresolved)
    found = None if further is None else further(observations)
    return judge(observations, tunnel_towards(places[0].address), found), observations
