"""The log-likelihood ratio of each header field among an evidence's numbers: written there, read back to be pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from detector.methods.identity.agreement import ClassComparison
from pepscope.results.verdicts import Number

_PREFIX = "nats_"


class ClassField(NamedTuple):
    """A header field in one class of segments."""

    of: str  # "data" or "acks", pure acknowledgements
    field: str


@cache
def class_field_name(field: ClassField) -> str:
    """The field's name among an evidence's numbers."""
    return f"{_PREFIX}{field.of}_{field.field.replace('-', '_')}"


def field_numbers(data: Iterable[ClassComparison], acks: Iterable[ClassComparison]) -> dict[str, Number]:
    """Natural-log likelihood ratios for same packets by class of segments and field, summed over directions."""
    numbers: dict[str, Number] = {}
    for of, parts in (("data", data), ("acks", acks)):
        sums: dict[str, float] = {}
        for part in parts:
            for name, agreement in part.fields.items():
                sums[name] = sums.get(name, 0.0) + agreement.nats
        numbers |= {class_field_name(ClassField(of, name)): round(nats, 2) for name, nats in sums.items()}
    return numbers


def field_nats(numbers: Mapping[str, Number]) -> dict[ClassField, float]:
    """The ratios that `field_numbers` wrote; empty where nothing was compared."""
    return {
        ClassField(of, name.replace("_", "-")): float(nats)
        for of in ("data", "acks")
        for written, nats in numbers.items()
        if isinstance(nats, int | float) and (name := written.removeprefix(f"{_PREFIX}{of}_")) != written
    }
