"""What is new in the last week: splits where there were none, and shares that changed by more than chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from reports.corpora.questions import Cell
from reports.corpora.shares import Share, difference, is_beyond_chance


@dataclass(frozen=True, slots=True)
class Change:
    """One network and port in the last week, beside the last week before in which it was decided.

    `before_week` is None where it was never decided before; `differs` is the interval of the difference of the shares,
    None where chance explains it or there is nothing before.
    """

    network: str
    port: int
    before_week: str | None
    before: Share
    now: Share
    differs: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The last week (its Monday), whether there is one to compare with, and what is new."""

    week: str | None
    has_before: bool
    new_splits: tuple[Change, ...]
    changed: tuple[Change, ...]
    compared: int


def changes(cells: Sequence[Cell]) -> Changes:
    """What differs between the last week and, network by network and port by port, the week before it."""
    weeks = sorted({cell.week for cell in cells if cell.week is not None})
    if not weeks:
        return Changes(None, has_before=False, new_splits=(), changed=(), compared=0)
    last = weeks[-1]
    by_place: defaultdict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.week is not None and cell.share.decided:
            by_place[cell.network, cell.port].append(cell)
    beside = [
        (place, sorted(found, key=lambda cell: cell.week or ""))
        for place, found in by_place.items()
        if any(cell.week == last for cell in found)
    ]
    compared = sum(len(found) > 1 for _, found in beside)
    every = [_change(network, port, found, compared) for (network, port), found in beside]
    never = {
        (network, port) for (network, port), found in beside if not any(cell.share.split for cell in found[:-1])
    }  # fmt: skip
    new = [each for each in every if each.now.split and (each.network, each.port) in never]
    changed = [each for each in every if each.differs is not None]
    return Changes(
        last,
        len(weeks) > 1,
        tuple(sorted(new, key=lambda each: (-each.now.split, each.network, each.port))),
        tuple(sorted(changed, key=lambda each: (-_least_change(each), each.network, each.port))),
        compared,
    )


def _change(network: str, port: int, found: Sequence[Cell], compared: int) -> Change:
    now = found[-1].share
    if len(found) == 1:
        return Change(network, port, None, Share(0, 0), now, None)
    before = found[-2]
    beyond = is_beyond_chance(now, before.share, compared)
    return Change(network, port, before.week, before.share, now, difference(now, before.share) if beyond else None)


def _least_change(change: Change) -> float:
    low, high = change.differs or (0.0, 0.0)
    return min(abs(low), abs(high))
