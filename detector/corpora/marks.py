"""Marks of units that are judged: written last, so that a unit that has one is whole."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from detector.corpora.judged_units import DIGESTS
from detector.corpora.matching import Unit
from detector.corpora.tables import UNITS, remove_unit
from pepscope.whole_file import write_whole

_COUNTS, _BEGINNINGS = "counts", "beginnings"


def write_mark(unit: Unit, identity: str, counts: dict[str, Any], origin: Mapping[str, Any], directory: Path) -> None:
    """Say that the tables of a unit are there, with what was counted and what it was judged from. Raises OSError."""
    mark = {_COUNTS: counts, **origin, _BEGINNINGS: unit.beginnings}
    write_whole(_place(identity, directory), json.dumps(mark) + "\n")


def counts_of(identity: str, directory: Path) -> dict[str, Any] | None:
    """What was counted when a unit was judged; None where it is not there."""
    mark = _read(_place(identity, directory))
    counts = None if mark is None else mark.get(_COUNTS)
    return counts if isinstance(counts, dict) else None


def remove_superseded(current: Collection[str], directory: Path) -> None:
    """Take out what was judged before and is a part of what was judged now: captures to which another vantage point's
    were added since, series and files that grew, and other options. What no source names any more stays."""
    judged = [found for identity in current if (found := _origin(_place(identity, directory))) is not None]
    for place in (directory / UNITS).glob("*.json"):
        if place.stem in current or (origin := _origin(place)) is None:
            continue
        digests, beginnings = origin
        if any(digests <= content or beginnings <= begun for content, begun in judged):
            remove_unit(place.stem, directory)
            place.unlink(missing_ok=True)


def _origin(place: Path) -> tuple[set[str], set[tuple[str, int]]] | None:
    """Digests of a unit's files, and their names with the times of their first packets."""
    mark = _read(place)
    try:
        return None if mark is None else (set(mark[DIGESTS]), {(name, time_ns) for name, time_ns in mark[_BEGINNINGS]})
    except (KeyError, TypeError, ValueError):
        return None


def _read(place: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) else None


def _place(identity: str, directory: Path) -> Path:
    return directory / UNITS / f"{identity}.json"
