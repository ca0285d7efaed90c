"""Accuracy by circumstance: the values of a factor in few classes, and the rates in each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from detector.corpora.validation.intervals import Share
from detector.corpora.validation.labels import Case, Factor
from detector.corpora.validation.scoring import Judgement, rates

#: Numbers of more values than this are put into quarters of equal size; of words the most common are kept.
MOST_VALUES = 6
MOST_WORDS = 12

OTHERS = "others"


@dataclass(frozen=True, slots=True)
class FactorRow:
    """The cases whose factor lies in one class, with their rates."""

    factor: str
    value: str
    cases: int
    rates: Mapping[str, Share]


def by_factor(cases: Sequence[Case], judgements: Sequence[Judgement]) -> list[FactorRow]:
    """Every factor's classes in their order; factors of one class say nothing and are left out."""
    rows = []
    for name in dict.fromkeys(name for case in cases for name in case.factors):
        places = [place for place, case in enumerate(cases) if name in case.factors]
        classes = _classes([cases[place].factors[name] for place in places])
        if len(set(classes.values())) < 2:
            continue
        members: dict[str, list[int]] = {label: [] for label in classes.values()}
        for place in places:
            members[classes[cases[place].factors[name]]].append(place)
        for label, found in members.items():
            rows.append(
                FactorRow(
                    name, label, len(found),
                    rates([cases[place] for place in found], [judgements[place] for place in found]),
                )
            )  # fmt: skip
    return rows


def _classes(values: Sequence[Factor]) -> dict[Factor, str]:
    """The class of each value, in the order in which classes are shown."""
    numbers = sorted({value for value in values if isinstance(value, float)})
    words = Counter(value for value in values if isinstance(value, str))
    found: dict[Factor, str] = {}
    if len(numbers) > MOST_VALUES:
        # Edges between quarters of the cases, not of the values.
        sample = [value for value in values if isinstance(value, float)]
        edges = sorted(set(np.quantile(sample, (0.25, 0.5, 0.75), method="inverted_cdf").tolist()))
        for number in numbers:
            found[number] = _between(number, [-math.inf, *edges, math.inf], numbers[0])
    else:
        found |= {number: _number(number) for number in numbers}
    common = [word for word, _ in words.most_common(MOST_WORDS)]
    kept = set(common if len(words) <= MOST_WORDS else common[: MOST_WORDS - 1])
    return found | {word: word if word in kept else OTHERS for word in sorted(words, key=lambda word: word not in kept)}


def _between(number: float, edges: Sequence[float], least: float) -> str:
    place = next(place for place, edge in enumerate(edges) if number <= edge)
    low, high = edges[place - 1], edges[place]
    if math.isinf(low):
        return _number(high) if high == least else f"up to {_number(high)}"
    return f"above {_number(low)}" if math.isinf(high) else f"above {_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    """Four digits, all of a great number."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
