"""Which of many cases of one test continuous integration runs: every value, or every pair of values, at least once.

Of a test that asks the same of each capture of the corpus, or of each combination of settings, most cases show no fault
that others do not show. Those have the mark `repeats`; `make every-case`, a part of `make validate`, runs them too, as
does pytest where it is given a case by its name.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import pytest

#: Set for runs that leave out no case.
EVERY_CASE = "PEPSCOPE_EVERY_CASE"


def each_value(
    cases: Iterable[Any], values: Callable[[Any], Iterable[Hashable]], shown: Iterable[Any] = ()
) -> list[Any]:
    """A parameter for each case, all but a few that show every value marked `repeats`; other tests show some cases.

    A case that is a tuple is a parameter set.
    """
    cases = list(cases)
    chosen = _cover([set(values(case)) for case in cases], {value for case in shown for value in values(case)})
    return _parameters([case if isinstance(case, tuple) else (case,) for case in cases], chosen)


def each_pair(one: Sequence[Any], other: Sequence[Any], *more: Sequence[Any]) -> list[Any]:
    """A parameter set for each combination, all but a few that show every pair of two axes' values marked `repeats`."""
    axes = (one, other, *more)
    places = list(itertools.product(*(range(len(axis)) for axis in axes)))
    chosen = _cover([set(itertools.combinations(enumerate(place), 2)) for place in places], set())
    return _parameters(itertools.product(*axes), chosen)


def left_out(items: Iterable[pytest.Item], arguments: Iterable[str]) -> set[pytest.Item]:
    """The repeated cases that this run leaves out: all but those that pytest's arguments name."""
    if os.environ.get(EVERY_CASE):
        return set()
    named = {_without_file(argument) for argument in arguments}
    return {item for item in items if item.get_closest_marker("repeats") and _without_file(item.nodeid) not in named}


def _without_file(name: str) -> str:
    return name.partition("::")[2]


def _parameters(sets: Iterable[tuple[Any, ...]], chosen: set[int]) -> list[Any]:
    return [
        pytest.param(*values, marks=() if number in chosen else (pytest.mark.repeats,))
        for number, values in enumerate(sets)
    ]


def _cover(shown: Sequence[set[Any]], known: set[Any]) -> set[int]:
    """The numbers of few cases that show what all show: always that which adds most, the first of equals.

    At least one: a test of which no case runs tests nothing.
    """
    chosen: set[int] = set()
    missing = set().union(*shown) - known
    while missing:
        best = max(range(len(shown)), key=lambda number: len(shown[number] & missing))
        chosen.add(best)
        missing -= shown[best]
    return chosen or {0}
